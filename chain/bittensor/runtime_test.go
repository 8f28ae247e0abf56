package bittensor

import (
	"encoding/binary"
	"os"
	"slices"
	"testing"
	"time"
)

// TestRealRuntime runs against a real runtime of the chain in chopsticks (npm, @acala-network/chopsticks 1.5.1):
//
//	chopsticks --chain-spec=raw_spec_testfinney.json --port 18001 --build-block-mode Instant --allow-unresolved-imports --host 127.0.0.1
//	ENTRAIN_SUBTENSOR=http://127.0.0.1:18001 go test ./chain/bittensor -run RealRuntime
//
// The specification is the file of that name in the chain's repository. Its runtime, version 103, has no Commitments, and takes no
// registrations, so the hotkey is put into the subnet by hand.
func TestRealRuntime(t *testing.T) {
	url := os.Getenv("ENTRAIN_SUBTENSOR")
	if url == "" {
		t.Skip("ENTRAIN_SUBTENSOR names no endpoint of a chain that may be changed at will")
	}
	ctx := t.Context()
	c, err := Dial(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	s := Subnet{Client: c, NetUID: 1, Poll: 100 * time.Millisecond}
	k := alice(t)
	a := k.Account()
	put := func(v []byte, name string, args ...[]byte) {
		at, _, err := c.meta.key(module, name, args...)
		if err != nil {
			t.Fatal(err)
		}
		var hash string
		if err := c.call(ctx, &hash, "dev_setStorage", [][2]string{{at, tohex(v)}}); err != nil {
			t.Fatal(err)
		}
	}
	put([]byte{1}, "NetworksAdded", s.netuid())
	if err := s.Register(ctx, k, a); err == nil {
		t.Error("this runtime took a registration")
	} else {
		t.Log(err)
	}
	if err := s.SetWeights(ctx, bob(t), map[uint16]float64{0: 1}); err == nil {
		t.Error("a stranger set weights")
	} else {
		t.Log(err)
	}
	zero, one := make([]byte, 2), []byte{1, 0}
	put(zero, "Uids", s.netuid(), a[:])
	put(a[:], "Keys", s.netuid(), zero)
	put(one, "SubnetworkN", s.netuid())
	put([]byte{1}, "IsNetworkMember", a[:], s.netuid())
	put(a[:], "Owner", a[:])
	put([]byte{4, 1}, "Active", s.netuid())
	put([]byte{4, 1}, "ValidatorPermit", s.netuid())
	put(binary.LittleEndian.AppendUint64([]byte{4}, 0), "LastUpdate", s.netuid())
	for _, name := range []string{"Rank", "Trust", "Consensus", "Incentive", "Dividends", "PruningScores", "ValidatorTrust"} {
		put([]byte{4, 0, 0}, name, s.netuid())
	}
	put(binary.LittleEndian.AppendUint64([]byte{4}, 0), "Emission", s.netuid())
	if uid, ok, err := s.UID(ctx, a); err != nil || !ok || uid != 0 {
		t.Fatalf("alice has number %d, %v, %v", uid, ok, err)
	}
	if list, err := s.Neurons(ctx); err != nil || len(list) != 1 || !slices.Equal(list[0].Hotkey[:], a[:]) {
		t.Errorf("the subnet has %+v, %v", list, err)
	}
	if err := s.SetWeights(ctx, k, map[uint16]float64{0: 3}); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Weights(ctx, 0); err != nil || len(row) != 1 || row[0] != 65535 {
		t.Errorf("the weights read back are %v, %v", row, err)
	}
	if err := s.SetWeights(ctx, k, map[uint16]float64{0: 1, 9: 1}); err == nil {
		t.Error("weights for somebody who is not there are set")
	} else {
		t.Log(err)
	}
}
