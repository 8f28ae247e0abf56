package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tests/browser"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/view"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(browser.Main{M: m}) }

// serve runs a server on the stage, which ends with the test or with stop. At is "" for any port.
func serve(t testing.TB, o Options, at string) (url string, stop func()) {
	t.Helper()
	if at == "" {
		at = "127.0.0.1:0"
	}
	return listen(t, New(o), at)
}

// listen runs a server, which ends with the test or with stop.
func listen(t testing.TB, server *Server, at string) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx, l) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return "http://" + l.Addr().String(), stop
}

func (s *stage) options() Options {
	return Options{Ledger: s, Runs: s.runs, Endpoints: []string{"http://203.0.113.5:7370"}}
}

// patience is how long a busy machine may take for what takes tenths of a second.
const patience = time.Minute

// get asks until the server has something to answer: it starts with nothing known.
func get(t testing.TB, url string, into any) *http.Response {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		r, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if r.StatusCode == http.StatusOK || time.Now().After(deadline) {
			if into != nil {
				if err := json.Unmarshal(b, into); err != nil {
					t.Fatalf("GET %s: %s %q: %v", url, r.Status, b, err)
				}
			}
			return r
		}
	}
}

// until waits for a page to know what happened: it is told a few times a second.
func until(t testing.TB, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !done(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

// client keeps no connections, so that a server's end does not wait for them.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

const api = "/api/runs/" + stageRun

func TestMemberPageSaysWhatItEarnedAndWhy(t *testing.T) {
	s := newStage(t, 5)
	url, _ := serve(t, s.options(), "")
	get(t, url+api, nil)
	s.round()
	s.silent[3] = true
	s.round()
	s.round()
	s.round()
	var d struct {
		Member struct {
			Status string `json:"status"`
			Points uint64 `json:"points"`
		} `json:"member"`
		Turns  []view.Turn `json:"turns"`
		Rounds []view.Work `json:"rounds"`
	}
	until(t, func() bool {
		get(t, url+api+"/members/"+memberKey(3).String(), &d)
		return d.Member.Status != "active"
	})
	if d.Member.Status != "dropped" || len(d.Turns) != 1 || d.Turns[0].What != "dropped" {
		t.Errorf("member is %q after turns %+v, want dropped", d.Member.Status, d.Turns)
	}
	for _, w := range d.Rounds {
		switch {
		case w.Round == 1 && (!w.Accepted || w.Holders < int(w.Quorum) || w.Points == 0 || w.Points != d.Member.Points):
			t.Errorf("round 1: %+v, points %d", w, d.Member.Points)
		case w.Round == 2 && (w.Accepted || w.Holders != 0 || w.Points != 0 || !w.Final || w.Reported):
			t.Errorf("round 2: %+v", w)
		}
	}
	get(t, url+api+"/members/"+memberKey(1).String(), &d)
	var earned uint64
	for _, w := range d.Rounds {
		earned += w.Points
	}
	if earned != d.Member.Points || earned == 0 {
		t.Errorf("rounds give %d points, the member has %d", earned, d.Member.Points)
	}
}

func TestRoundPageHasItsHashes(t *testing.T) {
	s := newStage(t, 5)
	url, _ := serve(t, s.options(), "")
	get(t, url+api, nil)
	want, _ := s.state.At(1)
	seed := want.Seed().String()
	for range 8 { // more than the chain keeps
		s.round()
	}
	var d roundDetails
	get(t, url+api+"/rounds/1", &d)
	if d.Round.Seed != seed || len(d.Results) != 5 || d.Total != 5 || len(d.Round.Witnesses) != 5 || !d.Round.Final || d.Round.ClosedMs <= d.Round.OpenedMs {
		t.Errorf("round 1 is %+v, want seed %s", d, seed)
	}
	for _, w := range d.Round.Witnesses {
		if w.Reported && (w.Params != d.Round.Agreed || !w.Complete) {
			t.Errorf("witness %+v, agreed are %s", w, d.Round.Agreed)
		}
	}
	var page roundPage
	get(t, url+api+"/rounds?from=2&count=3", &page)
	if page.Total != 9 || len(page.Rows) != 3 || page.Rows[0].Number != 7 {
		t.Errorf("page of rounds: %+v", page)
	}
	r, err := client.Get(url + api + "/rounds/77")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusNotFound {
		t.Errorf("a round to come: %s", r.Status)
	}
}

func TestEventsGoOnFromWhereAPageWas(t *testing.T) {
	s := newStage(t, 4)
	url, _ := serve(t, s.options(), "")
	get(t, url+api, nil)
	for range 3 {
		s.round()
	}
	type sent struct {
		Curves map[string]struct {
			At      int         `json:"at"`
			Buckets [][]float64 `json:"buckets"`
		} `json:"curves"`
	}
	next := func(last string, buckets int) (id string, l sent) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, url+api+"/events", nil)
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
				id = text
			}
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok && id != "" {
				if err := json.Unmarshal([]byte(text), &l); err != nil {
					t.Fatal(err)
				}
				if c := l.Curves[curveSeconds]; c.At+len(c.Buckets) >= buckets {
					return id, l
				}
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return "", l
	}
	id, first := next("", 3)
	if p := first.Curves[curveSeconds]; p.At+len(p.Buckets) != 3 {
		t.Errorf("the first event has %+v", p)
	}
	s.round()
	s.round()
	_, second := next(id, 5)
	if p := second.Curves[curveSeconds]; p.At != 3 || len(p.Buckets) != 2 {
		t.Errorf("an event for a page that was away repeats what it has: %+v", p)
	}
	if _, third := next("other.7", 5); third.Curves[curveSeconds].At != 0 {
		t.Errorf("an event for a page of another server's is not whole: %+v", third.Curves)
	}
}

func TestServerIsForThisMachineOnly(t *testing.T) {
	s := newStage(t, 2)
	url, _ := serve(t, s.options(), "")
	for _, c := range []struct {
		host, origin string
		status       int
	}{
		{"localhost:7380", "", http.StatusOK}, {"127.0.0.1", "", http.StatusOK}, {"[::1]:80", "", http.StatusOK},
		{"example.com", "", http.StatusMisdirectedRequest}, {"127.0.0.1.example.com:7380", "", http.StatusMisdirectedRequest}, {"", "https://example.com", http.StatusForbidden},
	} {
		method := http.MethodGet
		if c.origin != "" {
			method = http.MethodPost
		}
		r, _ := http.NewRequestWithContext(t.Context(), method, url+"/api/runs", nil)
		if c.host != "" {
			r.Host = c.host
		}
		if c.origin != "" {
			r.URL.Path = api + "/prompt"
			r.Header.Set("Origin", c.origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("host %q, origin %q: status %d, want %d", c.host, c.origin, answer.StatusCode, c.status)
		}
		if got := answer.Header.Get("Content-Security-Policy"); !strings.HasPrefix(got, "default-src 'none'") {
			t.Errorf("host %q: policy %q", c.host, got)
		}
	}
}

func TestPromptIsBoundedAndForOneAtATime(t *testing.T) {
	s := newStage(t, 2)
	o := s.options()
	begun, end := make(chan struct{}), make(chan struct{})
	dir := t.TempDir()
	writeCheckpoint(t, filepath.Join(dir, "step-000010"))
	o.Node = &Node{Run: stageRun, Checkpoints: dir, Generate: func(_ context.Context, at string, p model.Prompt, out io.Writer) error {
		if p.Text == "wait" {
			close(begun)
			<-end
		}
		_, err := fmt.Fprintf(out, "%s of %s", p.Text, filepath.Base(at))
		return err
	}}
	url, _ := serve(t, o, "")
	get(t, url+api, nil)
	post := func(body string) (int, string) {
		r, err := client.Post(url+api+"/prompt", "application/json", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	for body, want := range map[string]string{
		`{"text":"a","tokens":0}`:    "0 tokens to write, want 1 to 1024",
		`{"text":"a","tokens":2000}`: "2000 tokens",
		`{"text":"` + strings.Repeat("a", promptBytesMax+1) + `","tokens":1}`: "4097 bytes",
		`{"text":"a","tokens":1,"temperature":-1}`:                            "temperature -1",
		`{"text":"a","tokens":1,"more":1}`:                                    "unknown field",
		`{`:                                                                   "unexpected EOF",
	} {
		if status, got := post(body); status != http.StatusBadRequest || !strings.Contains(got, want) {
			t.Errorf("%.60s: %d %s, want %q", body, status, got, want)
		}
	}
	first := make(chan string)
	go func() {
		_, text := post(`{"text":"wait","tokens":1}`)
		first <- text
	}()
	<-begun
	if status, got := post(`{"text":"a","tokens":1}`); status != http.StatusServiceUnavailable || !strings.Contains(got, "somebody else") {
		t.Errorf("a second prompt at once: %d %s", status, got)
	}
	close(end)
	if got := <-first; got != "wait of step-000010" {
		t.Errorf("got %q", got)
	}
}

func TestCheckpointsAreServedAsTheirManifestSays(t *testing.T) {
	s := newStage(t, 2)
	o := s.options()
	dir := t.TempDir()
	writeCheckpoint(t, filepath.Join(dir, "step-000010"))
	if err := os.WriteFile(filepath.Join(dir, "step-000010", "secret"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "step-000020"), 0o700); err != nil { // being written
		t.Fatal(err)
	}
	o.Node = &Node{Run: stageRun, Checkpoints: dir}
	url, _ := serve(t, o, "")
	var list struct {
		Checkpoints []checkpointLine `json:"checkpoints"`
	}
	get(t, url+api+"/checkpoints", &list)
	if len(list.Checkpoints) != 1 || list.Checkpoints[0].Step != 10 || len(list.Checkpoints[0].Files) == 0 {
		t.Fatalf("checkpoints %+v", list)
	}
	for _, f := range list.Checkpoints[0].Files {
		r := get(t, url+api+"/checkpoints/step-000010/"+f.File, nil)
		if r.ContentLength != int64(f.Bytes) || !strings.HasPrefix(r.Header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %d bytes, %q", f.File, r.ContentLength, r.Header.Get("Content-Disposition"))
		}
	}
	for _, path := range []string{"step-000010/secret", "step-000020/manifest.json", "../state", "step-000010/..%2fmanifest.json"} {
		r, err := client.Get(url + api + "/checkpoints/" + path)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			t.Errorf("%s is served", path)
		}
	}
}

func TestCurvesOfALogReadLateHaveTheirTokens(t *testing.T) {
	var chain, log view.Curve
	for step := uint32(1); step <= 100; step++ {
		chain = append(chain, view.Bucket{From: coordinator.Step(step), To: coordinator.Step(step), Tokens: uint64(step) * 1000})
		if step%10 == 4 {
			log = append(log, view.Bucket{From: coordinator.Step(step), To: coordinator.Step(step), Tokens: 100_000})
		}
	}
	for _, b := range withTokens(log, chain) {
		if b.Tokens != uint64(b.To)*1000 {
			t.Errorf("step %d has %d tokens", b.To, b.Tokens)
		}
	}
}
