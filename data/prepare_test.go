package data

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/wire"
	"pgregory.net/rapid"
)

// names lists the files in dir, each with the hash of its bytes, but for what is not finished or lets an
// interrupted Prepare go on.
func names(t *testing.T, dir string) map[string]wire.Hash {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	m := make(map[string]wire.Hash)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		m[e.Name()] = wire.SHA256(b)
	}
	return m
}

func equalNames(a, b map[string]wire.Hash) bool {
	for name := range a {
		if a[name] != b[name] {
			return false
		}
	}
	return len(a) == len(b)
}

func TestResultDoesNotDependOnWorkers(t *testing.T) {
	sources := files(t, text(20_000, "a"), nil, text(100, "b"))
	var first map[string]wire.Hash
	for _, workers := range []int{1, 2, 7} {
		dir := filepath.Join(t.TempDir(), "made", "for", "it")
		o := options()
		o.Workers = workers
		mustPrepare(t, dir, sources, o)
		got := names(t, dir)
		if first == nil {
			first = got
		}
		if !equalNames(first, got) {
			t.Errorf("%d workers: got %v, want %v", workers, got, first)
		}
	}
	if len(first) < 20 {
		t.Errorf("only %d files", len(first))
	}
}

// counting counts the bytes that are encoded.
type counting struct {
	tokenizer.Bytes
	bytes *atomic.Int64
}

func (c counting) Encode(dst []uint32, text []byte) []uint32 {
	c.bytes.Add(int64(len(text)))
	return c.Bytes.Encode(dst, text)
}

// manyTexts are 40 sources of 5000 bytes: 40 pieces for Prepare, 200 shards of 1024.
func manyTexts(t *testing.T) []string {
	var texts [][]byte
	for i := range 40 {
		texts = append(texts, text(5000, fmt.Sprint(i)))
	}
	return files(t, texts...)
}

func TestInterruptedPrepareGoesOn(t *testing.T) {
	sources := manyTexts(t)
	whole := t.TempDir()
	mustPrepare(t, whole, sources, options())
	dir := t.TempDir()
	var work atomic.Int64
	o := options()
	o.Tokenizer = counting{bytes: &work}
	o.Workers = 2
	interruptions := 0
	for done := 0; ; {
		ctx, cancel := context.WithCancel(t.Context())
		var last Progress
		o.Progress = func(p Progress) {
			if last = p; p.Shards > done+40 {
				cancel()
			}
		}
		m, err := Prepare(ctx, dir, sources, o)
		cancel()
		if err == nil {
			if want := (Progress{200_000, 200_000, m.Tokens + m.HeldOutTokens, 0, len(m.Shards) + len(m.HeldOut), done}); last != want {
				t.Errorf("got %+v, want %+v", last, want)
			}
			break
		}
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := ReadManifest(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the interrupted set has a manifest: %v", err)
		}
		if got := names(t, dir); len(got) != last.Shards+1 {
			t.Errorf("%d shards are reported, %d files are there", last.Shards, len(got))
		}
		done = last.Shards
		interruptions++
	}
	if interruptions < 3 {
		t.Errorf("interrupted %d times", interruptions)
	}
	// What was on its way when the interruption came is encoded again: a few pieces each time.
	if most := 200_000 + int64(interruptions)*8*5000; work.Load() > most {
		t.Errorf("%d bytes were encoded, at most %d need be", work.Load(), most)
	}
	if !equalNames(names(t, dir), names(t, whole)) {
		t.Error("the completed set differs")
	}
	if _, err := os.Stat(filepath.Join(dir, resumeFile)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file to go on from is still there: %v", err)
	}
}

// A killed process leaves the directory as it was at that moment.
func TestKilledPrepareGoesOn(t *testing.T) {
	sources := manyTexts(t)
	whole, killed := t.TempDir(), t.TempDir()
	o := options()
	copied := false
	o.Progress = func(p Progress) {
		if p.Shards >= 100 && !copied {
			copied = true
			for name := range names(t, whole) {
				copyFile(t, filepath.Join(whole, name), filepath.Join(killed, name))
			}
			copyFile(t, filepath.Join(whole, resumeFile), filepath.Join(killed, resumeFile))
		}
	}
	m := mustPrepare(t, whole, sources, o)
	for _, c := range []struct {
		name   string
		change func(dir string)
		most   int64 // bytes that are encoded
	}{
		{"untouched", func(string) {}, 140_000},
		{"shard changed", func(dir string) { damage(t, filepath.Join(dir, "train-00003.bin"), flip(7)) }, 200_000},
		{"shard missing", func(dir string) { os.Remove(filepath.Join(dir, "train-00004.bin")) }, 200_000},
		{"file to go on from changed", func(dir string) { damage(t, filepath.Join(dir, resumeFile), flip(900)) }, 200_000},
		{"file to go on from is empty", func(dir string) { os.WriteFile(filepath.Join(dir, resumeFile), nil, 0o600) }, 200_000},
	} {
		dir := t.TempDir()
		for _, name := range slices.Sorted(maps.Keys(names(t, killed))) {
			copyFile(t, filepath.Join(killed, name), filepath.Join(dir, name))
		}
		copyFile(t, filepath.Join(killed, resumeFile), filepath.Join(dir, resumeFile))
		c.change(dir)
		var work atomic.Int64
		o := options()
		o.Tokenizer = counting{bytes: &work}
		if got := mustPrepare(t, dir, sources, o); got.Hash() != m.Hash() {
			t.Errorf("%s: got another set", c.name)
		}
		if !equalNames(names(t, dir), names(t, whole)) {
			t.Errorf("%s: got other files", c.name)
		}
		if work.Load() > c.most {
			t.Errorf("%s: %d bytes were encoded, want at most %d", c.name, work.Load(), c.most)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestSourceThatChangesWhileItIsReadIsRefused(t *testing.T) {
	sources := manyTexts(t)
	o := options()
	grown := false
	o.Progress = func(p Progress) {
		if p.Shards > 50 && !grown {
			grown = true
			if err := os.WriteFile(sources[0], text(6000, "longer"), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	dir := t.TempDir()
	if _, err := Prepare(t.Context(), dir, sources, o); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadManifest(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a manifest: %v", err)
	}
	want := mustPrepare(t, t.TempDir(), sources, options())
	if got := mustPrepare(t, dir, sources, options()); got.Hash() != want.Hash() {
		t.Error("prepared again, the set has what the source held before")
	}
}

// What is left by one plan is of no use to another.
func TestChangedSourceIsReadAnew(t *testing.T) {
	sources := manyTexts(t)
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	o := options()
	o.Progress = func(p Progress) {
		if p.Shards > 50 {
			cancel()
		}
	}
	if _, err := Prepare(ctx, dir, sources, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := os.WriteFile(sources[0], text(5000, "another"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := mustPrepare(t, t.TempDir(), sources, options())
	if got := mustPrepare(t, dir, sources, options()); got.Hash() != want.Hash() {
		t.Error("the set has what the source held before")
	}
}

func TestAnotherSetIsNotOverwritten(t *testing.T) {
	a := text(5000, "a")
	dir := t.TempDir()
	mustPrepare(t, dir, files(t, a), options())
	before := names(t, dir)
	changed := slices.Clone(a)
	changed[2500] ^= 1
	for _, c := range []struct {
		name    string
		source  []byte
		options func(*PrepareOptions)
	}{
		{"other name", a, func(o *PrepareOptions) { o.Name = "b" }},
		{"other shard size", a, func(o *PrepareOptions) { o.ShardTokens = 2048 }},
		{"other held-out share", a, func(o *PrepareOptions) { o.HeldOutPermille = 0 }},
		{"other text", changed, nil},
		{"longer text", append(slices.Clone(a), a...), nil},
		{"shorter text", a[:2048], func(o *PrepareOptions) { o.HeldOutPermille = 0 }},
		{"text that ends with a shard", a[:1023], func(o *PrepareOptions) { o.HeldOutPermille = 0 }},
	} {
		o := options()
		if c.options != nil {
			c.options(&o)
		}
		if _, err := Prepare(t.Context(), dir, files(t, c.source), o); err == nil || !strings.Contains(err.Error(), "choose another directory") {
			t.Errorf("%s: got %v", c.name, err)
		}
		if !equalNames(before, names(t, dir)) {
			t.Fatalf("%s: files changed", c.name)
		}
	}
	damage(t, filepath.Join(dir, manifestFile), flip(0))
	if _, err := Prepare(t.Context(), dir, files(t, a), options()); err == nil || !strings.Contains(err.Error(), "delete the manifest") {
		t.Errorf("damaged manifest: got %v", err)
	}
}

func TestTokenFilesAreTakenAsTheyAre(t *testing.T) {
	for _, format := range []source.Format{source.Uint16, source.Uint32} {
		var b []byte
		var want []uint32
		for i := range uint32(5000) {
			want = append(want, i*13%60_000)
			if format == source.Uint16 {
				b = binary.LittleEndian.AppendUint16(b, uint16(want[i]))
			} else {
				b = binary.LittleEndian.AppendUint32(b, want[i])
			}
		}
		dir := t.TempDir()
		o := options()
		o.Format, o.Tokenizer = format, wide{}
		m := mustPrepare(t, dir, files(t, b), o)
		if m.Tokens != 4500 || m.HeldOutTokens != 500 || m.TokenBytes != 4 {
			t.Errorf("got %+v", m)
		}
		s := mustOpen(t, dir, m, Options{SequenceTokens: 4499})
		if got := stream(t, s.train); !slices.Equal(got, want[:4500]) {
			t.Errorf("format %d: tokens differ", format)
		}
		dst := make([]uint32, 4500)
		s = mustOpen(t, dir, m, Options{SequenceTokens: 499})
		if err := s.HeldOut().Read(0, dst[:500]); err != nil || !slices.Equal(dst[:500], want[4500:]) {
			t.Errorf("format %d: held-out tokens differ, %v", format, err)
		}
	}
}

func TestSourcesAndOptionsThatAreRefused(t *testing.T) {
	good := text(3000, "a")
	for _, c := range []struct {
		name    string
		sources []string
		options func(*PrepareOptions)
		want    string
	}{
		{"no sources", nil, nil, "name a source"},
		{"missing source", []string{filepath.Join(t.TempDir(), "none")}, nil, "none"},
		{"directory", []string{t.TempDir()}, nil, "is not a file"},
		{"nothing in them", files(t, nil, nil), nil, "no tokens to train on"},
		{"odd token file", files(t, good[:2999]), func(o *PrepareOptions) { o.Format = source.Uint16 }, "2999 bytes"},
		{"tokens beyond the vocabulary", files(t, []byte{1, 0, 2, 0, 0, 1}), func(o *PrepareOptions) { o.Format = source.Uint16 }, "token 2 is 256"},
		{"no tokenizer", files(t, good), func(o *PrepareOptions) { o.Tokenizer = nil }, "tokenizer"},
		{"all held out", files(t, good), func(o *PrepareOptions) { o.HeldOutPermille = 501 }, "501"},
		{"bad name", files(t, good), func(o *PrepareOptions) { o.Name = "../x" }, `"../x"`},
		{"tiny shards", files(t, good), func(o *PrepareOptions) { o.ShardTokens = 1 }, "shard_tokens"},
	} {
		o := options()
		if c.options != nil {
			c.options(&o)
		}
		if _, err := Prepare(t.Context(), t.TempDir(), c.sources, o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
}

func TestPrepareFailsWhereTheDiskDoes(t *testing.T) {
	// A directory stands where a shard should be written: the rename fails as it does on a full disk.
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "train-00001.bin", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := Prepare(t.Context(), dir, files(t, text(50_000, "a")), options())
	if err == nil || !strings.Contains(err.Error(), "train-00001.bin") {
		t.Errorf("got %v", err)
	}
	if _, err := ReadManifest(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failed set has a manifest: %v", err)
	}
}

// Any bytes, cut into any number of sources, come back in the order they were given, each followed by the end of its part.
func TestNoTokenIsLostOrMoved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Without zero bytes: their token is also that of an end, and where parts end could not be told.
		texts := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange(1, 255), 0, 1500), 1, 4).Draw(rt, "texts")
		o := options()
		o.HeldOutPermille = rapid.Uint32Range(0, 500).Draw(rt, "permille")
		o.Workers = 2
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		m, err := Prepare(t.Context(), dir, files(t, texts...), o)
		total := 0
		for _, b := range texts {
			total += len(b)
		}
		if err != nil {
			if total > 0 && !strings.Contains(err.Error(), "no tokens to train on") {
				rt.Fatal(err)
			}
			return
		}
		train, heldOut := readBack(t, dir, m.Shards), readBack(t, dir, m.HeldOut)
		for _, b := range texts {
			if len(b) == 0 {
				continue
			}
			n := len(b)
			for n >= 0 && !isSplit(b, n, train, heldOut) {
				n--
			}
			if n < 0 {
				rt.Fatalf("%d bytes are not at the front of what is left of the parts", len(b))
			}
			train, heldOut = train[ended(n):], heldOut[ended(len(b)-n):]
		}
		if len(train)+len(heldOut) > 0 {
			rt.Errorf("%d and %d tokens more than the sources have", len(train), len(heldOut))
		}
	})
}

// ended is how many tokens n bytes of a part take: one more, unless there are none.
func ended(n int) int {
	if n == 0 {
		return 0
	}
	return n + 1
}

// isSplit reports whether b cut at n stands at the front of the parts, ended.
func isSplit(b []byte, n int, train, heldOut []uint32) bool {
	fits := func(tokens []uint32, b []byte) bool {
		return len(b) == 0 || len(tokens) > len(b) && slices.Equal(tokens[:len(b)+1], append(tokenizer.Bytes{}.Encode(nil, b), 0))
	}
	return fits(train, b[:n]) && fits(heldOut, b[n:])
}

// readBack reads shards without the package's own reader.
func readBack(t *testing.T, dir string, shards []Shard) (tokens []uint32) {
	t.Helper()
	for _, s := range shards {
		b, err := os.ReadFile(filepath.Join(dir, s.File))
		if err != nil {
			t.Fatal(err)
		}
		for pair := range slices.Chunk(b, 2) {
			tokens = append(tokens, uint32(binary.LittleEndian.Uint16(pair)))
		}
	}
	return tokens
}

func BenchmarkPrepare(b *testing.B) {
	path := filepath.Join(b.TempDir(), "text")
	sixteen := bytes.Repeat(text(1<<20, "x"), 16)
	if err := os.WriteFile(path, sixteen, 0o600); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(sixteen)))
	o := options()
	o.ShardTokens = 1 << 20
	dir := b.TempDir()
	for b.Loop() {
		if err := os.RemoveAll(dir); err != nil {
			b.Fatal(err)
		}
		if _, err := Prepare(b.Context(), dir, []string{path}, o); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads sequences of 1024 tokens in random order from a set that does not fit the cache.
func BenchmarkRead(b *testing.B) {
	dir := b.TempDir()
	o := options()
	o.ShardTokens = 1 << 22
	path := filepath.Join(b.TempDir(), "text")
	if err := os.WriteFile(path, bytes.Repeat(text(1<<20, "x"), 16), 0o600); err != nil {
		b.Fatal(err)
	}
	m, err := Prepare(b.Context(), dir, []string{path}, o)
	if err != nil {
		b.Fatal(err)
	}
	s, err := Open(b.Context(), dir, m.Hash(), Options{SequenceTokens: 1024, Verify: true, CacheBytes: 1})
	if err != nil {
		b.Fatal(err)
	}
	dst := make([]uint32, 1025)
	var i uint64
	for b.Loop() {
		if err := s.Read(i, dst); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
