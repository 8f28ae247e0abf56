package data

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/bucket/mem"
)

// inBucket publishes the set in dir to a bucket in memory.
func inBucket(t *testing.T, w *mem.World, dir string, m Manifest, name string) bucket.Location {
	t.Helper()
	own := bucket.Location{Endpoint: "host", Bucket: name, Prefix: "sets/big", AccessKey: "key", SecretKey: "TOPSECRET"}
	w.Make(own)
	store, err := w.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	if err := publish(t.Context(), dir, m, store, nil); err != nil {
		t.Fatal(err)
	}
	return own
}

func TestSetInABucketIsTheSet(t *testing.T) {
	dir, m := bigSet(t)
	want := mustOpen(t, dir, m, Options{SequenceTokens: 1000})
	w := mem.New(time.Now, 1)
	at := inBucket(t, w, dir, m, "data")
	o := quick()
	o.S3 = w.Open
	sameSequences(t, mustOpenURL(t, m, o, at.URL()), want)
	sameSequences(t, mustOpenURL(t, m, o, "s3://host/data/sets/big/?tls=0"), want)
	o.LookAhead, o.Verify = -1, true
	sameSequences(t, mustOpenURL(t, m, o, at.URL()), want)
}

// Buckets and static hosts stand in for each other.
func TestBucketThatLiesIsLeftForAnother(t *testing.T) {
	dir, m := bigSet(t)
	want := mustOpen(t, dir, m, Options{SequenceTokens: 1000})
	w := mem.New(time.Now, 1)
	liar, failing, honest := inBucket(t, w, dir, m, "liar"), inBucket(t, w, dir, m, "failing"), inBucket(t, w, dir, m, "honest")
	o := quick()
	o.S3 = w.Open
	o.Attempts = 12
	w.Break(liar, mem.Faults{Corrupt: 500, Cut: 300})
	w.Break(failing, mem.Faults{Fail: 700})
	sameSequences(t, mustOpenURL(t, m, o, liar.URL(), failing.URL(), honest.URL()), want)
	w.Break(honest, mem.Faults{Refuse: true})
	sameSequences(t, mustOpenURL(t, m, o, honest.URL(), serve(t, Handler(dir, m))), want)
}

func TestBucketOfAnotherSetIsRefused(t *testing.T) {
	dir, m := bigSet(t)
	w := mem.New(time.Now, 1)
	at := inBucket(t, w, dir, m, "data")
	o := quick()
	o.S3 = w.Open
	other := m
	other.Name = "another"
	for name, address := range map[string]string{"other set": at.URL(), "no such bucket": strings.Replace(at.URL(), "data", "none", 1), "no location": "s3://key:TOPSECRET@host"} {
		_, err := OpenURL(t.Context(), []string{address}, other.Hash(), o)
		if err == nil || strings.Contains(err.Error(), "TOPSECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.Break(at, mem.Faults{Serve: func(key string, b []byte) []byte {
		if strings.HasPrefix(filepath.Base(key), "train-") || strings.HasSuffix(key, leavesFile) {
			return bytes.ToUpper(b)
		}
		return b
	}})
	s := mustOpenURL(t, m, o, at.URL())
	var corrupt *CorruptError
	if err := s.Read(0, make([]uint32, 1001)); !errors.As(err, &corrupt) || strings.Contains(err.Error(), "TOPSECRET") {
		t.Errorf("reading what was changed: %v", err)
	}
}

func TestPublishSendsWhatIsMissing(t *testing.T) {
	dir, m := bigSet(t)
	w := mem.New(time.Now, 1)
	at := inBucket(t, w, dir, m, "data")
	store, err := w.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), m.Shards[1].File); err != nil {
		t.Fatal(err)
	}
	var sent []string
	last := ""
	err = publish(t.Context(), dir, m, store, func(file string, bytes int64, new bool) {
		info, err := os.Stat(filepath.Join(dir, file))
		if err != nil || info.Size() != bytes {
			t.Errorf("%s is said to have %d bytes: %v", file, bytes, err)
		}
		if last = file; new {
			sent = append(sent, file)
		}
	})
	if err != nil || len(sent) != 1 || sent[0] != m.Shards[1].File || last != manifestFile {
		t.Errorf("sent are %v, the last file is %s: %v", sent, last, err)
	}
	if _, err := store.Stat(t.Context(), publishingFile); !errors.Is(err, bucket.ErrMissing) {
		t.Errorf("what marks an upload is still there: %v", err)
	}
	if err := publish(t.Context(), t.TempDir(), m, store, nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a set that is not there: %v", err)
	}
}

// A set does not mix with what is in the bucket of another one, whose shards have the same sizes.
func TestPublishKeepsSetsApart(t *testing.T) {
	dir, m := bigSetOf(t, "ours")
	other, theirs := bigSetOf(t, "theirs")
	if m.Hash() == theirs.Hash() || m.Shards[0].Tokens != theirs.Shards[0].Tokens {
		t.Fatal("the sets do not have other bytes of the same size")
	}
	w := mem.New(time.Now, 1)
	at := inBucket(t, w, other, theirs, "data")
	store, err := w.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := publish(t.Context(), dir, m, store, nil); err == nil || !strings.Contains(err.Error(), theirs.Hash().String()) {
		t.Errorf("publishing over another set: %v", err)
	}
	// An upload of the other set broke off: its shards are there, and the manifest is not.
	if err := store.Delete(t.Context(), manifestFile); err != nil {
		t.Fatal(err)
	}
	if err := publish(t.Context(), dir, m, store, nil); err != nil {
		t.Fatal(err)
	}
	o := quick()
	o.S3, o.Verify = w.Open, true
	sameSequences(t, mustOpenURL(t, m, o, at.URL()), mustOpen(t, dir, m, Options{SequenceTokens: 1000}))
}

// An upload that broke off goes on with the files that are missing.
func TestPublishGoesOn(t *testing.T) {
	dir, m := bigSet(t)
	w := mem.New(time.Now, 1)
	own := bucket.Location{Endpoint: "host", Bucket: "data", AccessKey: "key", SecretKey: "TOPSECRET"}
	w.Make(own)
	store, err := w.Open(own)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	ctx, stop := context.WithCancel(t.Context())
	collect := func(file string, _ int64, new bool) {
		if new {
			sent = append(sent, file)
		}
		stop()
	}
	if err := publish(ctx, dir, m, store, collect); !errors.Is(err, context.Canceled) || len(sent) != 1 {
		t.Fatalf("an upload that is stopped after a file: sent %v, %v", sent, err)
	}
	if err := publish(t.Context(), dir, m, store, collect); err != nil {
		t.Fatal(err)
	}
	if want := m.files(); !slices.Equal(slices.Compact(sent), sent) || len(sent) != len(want)-missing(dir, want) {
		t.Errorf("sent are %v, of %v", sent, want)
	}
}

// missing counts the files that a directory lacks.
func missing(dir string, names []string) (n int) {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			n++
		}
	}
	return n
}
