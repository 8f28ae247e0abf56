package bittensor

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cloudflare/circl/ecc/bls12381"
)

// pulseRound is a round of quicknet, and pulse its signature, which the tests of subtensor have, too.
const (
	pulseRound = 1000
	pulse      = "b44679b9a59af2ec876b1a6b1ad52ea9b1615fc3982b19576350f93447cb1125e342b73a8dd2bacbe47e4b6b63ed5e39"
)

// open decrypts what was encrypted for the round of a signature.
func open(locked []byte, signature string) ([]byte, error) {
	text, err := hex.DecodeString(signature)
	if err != nil {
		return nil, err
	}
	var sig bls12381.G1
	var u, check bls12381.G2
	if err := sig.SetBytes(text); err != nil {
		return nil, err
	}
	if len(locked) < 96 {
		return nil, errShort
	}
	if err := u.SetBytes(locked[:96]); err != nil {
		return nil, err
	}
	r := &reader{b: locked[96:]}
	list := func(r *reader) []byte { return r.take(int(min(r.u64(), 1<<20))) }
	v, w, body, suite := list(r), list(r), &reader{b: list(r)}, list(r)
	text, nonce := list(body), list(body)
	if err := errors.Join(r.err, body.err); err != nil || string(suite) != "AES_GCM_" || len(r.b)+len(body.b) > 0 || len(v) != 32 || len(w) != 32 || len(nonce) != 12 {
		return nil, fmt.Errorf("no ciphertext: %v, %q", err, suite)
	}
	mask, err := maskOf(&sig, &u)
	if err != nil {
		return nil, err
	}
	sigma := [32]byte(xor([32]byte(v), mask))
	key := [32]byte(xor([32]byte(w), [32]byte(sum(sigma[:]))))
	scalar := blind(sigma, key)
	if check.ScalarMult(&scalar, bls12381.G2Generator()); !check.IsEqual(&u) {
		return nil, errors.New("encrypted for another round")
	}
	gcm, err := newGCM(key)
	if err != nil {
		return nil, err
	}
	return gcm.Open(nil, nonce, text, nil)
}

// constant is a source of chance that never changes.
type constant byte

func (c constant) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(c)
	}
	return len(b), nil
}

// Package bittensor-drand 2.0.0 for Python made the first by encrypt_at_round(b"hello, entrain", 1000), and opened the second, which is
// ours without chance.
func TestTimelockedAsByOthers(t *testing.T) {
	const theirs = "8d3383e220074112159653540b90f67c5dc8aedd640b97bd9ac5bc69da2505296ef24d060bbabed0b2ed1310c0dc0d4d075c231b58de31c99c466b49f2815a20" +
		"2a225c9cf3db9d9677ff6d45250e6df45001ba782059a545c67a580f77fbe22b20000000000000008df2d6c51f80c9e38531200043f4fd565cb0a868d762d71a" +
		"4a6a4f263c61faeb200000000000000040e1d21e3dc9baf4014834a1e4ca6d693d9307f4ed95c899ce61a973edfdf2e13a000000000000001e00000000000000" +
		"122eaedb63d518d4bb86ea3b447172cef233e40c078915e08bf69ed678ff0c0000000000000075fe33e22e4cfbab4b7f11d008000000000000004145535f4743" +
		"4d5f"
	locked, err := hex.DecodeString(theirs)
	if err != nil {
		t.Fatal(err)
	}
	if msg, err := open(locked, pulse); err != nil || string(msg) != "hello, entrain" {
		t.Errorf("what others encrypted is %q, %v", msg, err)
	}
	ours, err := timelock([]byte("hello, entrain"), pulseRound, constant(7))
	if err != nil {
		t.Fatal(err)
	}
	if h := hex.EncodeToString(sum(ours)); h != "ec0659886306eeff087930a32561a48b18d26e659cb74975bd9e44bc4b2c20db" {
		t.Errorf("what we encrypt has the hash %s", h)
	}
	if msg, err := open(ours, pulse); err != nil || string(msg) != "hello, entrain" {
		t.Errorf("what we encrypted is %q, %v", msg, err)
	}
	if other, err := timelock([]byte("hello, entrain"), pulseRound+1, constant(7)); err != nil {
		t.Error(err)
	} else if _, err := open(other, pulse); err == nil {
		t.Error("the signature of another round opens it")
	}
}

func sum(b []byte) []byte {
	h := sha256.Sum256(b)
	return h[:]
}

// A subnet whose epochs have 50 blocks, and one whose owner has an epoch begin; the blocks are those that bittensor-drand 2.0.0 finds.
func TestWhenWeightsAreShown(t *testing.T) {
	for e, want := range map[schedule]uint64{
		{height: 10, last: 10, tempo: 50}:                            60,
		{height: 58, last: 10, tempo: 50}:                            60,
		{height: 59, last: 10, tempo: 50}:                            110, // the next block begins an epoch
		{height: 60, last: 60, tempo: 50}:                            110,
		{height: 91, last: 80, pending: 95, tempo: 20}:               95,
		{height: 94, last: 80, pending: 95, tempo: 20}:               115,
		{height: 91, last: 80, pending: 500, tempo: 20}:              100,
		{height: 300, last: 80, tempo: 20}:                           321, // one is overdue
		{height: 900, last: 890, tempo: 360, idle: 50401}:            1261,
		{height: 7, last: 7, pending: 9, tempo: 360}:                 9,
		{height: 1 << 40, last: 1<<40 - 359, pending: 0, tempo: 360}: 1<<40 + 361,
		{height: 1 << 40, last: 1<<40 - 358, pending: 0, tempo: 360}: 1<<40 + 2,
	} {
		if got := e.shows(1); got != want {
			t.Errorf("%+v shows weights in block %d, want %d", e, got, want)
		}
		if got := e.shows(3); got != want+2*e.tempo {
			t.Errorf("%+v shows weights after three epochs in block %d, want %d", e, got, want+2*e.tempo)
		}
	}
}

// others returns what a program for Python with the package bittensor-drand 2.0.0 prints: it is subtensor's own code in Rust.
func others(t *testing.T, script string, args ...string) []string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil || exec.Command(python, "-c", "from bittensor_drand import get_encrypted_commit_v2").Run() != nil {
		t.Skip("python3 with bittensor-drand is missing: pip install bittensor-drand==2.0.0")
	}
	var fault strings.Builder
	cmd := exec.CommandContext(t.Context(), python, append([]string{"-c", script}, args...)...)
	cmd.Stderr = &fault
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &fault)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

func TestOthersOpenWhatWeTimelock(t *testing.T) {
	for n, random := range map[int]io.Reader{1: rand.Reader, 67: rand.Reader, 4000: rand.Reader, 14: constant(7)} {
		msg := bytes.Repeat([]byte("hello, entrain"), n)[:n]
		locked, err := timelock(msg, pulseRound, random)
		if err != nil {
			t.Fatal(err)
		}
		data := binary.LittleEndian.AppendUint64(appendBytes(nil, locked), pulseRound)
		got := others(t, `import sys, bittensor_drand as b
print(b.decrypt_with_signature(bytes.fromhex(sys.argv[1]), sys.argv[2]).hex())
print(b.encrypt_at_round(bytes.fromhex(sys.argv[3]), int(sys.argv[4]))[0].hex())`, hex.EncodeToString(data), pulse, hex.EncodeToString(msg), fmt.Sprint(pulseRound))
		if want := hex.EncodeToString(msg); got[0] != want {
			t.Errorf("others read %.80s, want %.80s", got[0], want)
		}
		data, err = hex.DecodeString(got[1])
		if err != nil {
			t.Fatal(err)
		}
		if back, err := open((&reader{b: data}).bytes(), pulse); err != nil || !bytes.Equal(back, msg) {
			t.Errorf("what others encrypted is %.80x, %v", back, err)
		}
	}
}

// With blocks of 3,000 seconds, 1,000 rounds, others find the same block for every schedule.
func TestOthersShowInTheSameBlock(t *testing.T) {
	const seed = 5
	random := mathrand.New(mathrand.NewPCG(seed, seed))
	var list [][6]uint64
	for range 300 {
		tempo := 1 + random.Uint64N(400)
		height := 1000 + random.Uint64N(1000)
		pending := uint64(0)
		if random.IntN(3) == 0 {
			pending = height - 100 + random.Uint64N(200)
		}
		idle := random.Uint64N(400)
		if random.IntN(10) == 0 {
			idle += tempoMax + 1
		}
		list = append(list, [6]uint64{height, height - random.Uint64N(tempo+20), pending, idle, tempo, 1 + random.Uint64N(4)})
	}
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	lines := others(t, `import sys, json, time, bittensor_drand as b
for height, last, pending, idle, tempo, period in json.loads(sys.argv[1]):
    before = int(time.time())
    _, round = b.get_encrypted_commit_v2([0], [1], 0, last, pending, 0, tempo, idle, height, period, 3000.0, bytes(32))
    print(round - (before - 1692803367) // 3)`, string(text))
	for i, x := range list {
		var rounds uint64
		if _, err := fmt.Sscan(lines[i], &rounds); err != nil {
			t.Fatal(err)
		}
		e := schedule{height: x[0], last: x[1], pending: x[2], idle: x[3], tempo: x[4]}
		if want := x[0] + rounds/1000 - settling; e.shows(x[5]) != want {
			t.Errorf("%+v shows weights after %d epochs in block %d, others in %d", e, x[5], e.shows(x[5]), want)
		}
	}
}

// Wherever in an epoch weights are encrypted, the chain shows them by itself in the block that SetWeights said, which is after the first one
// of the epoch in which they count.
func TestTheChainShowsTimelockedWeights(t *testing.T) {
	n, s, ctx := worldOf(t, true)
	n.put([]byte{1}, module, "CommitRevealWeightsEnabled", s.netuid())
	if err := s.CanSetWeights(ctx); err != nil {
		t.Error(err)
	}
	for place := range 9 {
		for range place {
			n.pass()
		}
		height := uint64(len(n.blocks)) - 1
		e := schedule{height: height, last: n.last, tempo: 7}
		in := time.Duration(e.shows(2)+settling-height) * blockTime
		// The round falls on the one whose signature is known.
		n.start = quicknetStart + pulseRound*quicknetPeriod - uint64(in/time.Second) - height*uint64(blockTime/time.Second)
		n.put(binary.LittleEndian.AppendUint64(nil, 1000*(n.start+height*uint64(blockTime/time.Second))), "Timestamp", "Now")
		scores := map[uint16]float64{0: 1, 1: float64(place + 2)}
		hidden, err := s.SetWeights(ctx, alice(t), scores)
		if err != nil || hidden != in {
			t.Fatalf("encrypted at place %d: hidden for %v, %v, want %v", place, hidden, err, in)
		}
		want := map[uint16]uint16{0: uint16(65535/float64(place+2) + 0.5), 1: 65535}
		for uint64(len(n.blocks))-1 < height+uint64(in/blockTime) {
			if row, err := s.Weights(ctx, 0); err != nil || maps.Equal(row, want) {
				t.Fatalf("encrypted at place %d: shown %d blocks later, and not after %d", place, uint64(len(n.blocks))-1-height, in/blockTime)
			}
			n.pass()
		}
		if row, err := s.Weights(ctx, 0); err != nil || !maps.Equal(row, want) {
			t.Errorf("encrypted at place %d: the weights are %v, %v, want %v", place, row, err, want)
		}
		if begun := uint64(len(n.blocks)) - 1 - n.last; begun != settling {
			t.Errorf("encrypted at place %d: shown %d blocks after the epoch began", place, begun)
		}
	}
}

func TestWeightsThatCannotBeTimelocked(t *testing.T) {
	n, s, ctx := worldOf(t, true)
	n.put([]byte{1}, module, "CommitRevealWeightsEnabled", s.netuid())
	n.pass()
	fails := func(want string) {
		t.Helper()
		if _, err := s.SetWeights(ctx, alice(t), map[uint16]float64{0: 1, 1: 1}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	n.fast = true
	fails("rate limit")
	n.fast = false
	if _, err := s.SetWeights(ctx, seeded(t, strings.Repeat("07", 32)), map[uint16]float64{0: 1}); err == nil || !strings.Contains(err.Error(), "register the hotkey first") {
		t.Errorf("encrypted by a stranger: %v", err)
	}
	// What the chain would only find when it shows them. A hotkey may give all weight to itself, and a subnet's owner needs no permit.
	for _, c := range []struct {
		k      Key
		scores map[uint16]float64
		want   string
	}{
		{alice(t), map[uint16]float64{1: 1}, "min_allowed_weights"},
		{alice(t), map[uint16]float64{0: 1}, ""},
		{bob(t), map[uint16]float64{0: 1, 1: 1}, "no validator's permit"},
		{bob(t), map[uint16]float64{1: 1}, ""},
	} {
		if _, err := s.SetWeights(ctx, c.k, c.scores); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v by %v: %v, want %q", c.scores, c.k.Account(), err, c.want)
		}
	}
	owner := bob(t).Account()
	n.put(owner[:], module, "SubnetOwnerHotkey", s.netuid())
	if _, err := s.SetWeights(ctx, bob(t), map[uint16]float64{0: 1, 1: 1}); err != nil {
		t.Errorf("by the subnet's owner: %v", err)
	}
	n.kept = map[uint64][]lockedWeights{} // the rounds are not known here

	n.put([]byte{0, 0}, module, "Tempo", s.netuid())
	fails("its tempo is 0")
	n.put([]byte{7, 0}, module, "Tempo", s.netuid())
	n.put(bytes.Repeat([]byte{255}, 8), module, epochItem, s.netuid())
	fails("ask another endpoint")
	n.put(make([]byte, 7), module, epochItem, s.netuid())
	fails(errShort.Error())
	n.put(make([]byte, 8), module, epochItem, s.netuid())
	n.put(make([]byte, 8), "Timestamp", "Now")
	fails("ask another endpoint")

	n.put([]byte{timelockVersion + 1, 0}, module, "CommitRevealWeightsVersion")
	fails("version 5 of the chain's rules")
	if err := s.CanSetWeights(ctx); err == nil || !strings.Contains(err.Error(), "install a newer one") {
		t.Errorf("a validator that cannot timelock weights starts: %v", err)
	}
	n.put([]byte{timelockVersion, 0}, module, "CommitRevealWeightsVersion")
	n.drop = true
	n.pass()
	fails("expired")
	n.Close()
	fails("does not answer")

	c, err := Dial(ctx, newNode(t, "SudoTransactionExtension", true).URL)
	if err != nil {
		t.Fatal(err)
	}
	if err := (Subnet{Client: c}).CanSetWeights(ctx); err == nil || !strings.Contains(err.Error(), "SudoTransactionExtension") {
		t.Errorf("a validator whose transactions nobody takes starts: %v", err)
	}
}
