package bittensor

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
)

// alice is the first of Substrate's development keys.
func alice(t testing.TB) Key {
	return seeded(t, "e5be9a5092b81bca64be81d212e7f2f9eba183bb7a90954f7b76361f6edb5c0a")
}

func bob(t testing.TB) Key {
	return seeded(t, "398f0c28f98885e046333d4a41c19cee4c37368a9832c6502f6cfd182e2aef89")
}

func seeded(t testing.TB, seed string) Key {
	b, err := hex.DecodeString(seed)
	if err != nil {
		t.Fatal(err)
	}
	k, err := newKey([32]byte(b))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The addresses are those that subkey prints for //Alice and //Bob.
func TestAddresses(t *testing.T) {
	for want, k := range map[string]Key{
		"5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY": alice(t), "5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty": bob(t),
	} {
		if got := k.Account().String(); got != want {
			t.Errorf("the address is %s, want %s", got, want)
		}
	}
	if s := fmt.Sprintf("%v %+v %#v", alice(t), alice(t), alice(t)); strings.Contains(s, "e5be") {
		t.Errorf("a key is printed as %s", s)
	}
}

func TestKeysOfWallets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "default")
	for text, fault := range map[string]string{
		`{"secretSeed":"0xe5be9a5092b81bca64be81d212e7f2f9eba183bb7a90954f7b76361f6edb5c0a","ss58Address":"5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"}`: "",
		`{"secretSeed":"0xe5be9a5092b81bca64be81d212e7f2f9eba183bb7a90954f7b76361f6edb5c0a","ss58Address":"5FHneW46xGXgs5mUiveU4sbTyGBzmstUspZC92UhjJM694ty"}`: "is not the key of its ss58Address",
		`{"secretSeed":"0xe5be"}`: "is not 64 hexadecimal digits",
		"$NACL encrypted":         "lacks a secretSeed",
		`{}`:                      "lacks a secretSeed",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := ReadKey(file)
		if fault == "" && (err != nil || k.Account() != alice(t).Account()) || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
			t.Errorf("%s: %v, want %q", text, err, fault)
		}
	}
}

// The vectors are those of Substrate's documentation of SCALE.
func TestCompactNumbers(t *testing.T) {
	for v, want := range map[uint64]string{0: "00", 1: "04", 42: "a8", 63: "fc", 64: "0101", 69: "1501", 16383: "fdff", 16384: "02000100", 65535: "feff0300",
		1<<30 - 1: "feffffff", 1 << 30: "0300000040", 100000000000000: "0b00407a10f35a"} {
		b := appendCompact(nil, v)
		r := &reader{b: b}
		if hex.EncodeToString(b) != want || r.compact() != v || r.err != nil || len(r.b) > 0 {
			t.Errorf("%d is written %x, want %s", v, b, want)
		}
	}
}

// world is a subnet with alice and bob registered, whose keys in runs have the seeds 1 and 2.
func world(t *testing.T) (*node, Subnet, context.Context) {
	return worldOf(t, false)
}

// worldOf is a world whose chain shows timelocked weights by itself, or not.
func worldOf(t *testing.T, timelocks bool) (*node, Subnet, context.Context) {
	n := newNode(t, "", timelocks)
	n.put([]byte{1}, module, "NetworksAdded", []byte{12, 0})
	c, err := Dial(t.Context(), strings.Replace(n.URL, "http", "ws", 1))
	if err != nil {
		t.Fatal(err)
	}
	s := Subnet{Client: c, NetUID: 12, Poll: time.Millisecond}
	for _, k := range []Key{alice(t), bob(t)} {
		if err := s.Register(t.Context(), k, k.Account()); err != nil {
			t.Fatal(err)
		}
	}
	return n, s, t.Context()
}

// set sets weights, and expects them to be hidden for no time.
func (s Subnet) set(ctx context.Context, hotkey Key, scores map[uint16]float64) error {
	hidden, err := s.SetWeights(ctx, hotkey, scores)
	if err == nil && hidden != 0 {
		err = fmt.Errorf("they are hidden for %v", hidden)
	}
	return err
}

func TestASubnetFromRegistrationToWeights(t *testing.T) {
	n, s, ctx := world(t)
	if err := s.Exists(ctx); err != nil {
		t.Error(err)
	}
	member := [2]key.Private{key.FromSeed([32]byte{1}), key.FromSeed([32]byte{2})}
	long := "bucket://" + strings.Repeat("x", whereMax-9)
	for i, k := range []Key{alice(t), bob(t)} {
		if err := s.Commit(ctx, k, member[i], []string{"", long}[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(ctx, bob(t), member[1], long+"x"); err == nil {
		t.Error("an address that is too long is committed")
	}
	list, err := s.Neurons(ctx)
	if err != nil || len(list) != 2 || list[0].Member != member[0].Public() || list[1].Member != member[1].Public() || list[1].Where != long ||
		list[1].UID != 1 || list[0].Hotkey != alice(t).Account() {
		t.Fatalf("the subnet has %+v, %v", list, err)
	}
	if err := s.set(ctx, alice(t), map[uint16]float64{0: 0.25, 1: 0.5, 7: -1, 8: 1e-9}); err != nil {
		t.Fatal(err)
	}
	row, err := s.Weights(ctx, 0)
	if want := map[uint16]uint16{0: 32768, 1: 65535}; err != nil || !maps.Equal(row, want) {
		t.Errorf("the weights are %v, %v, want %v", row, err, want)
	}
	if err := s.Weigh(ctx, alice(t).Account(), list); err != nil || list[0].Weight == nil || *list[1].Weight != 65535 {
		t.Errorf("with alice's weights the subnet has %+v, %v", list, err)
	}
	if err := s.Weigh(ctx, Account{}, list); err == nil {
		t.Error("somebody who is not registered has weights")
	}
	var table strings.Builder
	if err := WriteTable(&table, list[:1]); err != nil || !strings.Contains(table.String(), alice(t).Account().String()) ||
		!strings.Contains(table.String(), member[0].Public().String()) || !strings.Contains(table.String(), "32768") {
		t.Errorf("the table is %q, %v", &table, err)
	}
	line, err := json.Marshal(Neuron{Hotkey: alice(t).Account()})
	if want := `{"uid":0,"hotkey":"5GrwvaEF5zXb26Fz9rcQpDWS57CtERHpNehXCPcNoHGKutQY"}`; err != nil || string(line) != want {
		t.Errorf("as JSON a hotkey is %s, %v, want %s", line, err, want)
	}
	if err := s.set(ctx, alice(t), map[uint16]float64{0: 0, 1: -1}); err == nil {
		t.Error("weights of nobody are set")
	}
	n.put([]byte{1}, module, "CommitRevealWeightsEnabled", []byte{12, 0})
	if err := s.set(ctx, alice(t), map[uint16]float64{0: 1}); !errors.Is(err, ErrCommitReveal) {
		t.Errorf("weights that must be hidden: %v", err)
	}
}

// Whatever the place in an epoch at which weights are hidden, they are shown in the right one.
func TestHiddenWeightsAreShownInTime(t *testing.T) {
	n, s, ctx := world(t)
	n.put([]byte{1}, module, "CommitRevealWeightsEnabled", []byte{12, 0})
	for place := range 8 {
		for len(n.blocks)%8 != place {
			n.pass()
		}
		h, err := s.Hide(ctx, alice(t), map[uint16]float64{0: 1, 1: float64(place + 1)})
		if err != nil {
			t.Fatal(err)
		}
		for tries := 0; ; tries++ {
			closed, err := s.Show(ctx, alice(t), h)
			if closed && err == nil {
				break
			}
			if closed || tries > 24 {
				t.Fatalf("hidden at place %d: %v", place, err)
			}
			if err == nil { // it was not tried
				n.pass()
			}
		}
		if row, err := s.Weights(ctx, 0); err != nil || len(row) != 2 || row[1] != 65535 || row[0] != uint16(65535/float64(place+1)+0.5) {
			t.Errorf("hidden at place %d: the weights are %v, %v", place, row, err)
		}
	}
	// Shown by another hotkey, and too late.
	h, err := s.Hide(ctx, alice(t), map[uint16]float64{0: 1})
	if err != nil {
		t.Fatal(err)
	}
	h.from, h.until = 0, 0
	for _, k := range []Key{bob(t), alice(t)} {
		if closed, err := s.Show(ctx, k, h); !closed || err == nil || !strings.Contains(err.Error(), "RevealTooEarly") {
			t.Errorf("shown by another or at the wrong time: %v, %v", closed, err)
		}
	}
}

// The hash is blake2b of the SCALE encoding of alice's key, subnet 12, 0 3 7, 65535 100 1, 1 to 8, and the version 9, by Python's hashlib.
func TestHashOfHiddenWeights(t *testing.T) {
	s := Subnet{NetUID: 12}
	row := appendU16s(appendU16s(s.netuid(), []uint16{0, 3, 7}), []uint16{65535, 100, 1})
	h := hide(row, []byte{9, 0, 0, 0, 0, 0, 0, 0}, [saltWords]uint16{1, 2, 3, 4, 5, 6, 7, 8})
	if sum := h.hash(alice(t).Account()); hex.EncodeToString(sum[:]) != "c17908e8ae17212867300b52b438db937c47986523d50a0f6ad2cae4026eaa5c" {
		t.Errorf("the hash is %x", sum)
	}
}

// A stranger copies a member's commitment, or signs for a key that it has not.
func TestCommitmentsBindBothKeys(t *testing.T) {
	n, s, ctx := world(t)
	if err := s.Commit(ctx, alice(t), key.FromSeed([32]byte{1}), ""); err != nil {
		t.Fatal(err)
	}
	a, b := alice(t).Account(), bob(t).Account()
	n.put(n.has("Commitments", "CommitmentOf", s.netuid(), a[:]), "Commitments", "CommitmentOf", s.netuid(), b[:])
	list, err := s.Neurons(ctx)
	if err != nil || list[0].Member.IsZero() || !list[1].Member.IsZero() {
		t.Errorf("a copied commitment: %+v, %v", list, err)
	}
	other := s
	other.NetUID = 13
	n.put(n.has("Commitments", "CommitmentOf", s.netuid(), a[:]), "Commitments", "CommitmentOf", other.netuid(), a[:])
	if m, _, err := other.link(ctx, a); err != nil || !m.IsZero() {
		t.Errorf("a commitment of another subnet counts: %v, %v", m, err)
	}
}

func TestWhatIsRefusedSaysWhy(t *testing.T) {
	n, s, ctx := world(t)
	other := s
	other.NetUID = 13
	stranger := seeded(t, strings.Repeat("07", 32))
	n.fast = true
	for fault, f := range map[string]func() error{
		"check --netuid":            func() error { return other.Exists(ctx) },
		"register the hotkey first": func() error { return s.set(ctx, stranger, map[uint16]float64{0: 1}) },
		"rate limit":                func() error { return s.set(ctx, alice(t), map[uint16]float64{0: 1}) },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%v, want %q", err, fault)
		}
	}
	n.drop = true
	if err := s.set(ctx, alice(t), map[uint16]float64{0: 1}); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("a transaction that no block takes: %v", err)
	}
	n.stuck = true
	if err := s.set(ctx, alice(t), map[uint16]float64{0: 1}); err == nil || !strings.Contains(err.Error(), "has shown no block after") {
		t.Errorf("the chain of an endpoint makes no blocks: %v", err)
	}
	n.Close()
	if err := s.Exists(ctx); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("an endpoint that is gone: %v", err)
	}
	if _, err := Dial(ctx, n.URL+"/secret"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an endpoint that is gone: %v", err)
	}
	if _, err := Dial(ctx, "127.0.0.1:9944"); err == nil || !strings.Contains(err.Error(), "want wss://HOST") {
		t.Errorf("no URL: %v", err)
	}
	another := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)
	}))
	defer another.Close()
	if _, err := Dial(ctx, another.URL); err == nil || !strings.Contains(err.Error(), "not of a Bittensor chain") {
		t.Errorf("a node of another chain: %v", err)
	}
	c, err := Dial(ctx, newNode(t, "SudoTransactionExtension", false).URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Subnet{Client: c}).Register(ctx, alice(t), Account{}); err == nil || !strings.Contains(err.Error(), "SudoTransactionExtension") {
		t.Errorf("an unknown extension: %v", err)
	}
}

// A member that takes several hotkeys gets no more weight than with one.
func TestAMemberCountsOnce(t *testing.T) {
	keys := []key.Public{{}, {1}, {2}, {1}, {3}, {4}}
	var list []Neuron
	for uid, k := range keys {
		list = append(list, Neuron{UID: uint16(uid), Member: k})
	}
	got := Scores(list, func(k key.Public) float64 { return []float64{9, 0.5, 0.25, -1, 0}[k[0]] })
	if want := map[uint16]float64{1: 0.5, 2: 0.25}; !maps.Equal(got, want) {
		t.Errorf("scores are %v, want %v", got, want)
	}
}

// Whatever an endpoint says, reading it ends soon and without a panic.
func FuzzMetadata(f *testing.F) {
	f.Add(runtime("", true), []byte{4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(_ *testing.T, text, events []byte) {
		if m, err := parseMetadata(text); err == nil {
			_ = m.outcome(events, 1)
			for _, x := range m.extensions {
				m.empty(x.extra, 16)
			}
		}
	})
}

func FuzzLink(f *testing.F) {
	f.Add(append(make([]byte, 12), 4, 2, 0))
	f.Fuzz(func(_ *testing.T, b []byte) {
		r := &reader{b: b}
		for range r.count() {
			r.data()
		}
	})
}
