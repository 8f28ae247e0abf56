package lp2p

import (
	"bytes"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/p2p"
)

func TestABucketSharesOutASecond(t *testing.T) {
	b, now := newBucket(1000), time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		size  int
		wait  time.Duration
		ok    bool
	}{
		{0, 600, 0, true},
		{0, 400, 0, true},
		{0, 500, 500 * time.Millisecond, true}, // a second's worth is gone
		{0, 5000, 0, false},                    // would wait 5.5 s
		{0, 4500, 5 * time.Second, true},       // what was refused took nothing
		{5 * time.Second, 100, 100 * time.Millisecond, true},
		{time.Hour, 1000, 0, true},
		{0, 1, time.Millisecond, true}, // an hour's worth is not saved up
	} {
		now = now.Add(c.after)
		if wait, ok := b.take(c.size, now, uploadPatience); ok != c.ok || (wait-c.wait).Abs() > time.Microsecond {
			t.Errorf("%d bytes after %s: wait %s, %v; want %s, %v", c.size, c.after, wait, ok, c.wait, c.ok)
		}
	}
	if wait, ok := newBucket(0).take(1<<30, now, 0); wait != 0 || !ok {
		t.Errorf("without a limit: wait %s, %v", wait, ok)
	}
}

// Strangers do not line up behind others; members line up behind strangers.
func TestStrangersLeaveUploadToMembers(t *testing.T) {
	b, now := newBucket(1000), time.Unix(1000, 0)
	taken := 0
	for range 100 {
		if _, ok := b.take(500, now, strangersQueue); ok {
			taken++
		}
	}
	if taken != 5 { // a second's worth, and the queue, and one that finds it as long as it may be
		t.Errorf("strangers took %d answers", taken)
	}
	if wait, ok := b.take(500, now, uploadPatience); !ok || wait != 2*time.Second {
		t.Errorf("a member waits %s, %v", wait, ok)
	}
}

// Who fetches from a peer with a limit waits, asks again when told that the peer is busy,
// and gets everything; nobody holds that against the other.
func TestAFetchFromALimitedPeer(t *testing.T) {
	t.Parallel()
	ps := together(t, 2, func(o *Options) { o.Upload = 4 << 20 })
	data := blob(40*merkle.ChunkBytes, 3)
	ref := put(t, data, ps[1])
	began := time.Now()
	got, err := fetch(t, ps[0], p2p.Fetch{Ref: ref, From: []key.Public{ps[1].Self()}})
	if err != nil || !bytes.Equal(got, data) {
		t.Fatal(err)
	}
	if least := 1400 * time.Millisecond; time.Since(began) < least { // 10 MiB, of which 4 MiB at once
		t.Errorf("it took %s, want at least %s", time.Since(began), least)
	}
	if ps[0].gate.weight(ps[1].Self(), time.Now()) != 0 || ps[1].gate.weight(ps[0].Self(), time.Now()) != 0 {
		t.Error("honest peers hold something against each other")
	}
	if _, err := New(Options{Key: secret(1), Handler: ps[0].options.Handler, Upload: UploadMin - 1}); err == nil {
		t.Error("a limit that lets nobody be served was taken")
	}
}

// In any span of time no more is let through than the rate, and a second's worth.
func TestABucketKeepsItsRate(t *testing.T) {
	const rate = UploadMin
	b, began := newBucket(rate), time.Unix(1000, 0)
	sent := 0
	for now := began; now.Before(began.Add(time.Minute)); now = now.Add(50 * time.Millisecond) {
		size := p2p.AnswerHeadBytes + merkle.ChunkBytes
		if wait, ok := b.take(size, now, uploadPatience); ok && now.Add(wait).Before(began.Add(time.Minute)) {
			sent += size
		}
	}
	if most, least := 61*rate, 50*rate; sent > most || sent < least {
		t.Errorf("%d bytes in a minute, want %d to %d", sent, least, most)
	}
}
