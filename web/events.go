package web

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/httpserve"
)

// Events, by Server-Sent Events (HTML standard, section 9.2):
//
//	retry: 1000
//	id: BOOT.VERSION     the version, by which a page that reconnects says what it has
//	event: run
//	data: live, as JSON  what is new since then
//
//	event: beat          every beatEvery: the server is there
//	data: whether the chain answers, as JSON
const (
	beatEvery  = 3 * time.Second
	writeWait  = 10 * time.Second // for a page to take what it is sent, after which it counts as gone
	streamsMax = 256              // pages at once, half of them of one address
)

func (s *Server) serveLive(w http.ResponseWriter, r *http.Request, d *desk) {
	l, _, ok := d.live(0, time.Now())
	if !ok {
		fail(w, http.StatusServiceUnavailable, "the run's state is not here yet")
		return
	}
	give(w, s.complete(l, r.PathValue("run")))
}

// complete adds what the desk does not know.
func (s *Server) complete(l live, run string) live {
	l.Reachable, l.Chain = s.answers(), s.o.Ledger.ChainID()
	if n := s.o.Node; n != nil && n.Run == run {
		l.Node = nodeBrief{Here: true, Prompt: n.Generate != nil}
	}
	return l
}

func (s *Server) serveEvents(w http.ResponseWriter, r *http.Request, d *desk) {
	from := httpserve.Stranger(r.RemoteAddr)
	if !s.streams.Take(from) {
		fail(w, http.StatusServiceUnavailable, fmt.Sprintf("%d pages are open already; close some", streamsMax))
		return
	}
	defer s.streams.Give(from)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	since := r.Header.Get("Last-Event-ID")
	if since == "" {
		since = r.FormValue("since")
	}
	version := parseVersion(s.boot, since)
	out := stream{w: w, c: http.NewResponseController(w)}
	out.write("retry: 1000\n\n")
	beat := time.NewTicker(beatEvery)
	defer beat.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	for out.err == nil {
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			out.send("", "beat", struct {
				Reachable bool `json:"reachable"`
			}{s.answers()})
			continue
		case <-pause.C:
		}
		// A page is told at most every publishEvery, and waits for something new in between.
		select {
		case <-d.changed(version):
			l, now, ok := d.live(version, time.Now())
			if ok {
				version = now
				out.send(l.Version, "run", s.complete(l, r.PathValue("run")))
			}
			pause.Reset(publishEvery)
		case <-r.Context().Done():
			return
		case <-beat.C:
			out.send("", "beat", struct {
				Reachable bool `json:"reachable"`
			}{s.answers()})
			pause.Reset(0)
		}
	}
}

// stream writes events until it fails once.
type stream struct {
	w   http.ResponseWriter
	c   *http.ResponseController
	err error
}

func (s *stream) send(id, event string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("web: an event has no JSON: " + err.Error())
	}
	var text strings.Builder
	if id != "" {
		fmt.Fprintf(&text, "id: %s\n", id)
	}
	fmt.Fprintf(&text, "event: %s\ndata: %s\n\n", event, b)
	s.write(text.String())
}

func (s *stream) write(text string) {
	if s.err != nil {
		return
	}
	if s.err = s.c.SetWriteDeadline(time.Now().Add(writeWait)); s.err != nil {
		return
	}
	if _, s.err = s.w.Write([]byte(text)); s.err == nil {
		s.err = s.c.Flush()
	}
}

// serveCurves gives the curves as CSV, a line for each bucket.
func (s *Server) serveCurves(w http.ResponseWriter, r *http.Request, d *desk) {
	d.mu.Lock()
	d.refresh(time.Now())
	var lines [][]string
	for name, c := range d.curves {
		for _, b := range c.buckets {
			f := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
			u := func(v uint64) string { return strconv.FormatUint(v, 10) }
			lines = append(lines, []string{name, u(uint64(b.From)), u(uint64(b.To)), u(b.Tokens), f(b.Mean), f(b.Min), f(b.Max), u(uint64(b.Count))})
		}
	}
	d.mu.Unlock()
	sort.SliceStable(lines, func(i, j int) bool { return lines[i][0] < lines[j][0] })
	w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+r.PathValue("run")+`-curves.csv"`)
	out := csv.NewWriter(w)
	_ = out.Write([]string{"curve", "step_from", "step_to", "tokens", "mean", "min", "max", "values"})
	_ = out.WriteAll(lines) // the asker is gone
}
