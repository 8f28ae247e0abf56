package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/prng"
	_ "github.com/entrain-network/entrain/tests/heap"
	_ "github.com/entrain-network/entrain/tests/ramdisk"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// text is n bytes of lines of printable characters.
func text(n int, label string) []byte {
	r := prng.New(wire.Hash{}, label)
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.Uint64n(26))
		if r.Uint64n(40) == 0 {
			b[i] = '\n'
		}
	}
	return b
}

// files writes files named 0, 1, ... and returns their paths.
func files(t *testing.T, contents ...[]byte) []string {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for i, b := range contents {
		path := filepath.Join(dir, fmt.Sprint(i))
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

func options() PrepareOptions {
	return PrepareOptions{Name: "test", Tokenizer: tokenizer.Bytes{}, ShardTokens: 1024, HeldOutPermille: 100}
}

func mustPrepare(t *testing.T, dir string, sources []string, o PrepareOptions) Manifest {
	t.Helper()
	m, err := Prepare(t.Context(), dir, sources, o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func mustOpen(t *testing.T, dir string, m Manifest, o Options) *Set {
	t.Helper()
	s, err := Open(t.Context(), dir, m.Hash(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// stream is all tokens of a part, read in order of the text.
func stream(t *testing.T, p part) []uint32 {
	t.Helper()
	var tokens []uint32
	for k := range p.len() {
		dst := make([]uint32, p.seq+1)
		if err := p.read(k, dst); err != nil {
			t.Fatal(err)
		}
		if n := len(tokens); n > 0 && tokens[n-1] != dst[0] {
			t.Errorf("sequence %d begins with %d, the one before ends with %d", k, dst[0], tokens[n-1])
		}
		if k > 0 {
			dst = dst[1:]
		}
		tokens = append(tokens, dst...)
	}
	return tokens
}

// ids is what the parts of the texts should hold: each text, and the token that ends it.
func ids(texts ...[]byte) []uint32 {
	var want []uint32
	for _, b := range texts {
		want = append(tokenizer.Bytes{}.Encode(want, b), tokenizer.Bytes{}.End())
	}
	return want
}

func TestPreparedTextIsReadBack(t *testing.T) {
	a, b := text(5000, "a"), text(3001, "b")
	dir := t.TempDir()
	m := mustPrepare(t, dir, files(t, a, b), options())
	cutA := 4500 + bytes.IndexByte(a[4500:], '\n') + 1
	cutB := 2701 + bytes.IndexByte(b[2701:], '\n') + 1 // 3001 - 300 permille rounded down
	want, wantHeldOut := ids(a[:cutA], b[:cutB]), ids(a[cutA:], b[cutB:])
	if m.Tokens != uint64(len(want)) || m.HeldOutTokens != uint64(len(wantHeldOut)) {
		t.Errorf("got %d and %d tokens, want %d and %d", m.Tokens, m.HeldOutTokens, len(want), len(wantHeldOut))
	}
	for _, seq := range []uint32{1, 7, 64, 1023, 1024, 1025, 3000} {
		s := mustOpen(t, dir, m, Options{SequenceTokens: seq, Verify: seq == 7})
		got := stream(t, s.train)
		if n := (len(want)-1)/int(seq)*int(seq) + 1; !slices.Equal(got, want[:n]) {
			t.Errorf("sequences of %d: training tokens differ", seq)
		}
		if seq > 64 {
			continue
		}
		got = stream(t, s.heldOut.part)
		if n := (len(wantHeldOut)-1)/int(seq)*int(seq) + 1; !slices.Equal(got, wantHeldOut[:n]) {
			t.Errorf("sequences of %d: held-out tokens differ", seq)
		}
	}
}

func TestTextLargerThanAPieceIsReadBack(t *testing.T) {
	long := bytes.Repeat([]byte("é"), 1<<20) // no line end, characters across the pieces
	for _, b := range [][]byte{text(2<<20+17, "long"), long} {
		dir := t.TempDir()
		o := options()
		o.ShardTokens = 1 << 20
		o.HeldOutPermille = 0
		m := mustPrepare(t, dir, files(t, b), o)
		s := mustOpen(t, dir, m, Options{SequenceTokens: 1, CacheBytes: 1})
		if want := ids(b); s.Len() != uint64(len(want)-1) {
			t.Errorf("got %d sequences, want %d", s.Len(), len(want)-1)
		}
		s = mustOpen(t, dir, m, Options{SequenceTokens: uint32(len(b) / 4), CacheBytes: 1})
		if want := ids(b); !slices.Equal(stream(t, s.train), want[:len(b)/4*4+1]) {
			t.Error("tokens differ")
		}
	}
}

func TestEveryPassTakesEverySequenceOnceInItsOwnOrder(t *testing.T) {
	dir := t.TempDir()
	// Tokens that say where they are: sequence k begins with k*4.
	var b []byte
	for i := range uint32(4*300 + 1) {
		b = binary.LittleEndian.AppendUint32(b, i)
	}
	o := options()
	o.Tokenizer, o.Format, o.HeldOutPermille = wide{}, source.Uint32, 0
	m := mustPrepare(t, dir, files(t, b), o)
	read := func(seed wire.Hash, pass uint64) (order []uint32) {
		s := mustOpen(t, dir, m, Options{SequenceTokens: 4, Seed: seed})
		if s.Len() != 300 {
			t.Fatalf("got %d sequences", s.Len())
		}
		for i := range s.Len() {
			dst := make([]uint32, 5)
			if err := s.Read(pass*s.Len()+i, dst); err != nil {
				t.Fatal(err)
			}
			for j := range dst {
				if dst[j] != dst[0]+uint32(j) {
					t.Fatalf("sequence %d is %v", i, dst)
				}
			}
			order = append(order, dst[0]/4)
		}
		return order
	}
	orders := [][]uint32{read(wire.Hash{1}, 0), read(wire.Hash{1}, 1), read(wire.Hash{2}, 0), read(wire.Hash{1}, 1<<50)}
	for i, order := range orders {
		for j := range i {
			if slices.Equal(order, orders[j]) {
				t.Errorf("orders %d and %d are the same", i, j)
			}
		}
		sorted := slices.Sorted(slices.Values(order))
		for k := range sorted {
			if sorted[k] != uint32(k) {
				t.Fatalf("order %d lacks sequence %d", i, k)
			}
		}
	}
	if !slices.Equal(read(wire.Hash{1}, 1), orders[1]) {
		t.Error("a pass read again is in another order")
	}
}

// wide is a tokenizer of 100,000 tokens, so that tokens take 4 bytes.
type wide struct{ tokenizer.Bytes }

func (wide) Name() string  { return "wide" }
func (wide) Vocab() uint32 { return 100_000 }

func TestHeldOutIsBounded(t *testing.T) {
	dir := t.TempDir()
	m := mustPrepare(t, dir, files(t, text(9000, "x")), options())
	h := mustOpen(t, dir, m, Options{SequenceTokens: 100}).HeldOut()
	dst := make([]uint32, 101)
	if err := h.Read(h.Len()-1, dst); err != nil {
		t.Error(err)
	}
	if err := h.Read(h.Len(), dst); err == nil || !strings.Contains(err.Error(), "beyond") {
		t.Errorf("got %v", err)
	}
	o := options()
	o.HeldOutPermille = 0
	dir = t.TempDir()
	m = mustPrepare(t, dir, files(t, text(9000, "x")), o)
	if n := mustOpen(t, dir, m, Options{SequenceTokens: 100}).HeldOut().Len(); n != 0 {
		t.Errorf("got %d held-out sequences of none", n)
	}
}

func TestOpenRefusesAnotherDataSet(t *testing.T) {
	dir := t.TempDir()
	m := mustPrepare(t, dir, files(t, text(9000, "x")), options())
	if _, err := Open(t.Context(), dir, wire.Hash{1}, Options{SequenceTokens: 8}); err == nil || !strings.Contains(err.Error(), m.Hash().String()) {
		t.Errorf("other hash: got %v", err)
	}
	for _, seq := range []uint32{0, sequenceMax + 1, 9000} {
		if _, err := Open(t.Context(), dir, m.Hash(), Options{SequenceTokens: seq}); err == nil {
			t.Errorf("sequences of %d were opened", seq)
		}
	}
	if _, err := Open(t.Context(), t.TempDir(), m.Hash(), Options{SequenceTokens: 8}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("empty directory: got %v", err)
	}
}

// damage changes the file by f.
func damage(t *testing.T, path string, f func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, f(b), 0o600); err != nil {
		t.Fatal(err)
	}
}

func flip(at int) func([]byte) []byte {
	return func(b []byte) []byte {
		b[at] ^= 1
		return b
	}
}

func TestDamagedShardsAreNamed(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func([]byte) []byte
		want   string
	}{
		{"flipped bit", flip(2000), "root"},
		{"shortened", func(b []byte) []byte { return b[:len(b)-2] }, "2046 bytes, want 2048"},
		{"lengthened", func(b []byte) []byte { return append(b, 0, 0) }, "2050 bytes"},
	} {
		dir := t.TempDir()
		m := mustPrepare(t, dir, files(t, text(5000, "x")), options())
		path := filepath.Join(dir, "train-00002.bin")
		damage(t, path, c.damage)
		check := func(how string, err error) {
			t.Helper()
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) || corrupt.File != path || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "prepare the data again") {
				t.Errorf("%s, %s: got %v", c.name, how, err)
			}
		}
		_, err := Open(t.Context(), dir, m.Hash(), Options{SequenceTokens: 16, Verify: true})
		check("opened with Verify", err)
		s := mustOpen(t, dir, m, Options{SequenceTokens: 16})
		dst := make([]uint32, 17)
		if err := s.train.read(0, dst); err != nil {
			t.Errorf("%s: a whole shard is not read: %v", c.name, err)
		}
		check("read", s.train.read(2*1024/16, dst))
		// Preparing again repairs it, and keeps the others.
		var last Progress
		o := options()
		o.Progress = func(p Progress) { last = p }
		mustPrepare(t, dir, files(t, text(5000, "x")), o)
		if last.Shards != len(m.Shards)+1 || last.Kept != last.Shards-1 {
			t.Errorf("%s: repair ended with %+v", c.name, last)
		}
		if err := s.train.read(2*1024/16, dst); err != nil {
			t.Errorf("%s: after the repair: %v", c.name, err)
		}
	}
}

func TestShardThatVanishesOrChangesAfterItWasVerified(t *testing.T) {
	dir := t.TempDir()
	o := options()
	o.ShardTokens = 1 << 20
	m := mustPrepare(t, dir, files(t, text(1_200_000, "x")), o) // several chunks a shard
	s := mustOpen(t, dir, m, Options{SequenceTokens: 16, Verify: true, CacheBytes: 1})
	path := filepath.Join(dir, "train-00000.bin")
	damage(t, path, flip(merkle.ChunkBytes+5))
	dst := make([]uint32, 17)
	if err := s.train.read(0, dst); err != nil {
		t.Errorf("the first chunk is whole, but: %v", err)
	}
	var corrupt *CorruptError
	if err := s.train.read(merkle.ChunkBytes/2/16, dst); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "bytes 262144 to 524288 changed") {
		t.Errorf("changed: got %v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.train.read(0, dst); err != nil {
		t.Errorf("the first chunk is in memory, but: %v", err)
	}
	if err := s.train.read(2*merkle.ChunkBytes/2/16, dst); !errors.As(err, &corrupt) || !strings.Contains(err.Error(), "missing") {
		t.Errorf("removed: got %v", err)
	}
}

func TestTokensBeyondTheVocabularyAreRefused(t *testing.T) {
	// A set whose maker lied: its manifest matches its shard, whose tokens do not fit its vocabulary.
	dir := t.TempDir()
	b := bytes.Repeat([]byte{7, 0}, 100)
	b[20], b[21] = 0, 1
	if err := os.WriteFile(filepath.Join(dir, "train-00000.bin"), b, 0o600); err != nil {
		t.Fatal(err)
	}
	m := example()
	m.Tokens, m.Shards, m.HeldOutTokens, m.HeldOut = 100, []Shard{{"train-00000.bin", 100, 200, merkle.BlobRoot(b)}}, 0, nil
	if err := os.WriteFile(filepath.Join(dir, manifestFile), m.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	s := mustOpen(t, dir, m, Options{SequenceTokens: 4, Verify: true})
	dst := make([]uint32, 5)
	if err := s.train.read(0, dst); err != nil {
		t.Error(err)
	}
	if err := s.train.read(2, dst); err == nil || !strings.Contains(err.Error(), "token 10 is 256") {
		t.Errorf("got %v", err)
	}
}

func TestSetIsReadConcurrently(t *testing.T) {
	dir := t.TempDir()
	o := options()
	o.ShardTokens = 1 << 18
	m := mustPrepare(t, dir, files(t, text(1<<20, "x")), o)
	s := mustOpen(t, dir, m, Options{SequenceTokens: 1 << 14, CacheBytes: 2 * merkle.ChunkBytes})
	want := make([][]uint32, 2*s.Len())
	for i := range want {
		want[i] = make([]uint32, 1<<14+1)
		if err := s.Read(uint64(i), want[i]); err != nil {
			t.Fatal(err)
		}
	}
	fresh := mustOpen(t, dir, m, Options{SequenceTokens: 1 << 14, CacheBytes: 2 * merkle.ChunkBytes})
	var readers sync.WaitGroup
	for g := range 4 {
		readers.Go(func() {
			dst := make([]uint32, 1<<14+1)
			for j := range want {
				i := (j*7 + g*31) % len(want)
				if err := fresh.Read(uint64(i), dst); err != nil || !slices.Equal(dst, want[i]) {
					t.Errorf("sequence %d differs, %v", i, err)
				}
			}
		})
	}
	readers.Wait()
}

func TestOpticks(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Skipf("the go command, which knows where Newton's Opticks is, does not run: %v", err)
	}
	path := filepath.Join(strings.TrimSpace(string(root)), "src/testdata/Isaac.Newton-Opticks.txt")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Skipf("the Go source tree with Newton's Opticks is not installed: %v", err)
	}
	dir := t.TempDir()
	o := PrepareOptions{Name: "opticks", Tokenizer: tokenizer.Bytes{}, HeldOutPermille: 50}
	m := mustPrepare(t, dir, []string{path}, o)
	if m.Tokens+m.HeldOutTokens != uint64(len(b))+2 {
		t.Errorf("%d bytes became %d and %d tokens", len(b), m.Tokens, m.HeldOutTokens)
	}
	s := mustOpen(t, dir, m, Options{SequenceTokens: 128})
	t.Logf("%d bytes: %d tokens in %d sequences of 128, held out %d tokens in %d sequences", len(b), m.Tokens, s.Len(), m.HeldOutTokens, s.HeldOut().Len())
	dst := make([]uint32, 129)
	if err := s.HeldOut().Read(0, dst); err != nil {
		t.Fatal(err)
	}
	got, err := tokenizer.Bytes{}.Decode(nil, dst)
	if err != nil || !bytes.Equal(got, b[m.Tokens-1:][:129]) {
		t.Errorf("the held-out part begins %q, %v", got, err)
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	m := mustPrepare(t, dir, files(t, text(5000, "x")), options())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dir, m.Hash(), Options{SequenceTokens: 16, Verify: true}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
