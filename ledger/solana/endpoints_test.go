package solana_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	chain "github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/solana"
)

// between returns the URL of an endpoint that answers by what answer says, until the test ends. ask
// passes the question on to the endpoint at url.
func between(t *testing.T, url string, answer func(question []byte, ask func() []byte) []byte) string {
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Write(answer(question, func() []byte {
			res, err := http.Post(url, "application/json", bytes.NewReader(question))
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				panic(http.ErrAbortHandler)
			}
			return b
		}))
	}))
	t.Cleanup(liar.Close)
	return liar.URL
}

// An endpoint that names one step of a closing after another has a member pay for few ticks.
func TestAnEndlessClosingOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("endless", nil)
	w.must(w.key(2), host.ToRun("endless", coordinator.Join{}))
	const steps = 300
	var tails, ticks, closes atomic.Int64
	named := make(chan struct{})
	liar := between(t, w.url, func(q []byte, ask func() []byte) []byte {
		b := ask()
		var answer map[string]any
		switch {
		case bytes.Contains(q, []byte("sendTransaction")):
			ticks.Add(1)
		case closes.Load() > 0 && bytes.Contains(q, []byte(`"length":64`)) && json.Unmarshal(b, &answer) == nil:
			data := answer["result"].(map[string]any)["value"].([]any)[0].(map[string]any)["data"].([]any)
			tail, _ := base64.StdEncoding.DecodeString(data[0].(string))
			tail[33] = 1
			n := tails.Add(1)
			if n == steps {
				close(named)
			}
			binary.LittleEndian.PutUint64(tail[40:], uint64(1000+n))
			data[0] = base64.StdEncoding.EncodeToString(tail)
			b, _ = json.Marshal(answer)
		}
		return b
	})
	client, err := solana.NewClient(t.Context(), solana.Options{Program: program, Endpoints: []string{liar}, Poll: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	heard := make(chan coordinator.State, 100)
	client.As(w.key(2)).Watch(t.Context(), "endless", func(s ledger.Snapshot) { heard <- s.State })
	<-heard
	closes.Store(1)
	<-named
	if n := ticks.Load(); n == 0 || n > 20 {
		t.Errorf("%d transactions in %d steps of a closing that none takes", n, tails.Load())
	}
}

// An endpoint that lies, lags or is gone is left for another one, and its failure names no secret.
func TestBadEndpointsOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("kept", nil)
	var lies atomic.Bool
	liar := between(t, w.url, func(_ []byte, ask func() []byte) []byte {
		b := ask()
		if lies.Load() {
			b = bytes.Replace(b, []byte(`"data": ["RU5`), []byte(`"data": ["AAA`), 1) // a state's first bytes
		}
		return b
	})
	client, _ := connect(t, w.url, solana.Options{Endpoints: []string{liar}})
	lies.Store(true)
	w.until(client, "kept", func(s coordinator.State) bool { return s.Config().Name == "kept" })
	_, err := solana.NewClient(t.Context(), solana.Options{Program: program, Endpoints: []string{"http://127.0.0.1:1/secret?key=secret"}})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an endpoint that is gone: %v", err)
	}
}

// An endpoint that stands still, and one that keeps the run's past while its chain goes on, are left
// for another one.
func TestEndpointsThatHideNewsOnSolana(t *testing.T) {
	w := newWorld(t, 150, solana.Options{})
	w.create("hidden", func(b *host.CreateRun) { b.Config.WaitingMs = 1 })
	for n := range byte(2) {
		w.must(w.key(2+n), host.ToRun("hidden", coordinator.Join{}))
	}
	slot := regexp.MustCompile(`"slot": \d+`)
	for _, hides := range []struct {
		what string
		past func(answer, now []byte) []byte // of an answer of the past
	}{
		{"stands still", func(answer, _ []byte) []byte { return answer }},
		{"keeps the past", func(answer, now []byte) []byte { return slot.ReplaceAll(answer, slot.Find(now)) }},
	} {
		var mu sync.Mutex
		past := map[string][]byte{}
		begun := make(chan struct{}) // the liar has recorded the past
		liar := between(t, w.url, func(q []byte, ask func() []byte) []byte {
			if bytes.Contains(q, []byte("sendTransaction")) {
				<-begun // a tick would begin the warmup, in which nothing is due for ten minutes
			}
			now := ask()
			mu.Lock()
			defer mu.Unlock()
			if bytes.Contains(q, []byte("getMultipleAccounts")) && (hides.what == "stands still" || bytes.Contains(now, []byte(chain.Address(program).String()))) {
				if past[string(q)] == nil {
					past[string(q)] = now
				}
				now = hides.past(past[string(q)], now)
			}
			return now
		})
		client, _ := connect(t, w.url, solana.Options{Endpoints: []string{liar}})
		l := rich{client, t, w.url, w.mu, w.had}.As(w.key(2))
		heard := make(chan coordinator.State, 100)
		l.Watch(t.Context(), "hidden", func(s ledger.Snapshot) { heard <- s.State })
		<-heard
		close(begun)
		w.must(w.key(1), host.ToRun("hidden", coordinator.Pause{}))
		for s := range heard {
			if s.Phase() == coordinator.Paused {
				break
			}
		}
		// A tick of this client after the run resumes would begin the warmup. The next endpoint would hide
		// nothing that is due before that ends, in ten minutes.
		client.Close()
		w.must(w.key(1), host.ToRun("hidden", coordinator.Resume{}))
	}
}
