package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/wire"
)

func TestAddressesOfAChain(t *testing.T) {
	for in, want := range map[string]string{
		"chain.example.org":        "http://chain.example.org:7370",
		"203.0.113.5":              "http://203.0.113.5:7370",
		"203.0.113.5:80":           "http://203.0.113.5:80",
		"chain.example.org:443":    "https://chain.example.org:443",
		"2001:db8::5":              "http://[2001:db8::5]:7370",
		"[2001:db8::5]":            "http://[2001:db8::5]:7370",
		"[2001:db8::5]:80":         "http://[2001:db8::5]:80",
		"http://chain.example.org": "http://chain.example.org:7370",
		"https://example.org":      "https://example.org",
		"https://example.org/a/":   "https://example.org/a",
		"localhost":                "http://localhost:7370",
	} {
		if got, err := chainURL(in); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		} else if again, err := chainURL(got); err != nil || again != got {
			t.Errorf("%s again: got %s, %v", got, again, err)
		}
	}
	for _, in := range []string{"", ":7370", "a b", "me@host", "ftp://host", "host?x=1", "host#x", "host:port", "http://"} {
		if got, err := chainURL(in); err == nil {
			t.Errorf("%q was taken for %s", in, got)
		}
	}
}

func TestRunsAreLocated(t *testing.T) {
	for _, c := range []struct {
		arg, run, at string
		flag         []string
		fault        string
	}{
		{arg: "my-run", run: "my-run"},
		{arg: "my-run", run: "my-run", at: "x", flag: []string{"x"}},
		{arg: "my-run@host", run: "my-run", at: "http://host:7370"},
		{arg: "my-run@https://host", run: "my-run", at: "https://host"},
		{arg: "@host", at: "http://host:7370"},
		{arg: "my-run@host", flag: []string{"x"}, fault: "leave one out"},
		{arg: "My Run@host", fault: "no run's name"},
		{arg: "", fault: "no run's name"},
		{arg: "my-run@", fault: "no address of a replica"},
		{arg: "my-run@a@b", fault: "no address of a replica"},
	} {
		endpoints := c.flag
		run, err := located(c.arg, &endpoints)
		switch {
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q: got %v, want %q", c.arg, err, c.fault)
		case c.fault == "" && (err != nil || run != c.run || strings.Join(endpoints, " ") != c.at):
			t.Errorf("%q: got %q at %v, %v", c.arg, run, endpoints, err)
		}
	}
	if _, err := locatedOne("@host", &[]string{}); err == nil || !strings.Contains(err.Error(), "entrain status @host") {
		t.Errorf("got %v", err)
	}
}

func exampleTicket() ticket {
	return ticket{Chain: "my-chain", Run: "my-run", ID: wire.Sum("a"), Manifest: wire.Sum("b"), Data: "https://data.example.org/corpus",
		Addresses: []string{"http://203.0.113.5:7370", "https://chain.example.org"}}
}

func TestTicketsThatAreNone(t *testing.T) {
	good := exampleTicket()
	if _, err := parseTicket(good.String()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*ticket){
		"chain":        func(t *ticket) { t.Chain = "My Chain" },
		"run":          func(t *ticket) { t.Run = "" },
		"no address":   func(t *ticket) { t.Addresses = nil },
		"addresses":    func(t *ticket) { t.Addresses = make([]string, 17) },
		"address":      func(t *ticket) { t.Addresses = []string{"file:///etc/passwd"} },
		"rough":        func(t *ticket) { t.Addresses = []string{"chain.example.org"} },
		"data":         func(t *ticket) { t.Data = "/home/owner/corpus" },
		"long address": func(t *ticket) { t.Addresses = []string{"http://" + strings.Repeat("a", 1100) + ":1"} },
	} {
		bad := good
		change(&bad)
		if got, err := parseTicket(bad.String()); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	text := good.String()
	for i := range len(text) {
		if _, err := parseTicket(text[:i]); err == nil {
			t.Errorf("cut after %d of %d characters it was taken", i, len(text))
		}
		other := []byte(text)
		other[i]++
		if _, err := parseTicket(string(other)); err == nil {
			t.Errorf("mistyped at %d it was taken", i)
		}
	}
}

func FuzzParseTicket(f *testing.F) {
	f.Add(exampleTicket().String())
	f.Add(ticketPrefix)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := parseTicket(s)
		if err == nil && got.String() != s {
			t.Errorf("%q is also %q", s, got.String())
		}
	})
}

// A ticket leads to its run, and to no other that answers in its place.
func TestTicketsOfARun(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	key, home := filepath.Join(dir, "owner"), filepath.Join(dir, "chain")
	s.ok("key", "new", "--key", key)
	s.ok("chain", "init", "--home", home, "--chain-id", "ours", "--api", "127.0.0.1:0", "--block", "20ms", "--key", key)
	s.chainOf(home)
	api := s.env["ENTRAIN_CHAIN"]
	spec := "name = \"%\"\n[data]\nlocation = \"https://data.example.org/corpus\"\nmanifest = \"" + strings.Repeat("1", 64) + "\"\n"
	for _, name := range []string{"first", "second"} {
		s.ok("run", "create", "-f", writeFile(t, filepath.Join(dir, name+".toml"), strings.ReplaceAll(spec, "%", name)), "--key", key)
	}
	line := strings.TrimSpace(s.ok("run", "ticket", "first"))
	file := filepath.Join(dir, "first.ticket")
	_, words, err := s.run("run", "ticket", "first", "--at", "chain.example.org", "-o", file)
	if err != nil || !strings.Contains(words, "entrain join "+file) {
		t.Errorf("%v, %s", err, words)
	}
	got := object[ticket](s, "run", "ticket", file, "--json")
	if got.Chain != "ours" || got.Run != "first" || got.Data != "https://data.example.org/corpus" || strings.Join(got.Addresses, " ") != "http://chain.example.org:7370" {
		t.Errorf("%+v", got)
	}
	delete(s.env, "ENTRAIN_CHAIN")
	var status struct {
		Run string `json:"run"`
	}
	host := strings.TrimPrefix(api, "http://")
	if err := json.Unmarshal([]byte(s.ok("status", "second@"+host, "--json")), &status); err != nil || status.Run != "second" {
		t.Errorf("%+v, %v", status, err)
	}
	if err := json.Unmarshal([]byte(s.ok("status", line, "--json")), &status); err != nil || status.Run != "first" {
		t.Errorf("by a ticket: %+v, %v", status, err)
	}
	report := filepath.Join(dir, "report")
	s.ok("report", "second@"+host, "-o", report)
	s.ok("report", line, "-o", report)
	if out := s.ok("status", "@"+host); !strings.Contains(out, "first") || !strings.Contains(out, "second") {
		t.Errorf("got %s", out)
	}
	held, err := parseTicket(line)
	if err != nil {
		t.Fatal(err)
	}
	other := held
	other.Run = "second"
	for _, command := range []string{"join --key " + key, "audit", "watch --plain", "web --listen 127.0.0.1:0", "report -o " + report, "status"} {
		words := strings.Fields(command)
		s.fails(append(words, other.String()), "it was created anew, or the replica is lying")
		s.fails(append(words, line[:len(line)-3]), "cut short or mistyped")
	}
	other = held
	other.Chain = "theirs"
	s.fails([]string{"join", other.String(), "--key", key}, `on chain "theirs", but "ours" answers`)
	s.fails([]string{"join", line[:len(line)-3], "--key", key}, "cut short or mistyped")
	s.fails([]string{"join", writeFile(t, filepath.Join(dir, "no.ticket"), "something"), "--key", key}, "holds no ticket")
	s.fails([]string{"join", "first@" + host, "--chain", api, "--key", key}, "leave one out")
}
