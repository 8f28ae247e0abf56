package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/entrain-network/entrain/tests/campaign"
	"github.com/entrain-network/entrain/view"
)

// followedRun has room for enough members that light states lack filters, and members that are
// elected in turns: two of ten.
const followedRun = `
name = "followed"
steps = %d
[model]
hidden = 32
layers = 1
heads = 1
kv_heads = 1
head_dim = 32
ffn = 64
context = 32
[data]
location = %q
sequence = 32
[optimizer]
codec = "distro"
[optimizer.distro]
block = 8
top_k = 8
[batch]
start = 10
[learning_rate]
warmup = 2
[members]
capacity = 1024
min = 5
start = 10
witnesses = 2
missed_max = 4
[exchange]
aggregate = "followers"
[times]
waiting = "0s"
warmup = "1m"
round_train = "6s"
round_witness = "500ms"
cooldown = "5s"
epoch = "1h"
[trust]
verification_percent = 20
`

// watches counts the streams that a proxy of a replica serves.
type watches struct{ light, reports, whole, bytes atomic.Uint64 }

// proxied serves what a replica does, as one of the release before if old is set, which knows no
// light watches.
func proxied(t *testing.T, endpoint string, old bool, w *watches) func(string) string {
	t.Helper()
	at, err := url.Parse(endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(at)
			q := r.Out.URL.Query()
			switch {
			case !strings.HasSuffix(r.Out.URL.Path, "/watch"):
			case old:
				q.Del("light")
			case q.Get("light") == "1":
				w.light.Add(1)
			case q.Get("light") == "2":
				w.reports.Add(1)
			default:
				w.whole.Add(1)
			}
			r.Out.URL.RawQuery = q.Encode()
		},
		ModifyResponse: func(res *http.Response) error {
			if res.Request.URL.Query().Has("light") {
				res.Body = counted{res.Body, &w.bytes}
			}
			return nil
		},
	})
	t.Cleanup(p.Close)
	return func(name string) string { return map[string]string{"ENTRAIN_CHAIN": p.URL}[name] }
}

type counted struct {
	io.ReadCloser
	n *atomic.Uint64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.ReadCloser.Read(b)
	c.n.Add(uint64(n))
	return n, err
}

// Ten members follow, and are elected in turns. Most watch the run lightly while they are not, three
// over a replica that knows no light watches, and one is killed and comes back. All hold the same
// parameters in the end, and no result is lost but those of the one that was killed.
func TestFollowersWatchLightly(t *testing.T) {
	t.Parallel()
	campaign.Only(t)
	s := newShell(t)
	s.console.env = startReplica(t)
	dir := t.TempDir()
	corpus := s.data()
	const steps = 12
	s.ok("run", "create", "--few-witnesses", "-f", writeFile(t, filepath.Join(dir, "run.toml"), fmt.Sprintf(followedRun, steps, corpus)))
	var now, before watches
	young, old := proxied(t, s.console.env("ENTRAIN_CHAIN"), false, &now), proxied(t, s.console.env("ENTRAIN_CHAIN"), true, &before)

	var members [9]<-chan taking
	var finished atomic.Int32
	leaves := make(chan struct{}) // all have finished: one that is late needs what others hold
	heed := func(ev printed) {
		if ev.Kind == "finished" && finished.Add(1) == int32(len(members)+1) {
			close(leaves)
		}
	}
	for i := range members {
		env, name := young, filepath.Join(dir, fmt.Sprint("member", i))
		if i < 3 {
			env = old
		}
		members[i] = takePartUntil(t.Context(), leaves, heed, t, env, "followed", "--key", name+".key", "--state", name)
	}
	state := filepath.Join(dir, "killed")
	killed := startMember(t, young("ENTRAIN_CHAIN"), "followed", "--key", state+".key", "--state", state)
	killed.until("applied", 3)
	killed.kill()
	back := startMember(t, young("ENTRAIN_CHAIN"), "followed", "--key", state+".key", "--state", state)
	last := back.until("finished", 0)
	heed(last)
	if err := back.wait(); err != nil {
		t.Error(err)
	}
	updates := 0
	for i := range members {
		m := <-members[i]
		if m.err != nil {
			t.Fatalf("member %d: %v", i, m.err)
		}
		if kept, ok := m.first("finished"); !ok || kept.Params != last.Params {
			t.Errorf("member %d ends with %q, the killed one with %q", i, kept.Params, last.Params)
		}
		for _, ev := range m.events {
			if ev.Kind == "fetched" && ev.Update {
				updates++
			}
		}
	}
	r := object[view.Run](s, "status", "followed", "--json")
	if r.Step != steps || r.Rollbacks != 0 {
		t.Errorf("the run stands at %+v", r)
	}
	t.Logf("%d light streams, %d with reports, %d whole ones; %d bytes on the light ones; %d updates", now.light.Load(), now.reports.Load(), now.whole.Load(), now.bytes.Load(), updates)
	if now.light.Load() < 7 || now.reports.Load() < 7 || updates < steps*4 {
		t.Errorf("%d light streams, %d with reports, and %d updates", now.light.Load(), now.reports.Load(), updates)
	}
}
