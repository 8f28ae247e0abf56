package bittensor

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// chopsticks is a process that runs the chain's own runtime, version 218, from the genesis of a local network. It makes a block of each
// transaction. The folder that ENTRAIN_SUBTENSOR names has it: what `npm install @acala-network/chopsticks@1.5.1` makes there, and
// raonet.json, a file of the chain's repository (github.com/opentensor/subtensor, scripts/specs).
type chopsticks struct {
	t       *testing.T
	process *exec.Cmd
	ended   <-chan error // closed in the end
	s       Subnet
}

func startChopsticks(t *testing.T) *chopsticks {
	folder := os.Getenv("ENTRAIN_SUBTENSOR")
	if folder == "" {
		t.Skip("ENTRAIN_SUBTENSOR names no folder with chopsticks and a runtime of Bittensor's chain: see chopsticks in this file")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := l.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	l.Close()
	script, err := filepath.Abs(filepath.Join(folder, "node_modules/@acala-network/chopsticks/chopsticks.cjs"))
	if err != nil {
		t.Fatal(err)
	}
	c := &chopsticks{t: t, process: exec.Command("node", script, "--chain-spec=raonet.json", "--host=127.0.0.1", "--port="+port,
		"--build-block-mode=Instant", "--allow-unresolved-imports")}
	c.process.Dir = folder
	var log strings.Builder
	c.process.Stdout, c.process.Stderr = &log, &log
	if err := c.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	ended := make(chan error, 1)
	c.ended = ended
	go func() { ended <- c.process.Wait(); close(ended) }()
	var client *Client
	policy := retry.Policy{Min: 100 * time.Millisecond, Max: time.Second}
	alive := func(error) bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	}
	if err := policy.Do(t.Context(), alive, func() (err error) {
		client, err = Dial(t.Context(), "ws://"+at)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	c.s = Subnet{Client: client, NetUID: 1, Poll: 200 * time.Millisecond}
	// Until a block has a time, chopsticks reads its clock twice for one, and the two must be of one slot.
	c.put(binary.LittleEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())), "Timestamp", "Now")
	return c
}

// stop kills the process.
func (c *chopsticks) stop() {
	_ = c.process.Process.Kill()
	<-c.ended
}

// put writes an item of the storage, as no transaction could.
func (c *chopsticks) put(v []byte, pallet, name string, args ...[]byte) {
	c.t.Helper()
	at, _, err := c.s.Client.meta.key(pallet, name, args...)
	if err == nil {
		var hash string
		err = c.s.Client.call(c.t.Context(), &hash, "dev_setStorage", [][2]string{{at, tohex(v)}})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// skip makes a block that many after the last.
func (c *chopsticks) skip(n uint64) {
	c.t.Helper()
	height, _, err := c.s.Client.Block(c.t.Context())
	if err == nil {
		var hash string
		err = c.s.Client.call(c.t.Context(), &hash, "dev_newBlock", map[string]uint64{"unsafeBlockHeight": height + n})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// fails checks why something failed.
func (c *chopsticks) fails(err error, want string) {
	c.t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		c.t.Errorf("got %v, want %q", err, want)
	}
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }

// TestRealRuntime registers, commits and sets weights by the chain's own rules.
func TestRealRuntime(t *testing.T) {
	c := startChopsticks(t)
	s, ctx := c.s, t.Context()
	cold, validator, miner := alice(t), bob(t), seeded(t, strings.Repeat("07", 32))
	member := key.FromSeed([32]byte{1})

	// What a subnet's owner and time would have done: registrations are open, epochs long, and the coldkey has tokens.
	c.put([]byte{104, 1}, module, "Tempo", s.netuid()) // 360 blocks
	c.put([]byte{1}, module, "NetworkRegistrationAllowed", s.netuid())
	coldkey := cold.Account()
	const tao = 1_000_000_000
	account := slices.Concat(make([]byte, 4), []byte{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, u64(10*tao), make([]byte, 8), make([]byte, 8), make([]byte, 16))
	c.put(account, "System", "Account", coldkey[:])

	other := s
	other.NetUID = 77
	c.fails(other.Exists(ctx), "no subnet 77")
	c.fails(other.Register(ctx, cold, miner.Account()), "check --netuid")
	c.fails(s.Commit(ctx, miner, member, ""), "register the hotkey first")
	c.fails(s.set(ctx, validator, map[uint16]float64{0: 1}), "register the hotkey first")
	c.fails(s.Register(ctx, miner, miner.Account()), "lacks tokens")

	for _, k := range []Key{validator, miner} {
		if made, err := s.Enroll(ctx, cold, k.Account()); !made || err != nil {
			t.Fatalf("registered %v, %v", made, err)
		}
	}
	if made, err := s.Enroll(ctx, cold, miner.Account()); made || err != nil {
		t.Errorf("registered a second time: %v, %v", made, err)
	}
	height, hash, err := s.Client.Block(ctx)
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := Newest(ctx, s.Client.url, wire.Hash{}, 0, 0)
	if err != nil || blocks.Number != height || len(blocks.Hashes) != int(min(height, clock.SightMax)) || blocks.Hashes[len(blocks.Hashes)-1] != wire.Hash(hash) {
		t.Errorf("the newest blocks are %+v, %v; want up to %d, %x", blocks, err, height, hash)
	}
	if again, err := Newest(ctx, s.Client.url, blocks.Genesis, height-1, 0); err != nil || len(again.Hashes) != 1 || again.Hashes[0] != wire.Hash(hash) {
		t.Errorf("after block %d comes %+v, %v", height-1, again, err)
	}
	r, err := s.Client.get(ctx, "System", "Account", coldkey[:])
	if err != nil {
		t.Fatal(err)
	}
	r.take(16)
	if left := r.u64(); left != 8*tao {
		t.Errorf("two registrations for a TAO each left %d of %d", left, 10*tao)
	}

	where := strings.Repeat("x", rawMax-linkFixed) // this runtime knows no longer ones
	if err := s.Commit(ctx, miner, member, where); err != nil {
		t.Fatal(err)
	}
	c.fails(s.Commit(ctx, miner, member, ""), "rate limit")
	neurons, err := s.Neurons(ctx)
	if err != nil {
		t.Fatal(err)
	}
	uid := map[Account]uint16{}
	for _, n := range neurons {
		uid[n.Hotkey] = n.UID
		want := Neuron{UID: n.UID, Hotkey: n.Hotkey}
		if n.Hotkey == miner.Account() {
			want.Member, want.Where = member.Public(), where
		}
		if n != want {
			t.Errorf("the subnet has %+v, want %+v", n, want)
		}
	}
	if len(uid) != 3 {
		t.Fatalf("the subnet has %d hotkeys, want those of its owner, the validator and the miner", len(uid))
	}

	// The validator's weights.
	own, to := uid[validator.Account()], uid[miner.Account()]
	scores := map[uint16]float64{to: 2, 0: 1}
	c.fails(s.set(ctx, validator, scores), "rate limit") // it has just registered
	c.put(u64(0), module, "WeightsSetRateLimit", s.netuid())
	c.put([]byte{3, 0}, module, "MinAllowedWeights", s.netuid())
	c.fails(s.set(ctx, validator, scores), "min_allowed_weights")
	c.put([]byte{1, 0}, module, "MinAllowedWeights", s.netuid())
	c.put([]byte{0, 1}, module, "MaxWeightsLimit", s.netuid())
	c.fails(s.set(ctx, validator, scores), "max_weight_limit")
	c.put([]byte{255, 255}, module, "MaxWeightsLimit", s.netuid())
	c.fails(s.set(ctx, validator, map[uint16]float64{to: 2, 9: 1}), "UidVecContainInvalidOne")
	c.put(u64(5), module, "WeightsVersionKey", s.netuid())
	c.put(u64(100), module, "WeightsSetRateLimit", s.netuid())
	c.put(slices.Concat([]byte{3 << 2}, u64(0), u64(0), u64(0)), module, "LastUpdate", s.netuid()) // nobody has set weights
	if err := s.set(ctx, validator, scores); err != nil {
		t.Fatal(err)
	}
	if row, err := s.Weights(ctx, own); err != nil || !maps.Equal(row, map[uint16]uint16{to: 65535, 0: 32768}) {
		t.Errorf("the weights read back are %v, %v", row, err)
	}
	c.fails(s.set(ctx, validator, scores), "rate limit")

	// A transaction is valid for 64 blocks.
	call, err := s.Client.meta.call("System", "remark")
	if err != nil {
		t.Fatal(err)
	}
	birth, hash, err := s.Client.Block(ctx)
	if err != nil {
		t.Fatal(err)
	}
	nonce, err := s.Client.nonce(ctx, coldkey)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := s.Client.sign(cold, append(call, 0), nonce, birth, hash)
	if err != nil {
		t.Fatal(err)
	}
	c.skip(lifetime)
	var id string
	c.fails(s.Client.call(ctx, &id, "author_submitExtrinsic", tohex(tx)), "refused")
	if err := s.Client.submit(ctx, cold, append(call, 0), s.Poll); err != nil {
		t.Errorf("the same, signed again: %v", err)
	}

	// The storage after one block, from which follows when timelocked weights are shown.
	var at string
	if err := s.Client.call(ctx, &at, "chain_getBlockHash"); err != nil {
		t.Fatal(err)
	}
	number, err := s.Client.getAt(ctx, at, "System", "Number")
	if err != nil {
		t.Fatal(err)
	}
	now, err := s.Client.getAt(ctx, at, "Timestamp", "Now")
	if err != nil {
		t.Fatal(err)
	}
	height, _, err = s.Client.Block(ctx)
	if n, ms := number.u32(), now.u64(); err != nil || uint64(n) != height || ms < 1000*quicknetStart {
		t.Errorf("the storage after block %d, %v, is that after %d, of %d ms", height, err, n, ms)
	}
	if err := s.CanSetWeights(ctx); err != nil {
		t.Error(err)
	}

	c.put([]byte{1}, module, "CommitRevealWeightsEnabled", s.netuid())
	if err := s.set(ctx, validator, scores); !errors.Is(err, ErrCommitReveal) {
		t.Errorf("weights on a subnet that wants them hidden: %v", err)
	}
	c.put(u64(0), module, "WeightsSetRateLimit", s.netuid())
	h, err := s.Hide(ctx, validator, map[uint16]float64{to: 1, own: 3})
	if err != nil {
		t.Fatal(err)
	}
	if closed, err := s.Show(ctx, validator, h); closed || err != nil {
		t.Errorf("weights are shown at once: %v, %v", closed, err)
	}
	early := h
	early.from = 0
	if closed, err := s.Show(ctx, validator, early); closed || err == nil || !strings.Contains(err.Error(), "RevealTooEarly") {
		t.Errorf("weights are shown too early: %v, %v", closed, err)
	}
	c.skip(361)
	if closed, err := s.Show(ctx, validator, h); !closed || err != nil {
		t.Errorf("weights are not shown: %v, %v", closed, err)
	}
	if row, err := s.Weights(ctx, own); err != nil || !maps.Equal(row, map[uint16]uint16{to: 21845, own: 65535}) {
		t.Errorf("the weights that were hidden are %v, %v", row, err)
	}
	c.stop()
	c.fails(s.Exists(context.WithoutCancel(ctx)), "does not answer")
}
