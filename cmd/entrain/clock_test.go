package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger/comet"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
)

func TestClocksThatAreOff(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	home := filepath.Join(t.TempDir(), "chain")
	s.ok("chain", "init", "--home", home, "--chain-id", "ours", "--api", "127.0.0.1:0")
	s.chainOf(home)
	skew, err := onchain.ClockSkew([]string{"http://127.0.0.1:1", s.env["ENTRAIN_CHAIN"]})(t.Context())
	if err != nil || skew.Abs() > time.Minute {
		t.Errorf("got %v, %v", skew, err)
	}
	spec := writeFile(t, filepath.Join(t.TempDir(), "run.toml"), "name = \"run\"\n[data]\nmanifest = \""+strings.Repeat("1", 64)+"\"\n")
	s.ok("run", "create", "-f", spec)
	client, err := comet.NewClient("ours", []string{s.env["ENTRAIN_CHAIN"]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	on, err := onchain.GetRun(t.Context(), client, "run")
	if err != nil {
		t.Fatal(err)
	}
	for off, want := range map[time.Duration]string{10 * time.Minute: "10m0s ahead of the chain's", -5 * time.Minute: "5m0s behind the chain's", time.Minute: "", -time.Minute: ""} {
		a := participant.Applicant{Key: key.Public{1}, Skew: func(context.Context) (time.Duration, error) { return off, nil }}
		list, err := a.Obstacles(t.Context(), client, on)
		if err != nil || (want == "") != (len(list) == 0) || want != "" && (list[0].Kind != participant.ObstacleClock || !strings.Contains(list[0].Reason, want)) {
			t.Errorf("%s: got %v, %v", off, list, err)
		}
	}

	// A validator hears of it before it asks for a seat.
	scored := writeFile(t, filepath.Join(t.TempDir(), "scored.toml"), "name = \"scored\"\nsteps = 10\n[learning_rate]\nwarmup = 0\n[exchange]\nkind = \"bucket\"\n"+
		"[scores]\nvalidators = 2\n[trust]\nstake = 10\n[data]\nmanifest = \""+strings.Repeat("1", 64)+"\"\n")
	s.ok("run", "create", "-f", scored)
	at, err := url.Parse(s.env["ENTRAIN_CHAIN"])
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(at)
	proxy.ModifyResponse = func(r *http.Response) error {
		r.Header.Set("Date", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat))
		return nil
	}
	server := httptest.NewServer(proxy)
	defer server.Close()
	s.fails([]string{"validate", "scored", "--chain", server.URL, "--stake", "10", "--state", t.TempDir()}, "1h0m", "ahead of the chain's", "timedatectl")
}
