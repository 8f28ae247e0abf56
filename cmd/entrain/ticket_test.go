package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/runlog"
)

func TestTicketsOfARun(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	dir := t.TempDir()
	key, home := filepath.Join(dir, "owner"), filepath.Join(dir, "chain")
	s.ok("key", "--key", key)
	s.ok("chain", "init", "--home", home, "--chain-id", "ours", "--api", "127.0.0.1:0", "--block", "20ms", "--key", key)
	s.chainOf(home)
	api := s.env["ENTRAIN_CHAIN"]
	spec := "name = \"%\"\n[data]\nlocation = \"https://data.example.org/corpus\"\nmanifest = \"" + strings.Repeat("1", 64) + "\"\n"
	for _, name := range []string{"first", "second"} {
		s.ok("run", "create", "-f", writeFile(t, filepath.Join(dir, name+".toml"), strings.ReplaceAll(spec, "%", name)), "--key", key)
	}
	for want, args := range map[string][]string{
		`no run "frist"; did you mean "first"?`:        {"status", "frist"},
		`no such run: "secnd"; did you mean "second"?`: {"wallet", "send", "secnd", "1", "--key", key},
		`no run "other"; the chain has first, second`:  {"run", "allow", "other"},
	} {
		s.fails(args, want)
	}
	line := strings.TrimSpace(s.ok("run", "ticket", "first"))
	file := filepath.Join(dir, "first.ticket")
	_, words, err := s.run("run", "ticket", "first", "--at", "chain.example.org", "-o", file)
	if err != nil || !strings.Contains(words, "entrain join "+file) {
		t.Errorf("%v, %s", err, words)
	}
	got := object[onchain.Ticket](s, "run", "ticket", file, "--json")
	if got.Chain != "ours" || got.Run != "first" || got.Data != "https://data.example.org/corpus" || strings.Join(got.Addresses, " ") != "http://chain.example.org:7370" {
		t.Errorf("%+v", got)
	}
	delete(s.env, "ENTRAIN_CHAIN")
	var status struct {
		Name string `json:"name"`
	}
	host := strings.TrimPrefix(api, "http://")
	if err := json.Unmarshal([]byte(s.ok("status", "second@"+host, "--json")), &status); err != nil || status.Name != "second" {
		t.Errorf("%+v, %v", status, err)
	}
	if err := json.Unmarshal([]byte(s.ok("status", line, "--json")), &status); err != nil || status.Name != "first" {
		t.Errorf("by a ticket: %+v, %v", status, err)
	}
	report := filepath.Join(dir, "report")
	s.ok("report", "second@"+host, "-o", report)
	s.ok("report", line, "-o", report)
	if out := s.ok("status", "@"+host); !strings.Contains(out, "first") || !strings.Contains(out, "second") {
		t.Errorf("got %s", out)
	}
	// A stranger's state directory may have the log of another chain's run of the name, or one that names no run.
	s.env["ENTRAIN_CHAIN"] = api
	for _, c := range []struct{ run, want string }{{"first", `has the log of run 00ff of chain "theirs"`}, {"\x1b[2J@evil.example", "no run can be called"}} {
		state := t.TempDir()
		log, err := runlog.Create(filepath.Join(state, participant.LogDir), runlog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		log.Add(runlog.Record{Time: time.Unix(1_900_000_000, 0), Standing: &runlog.Standing{Head: runlog.Head{Name: c.run, ID: "00ff", Chain: "theirs"}}})
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		s.fails([]string{"watch", "--plain", "--state", state}, c.want)
		s.fails([]string{"web", "--addr", "127.0.0.1:0", "--state", state}, c.want)
	}
	delete(s.env, "ENTRAIN_CHAIN")
	held, err := onchain.ParseTicket(line)
	if err != nil {
		t.Fatal(err)
	}
	other := held
	other.Run = "second"
	for _, command := range []string{"join --key " + key, "audit", "watch --plain", "web --addr 127.0.0.1:0", "report -o " + report, "status"} {
		words := strings.Fields(command)
		s.fails(append(words, other.String()), "it was created again, or the replica is lying")
		s.fails(append(words, line[:len(line)-3]), "cut short or mistyped")
	}
	other = held
	other.Chain = "theirs"
	s.fails([]string{"join", other.String(), "--key", key}, `on chain "theirs", but "ours" answers`)
	s.fails([]string{"join", line[:len(line)-3], "--key", key}, "cut short or mistyped")
	s.fails([]string{"join", writeFile(t, filepath.Join(dir, "no.ticket"), "something"), "--key", key}, "does not hold a ticket")
	s.fails([]string{"join", "first@" + host, "--chain", api, "--key", key}, "leave one out")
}
