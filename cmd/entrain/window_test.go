//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// The window of a participant in a real terminal: it joins a run that goes on, trains, is resized meanwhile, leaves when it is closed, and
// gives the terminal back.
func TestJoinInATerminal(t *testing.T) {
	t.Parallel()
	dir, own := t.TempDir(), t.TempDir()
	needTmux(t) // before a demo is started for nothing
	d := startDemo(t, dir, append(tinyArgs(t, "100000"), "--clients", "1", "--verification", "0")...)
	d.until("two steps", func(ev printed) bool { return ev.Kind == "applied" && ev.Step >= 2 })
	go func() { // the demo must not wait for somebody to read its events
		for range d.events {
		}
	}()
	s, chain, keyFile := newShell(t), demoChain(t, dir), filepath.Join(own, "key")
	k := strings.TrimSpace(s.ok("key", "--key", keyFile))
	s.ok("wallet", "send", k, "1000", "--key", filepath.Join(dir, "owner.key"), "--chain", chain)
	m := newTmux(t, 80, 24, nil, "join", "demo", "--chain", chain, "--key", keyFile, "--state", filepath.Join(own, "state"),
		"--data", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", "--workers", "1", "--stake", "1000")
	m.shows("[1 Overview]", "you      waiting", "q leave the run")
	m.shows("[1 Overview]", "you      active", "loss and held-out loss", "q leave the run")
	m.shows("tokens/s training", " points, ")
	m.tell("resize-window", "-x", "200", "-y", "60")
	m.fills(60, "q leave the run", "tokens a second of the network")
	m.tell("send-keys", "2")
	m.shows("you", "this round")
	m.tell("resize-window", "-x", "80", "-y", "24")
	m.tell("send-keys", "7")
	m.shows("[7 Logs]", ": loss ")
	m.tell("send-keys", "q")
	rows := strings.Join(m.shows("ended with 0"), "\n")
	if strings.Contains(rows, "[7 Logs]") || !strings.Contains(rows, "leaving the run") {
		t.Errorf("after the window's end there is\n%s", rows)
	}
}

// The window of a demo in a real terminal: it names the clients, and the summary is what stays.
func TestDemoInATerminal(t *testing.T) {
	t.Parallel()
	m := newTmux(t, 100, 40, nil, append([]string{"demo"}, tinyArgs(t, "50")...)...)
	m.shows("[1 Overview]", "loss and held-out loss", "q quit")
	m.tell("send-keys", "2")
	m.shows("[2 Members]", "client-1", "client-2")
	m.tell("send-keys", "7")
	m.shows("client-2: started, pid ")
	m.shows("50 rounds with 2 clients", "the same in all clients", "ended with 0")
}

// Closing the window of a demo stops all of it, which is no failure.
func TestDemoEndsWithItsWindow(t *testing.T) {
	t.Parallel()
	m := newTmux(t, 80, 24, nil, append([]string{"demo"}, tinyArgs(t, "100000")...)...)
	m.shows("[1 Overview]", "step     1", "q quit")
	m.tell("send-keys", "q")
	m.shows("the demo was stopped early", "ended with 0")
}
