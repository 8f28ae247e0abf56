package web

import (
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/view"
)

//go:embed assets
var assets embed.FS

// policy is what pages may do: run our scripts, use our styles, talk to this server, and nothing
// else. Scripts cannot turn text into markup, either.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the pages and what they ask for. Listen is where it is served: if that is this
// machine alone, requests that name another host are refused, or else a web page elsewhere could
// have its own name point here and read along.
func (s *Server) Handler(listen net.Addr) http.Handler {
	mux := http.NewServeMux()
	for _, page := range []string{
		"/{$}", "/runs/{run}", "/runs/{run}/members", "/runs/{run}/members/{key}", "/runs/{run}/rounds", "/runs/{run}/rounds/{number}",
		"/runs/{run}/trust", "/runs/{run}/scores", "/runs/{run}/model", "/runs/{run}/join",
	} {
		mux.HandleFunc("GET "+page, servePage)
	}
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic("web: no assets: " + err.Error())
	}
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", cached(http.FileServerFS(sub))))
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, r *http.Request) { http.ServeFileFS(w, r, sub, "favicon.svg") })
	mux.HandleFunc("GET /api/runs", s.serveFront)
	mux.HandleFunc("GET /api/names", s.serveNames)
	mux.HandleFunc("GET /api/runs/{run}", s.ofRun(s.serveLive))
	mux.HandleFunc("GET /api/runs/{run}/events", s.ofRun(s.serveEvents))
	mux.HandleFunc("GET /api/runs/{run}/members", s.page((*desk).members))
	mux.HandleFunc("GET /api/runs/{run}/members/{key}", s.page((*desk).member))
	mux.HandleFunc("GET /api/runs/{run}/rounds", s.page((*desk).rounds))
	mux.HandleFunc("GET /api/runs/{run}/rounds/{number}", s.page(func(d *desk, r *http.Request) any { return d.round(r, s.o.Endpoints) }))
	mux.HandleFunc("GET /api/runs/{run}/trust", s.page((*desk).trust))
	mux.HandleFunc("GET /api/runs/{run}/scores", s.page((*desk).scores))
	mux.HandleFunc("GET /api/runs/{run}/samples", s.page((*desk).samples))
	mux.HandleFunc("GET /api/runs/{run}/join", s.page(func(d *desk, _ *http.Request) any { return d.joining(s.o.Ledger.ChainID(), s.o.Endpoints) }))
	mux.HandleFunc("GET /api/runs/{run}/curves.csv", s.ofRun(s.serveCurves))
	mux.HandleFunc("GET /api/runs/{run}/checkpoints", s.ofRun(s.serveCheckpoints))
	mux.HandleFunc("GET /api/runs/{run}/checkpoints/{name}/{file}", s.ofRun(s.serveCheckpointFile))
	mux.HandleFunc("POST /api/runs/{run}/prompt", s.ofRun(s.servePrompt))
	return guarded(httpserve.LocalOnly(http.NewCrossOriginProtection().Handler(mux), listen))
}

// guarded sets what every answer carries.
func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		next.ServeHTTP(w, r)
	})
}

// cached lets browsers keep assets, but ask each time whether they are still the same: they change
// with the program.
func cached(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache")
		next.ServeHTTP(w, r)
	})
}

// servePage serves the one page there is: its script finds by the address what to show.
func servePage(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeFileFS(w, r, assets, "assets/page.html")
}

// ofRun finds the desk of the run in the address.
func (s *Server) ofRun(f func(http.ResponseWriter, *http.Request, *desk)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := s.desk(r.PathValue("run"))
		if d == nil {
			fail(w, http.StatusNotFound, "no such run on this chain, or it was not found yet")
			return
		}
		f(w, r, d)
	}
}

// refused is what a page is answered with that there is not.
type refused struct {
	status int
	text   string
}

// page answers with what f returns of a run that is up to date. It calls f with the lock held.
func (s *Server) page(f func(d *desk, r *http.Request) any) http.HandlerFunc {
	return s.ofRun(func(w http.ResponseWriter, r *http.Request, d *desk) {
		d.mu.Lock()
		d.refresh(time.Now())
		v := f(d, r)
		d.mu.Unlock()
		if no, ok := v.(refused); ok {
			fail(w, no.status, no.text)
			return
		}
		give(w, v)
	})
}

// give answers with JSON.
func give(w http.ResponseWriter, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic("web: an answer has no JSON: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(b) // the asker is gone
}

// fail answers with an error.
func fail(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	b, _ := json.Marshal(map[string]string{"error": text})
	_, _ = w.Write(b)
}

// number reads a number of the query, or returns the one given.
func number(r *http.Request, name string, none int) int {
	if n, err := strconv.Atoi(r.FormValue(name)); err == nil {
		return n
	}
	return none
}

func (d *desk) samples(*http.Request) any {
	return struct {
		Samples []view.Sample `json:"samples"`
	}{append([]view.Sample{}, d.run.Samples...)}
}
