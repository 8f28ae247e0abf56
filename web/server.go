package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/httpserve"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/view"
)

// Options say what a Server shows.
type Options struct {
	Ledger ledger.Reader
	Runs   func(context.Context) ([]string, error) // names of the chain's runs
	// Names returns what keys are called. Nil: nothing.
	Names     func(context.Context) ([]host.Profile, error)
	Only      string   // the one run to show; "" shows all
	Endpoints []string // of the chain, for commands
	Node      *Node    // whose state directory is at hand; nil if none
	// Ear returns what hears the losses that a run's members state, and passes them to tell. Nil
	// hears nothing.
	Ear func(run string, tell func(event.Committed)) Ear
	// Records is the directory that keeps what members did in runs that the chain no longer has. "":
	// nothing is kept.
	Records string
	Log     *slog.Logger // nil discards
}

// Ear hears the members of a run: see participant.Ear.
type Ear interface {
	Observe(ledger.Snapshot)
	Run(context.Context) error
}

// Node is a participant's state directory. It adds to the pages what the chain does not know.
type Node struct {
	Run string
	Log string // directory of the participant's log, see package runlog; "" if there is none
	// Checkpoints is the directory below which the participant keeps checkpoints, a directory each;
	// "" if there are none.
	Checkpoints string
	// Generate writes the continuation of a prompt by the model of the checkpoint in dir. Nil
	// offers no prompt.
	Generate func(ctx context.Context, dir string, p model.Prompt, out io.Writer) error
}

// How the server goes about things.
const (
	lookEvery   = 2 * time.Second // for new runs, and whether the chain answers
	lookFor     = 5 * time.Second // for an answer
	namesEvery  = 30 * time.Second
	shutdownFor = 2 * time.Second // until pages are cut off at the end
)

// Server serves the pages. Make one with New, then call Run; its Handler may be used alone in
// tests.
type Server struct {
	o    Options
	boot string // names this process to pages that were connected to the one before

	streams   *httpserve.Places // of events, open
	prompting chan struct{}     // holds a token while somebody's prompt is answered

	fronting sync.Mutex // guards what follows
	front    front
	fronted  time.Time          // when front was made
	records  map[string]*record // by their names

	mu        sync.Mutex // guards what follows
	desks     map[string]*desk
	called    view.Names
	reachable bool
}

// New returns a server that knows nothing yet.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	var b [8]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic("web: no randomness: " + err.Error())
	}
	return &Server{o: o, boot: hex.EncodeToString(b[:]), streams: httpserve.NewPlaces(streamsMax, streamsMax/2), prompting: make(chan struct{}, 1), desks: map[string]*desk{}, records: map[string]*record{}}
}

// Run serves pages on the listener and follows the chain, until ctx ends; then it ends what it
// started and returns nil. It closes the listener.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var started sync.WaitGroup
	defer started.Wait()
	s.recall()
	started.Go(func() { s.follow(ctx, &started) })
	return httpserve.Run(ctx, l, &http.Server{
		Handler: s.Handler(l.Addr()), ErrorLog: slog.NewLogLogger(s.o.Log.Handler(), slog.LevelDebug),
	}, shutdownFor)
}

// desk returns the desk of a run, nil if there is no such run.
func (s *Server) desk(name string) *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.desks[name]
}

// runs returns the names of the runs there are, in order.
func (s *Server) runs() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name := range s.desks {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// answers reports whether the chain answered the last call.
func (s *Server) answers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reachable
}

// versionText names the version of a run as this process knows it.
func (d *desk) versionText() string { return d.boot + "." + strconv.FormatUint(d.version, 10) }

// parseVersion returns the version, 0 if it is that of another process or none.
func parseVersion(boot, text string) uint64 {
	of, number, ok := strings.Cut(text, ".")
	if !ok || of != boot {
		return 0
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
