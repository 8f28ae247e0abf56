package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/runlog"
)

func TestWebSaysWhatIsMissing(t *testing.T) {
	s := newShell(t)
	s.fails([]string{"web", "--state", t.TempDir()}, "say which")
	s.fails([]string{"web", "demo", "--state", filepath.Join(t.TempDir(), "none")}, "not a directory")
	s.fails([]string{"web", "--chain", "http://127.0.0.1:1"}, "reach the chain")
	s.fails([]string{"report", "demo"}, "-o DIR")
	s.fails([]string{"report", "demo", "-o", t.TempDir(), "--state", t.TempDir()}, "entrain join names")
}

func TestWebServesTheRunsOfAChain(t *testing.T) {
	s := newShell(t)
	home := t.TempDir()
	if err := comet.Init(home, comet.Options{Chain: "looked-at", API: "127.0.0.1:0"}); err != nil {
		t.Fatal(err)
	}
	replica, err := comet.Open(home, nil, referees)
	if err != nil {
		t.Fatal(err)
	}
	s.env["ENTRAIN_CHAIN"] = replica.Endpoint()
	out, lines := io.Pipe()
	s.console.out = lines
	ctx, cancel := context.WithCancel(t.Context())
	chain := make(chan error, 1)
	go func() { chain <- replica.Run(ctx) }()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, s.console, []string{"web", "--addr", "127.0.0.1:0", "--json"})
		ended <- errors.Join(err, lines.Close())
	}()
	var ev webEvent
	if err := json.NewDecoder(out).Decode(&ev); err != nil {
		t.Fatal(err)
	}
	r, err := http.Get(ev.URL + "api/runs")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r.Body)
	r.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(b), `"looked-at"`) {
		t.Errorf("%s: %s %s, %v", ev.URL, r.Status, b, err)
	}
	cancel()
	if err := errors.Join(<-ended, <-chain); err != nil {
		t.Error(err)
	}
}

func TestReportOfALogWithoutItsChain(t *testing.T) {
	s := newShell(t)
	s.env["ENTRAIN_CHAIN"] = "http://127.0.0.1:1"
	state, out := t.TempDir(), filepath.Join(t.TempDir(), "report")
	log, err := runlog.Create(filepath.Join(state, participant.LogDir), runlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1_900_000_000, 0)
	log.Add(runlog.Record{Time: now, Standing: &runlog.Standing{Height: 7, Head: runlog.Head{Name: "opticks", Steps: 10, Step: 2, Phase: "RoundTrain"}}})
	for step := range uint32(3) {
		log.Event(now, event.Trained{Round: coordinator.Round(step) + 1, Step: coordinator.Step(step) + 1, Loss: 5 - float32(step)})
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	s.ok("report", "opticks", "-o", out, "--state", state)
	if words := s.err.String(); !strings.Contains(words, "without what the chain says now") || !strings.Contains(words, "index.html") {
		t.Errorf("said %q", words)
	}
	b, err := os.ReadFile(filepath.Join(out, "index.html"))
	if err != nil || !strings.Contains(string(b), "2 of 10") || !strings.Contains(string(b), "loss.svg") {
		t.Errorf("page %s, %v", b, err)
	}
	s.fails([]string{"report", "other", "-o", out, "--state", state}, `is of run "opticks", not of "other"`)
	alone := filepath.Join(t.TempDir(), "report")
	s.ok("report", "-o", alone, "--state", state)
	if again, err := os.ReadFile(filepath.Join(alone, "index.html")); err != nil || !strings.Contains(string(again), "2 of 10") {
		t.Errorf("the state directory alone gives the page %s, %v", again, err)
	}
}
