package onchain

import (
	"os"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/host"
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
		if got, err := URL(in); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, err, want)
		} else if again, err := URL(got); err != nil || again != got {
			t.Errorf("%s again: got %s, %v", got, again, err)
		}
	}
	for _, in := range []string{"", ":7370", "a b", "me@host", "ftp://host", "host?x=1", "host#x", "host:port", "http://"} {
		if got, err := URL(in); err == nil {
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
		{arg: "My Run@host", fault: "not a run's name"},
		{arg: "", fault: "not a run's name"},
		{arg: "my-run@", fault: "not the address of a replica"},
		{arg: "my-run@a@b", fault: "not the address of a replica"},
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
	if _, err := LocatedOne("@host", &[]string{}); err == nil || !strings.Contains(err.Error(), "entrain status @host") {
		t.Errorf("got %v", err)
	}
}

func exampleTicket() Ticket {
	return Ticket{Chain: "my-chain", Run: "my-run", ID: wire.Sum("a"), Manifest: wire.Sum("b"), Data: "https://data.example.org/corpus",
		Addresses: []string{"http://203.0.113.5:7370", "https://chain.example.org"}}
}

// A file with a ticket may have a name that a run can have too.
func TestFilesOfTicketsAreToldFromRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	ticket := exampleTicket()
	for name, text := range map[string]string{"ticket": ticket.String() + "\n", "small": "name = \"small\"", "my.ticket": ticket.String()} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("state", 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		arg, run string
		flag     []string
		fault    []string
	}{
		{arg: "ticket", fault: []string{"./ticket for the ticket", "ticket@HOST for the run"}},
		{arg: "./ticket", run: ticket.Run},
		{arg: "my.ticket", run: ticket.Run},
		{arg: "ticket@host", run: "ticket"},
		{arg: "ticket", flag: []string{"http://host"}, run: "ticket"},
		{arg: "small", run: "small"}, // the file is no ticket
		{arg: "state", run: "state"},
		{arg: "./small", fault: []string{"\"./small\" does not hold a ticket"}},
		{arg: "none.ticket", fault: []string{"there is no such file"}},
	} {
		endpoints := c.flag
		got, err := ParseTarget(c.arg, &endpoints)
		for _, fault := range c.fault {
			if err == nil || !strings.Contains(err.Error(), fault) {
				t.Errorf("%q: got %v, want %q", c.arg, err, fault)
			}
		}
		if c.fault == nil && (err != nil || got.Run != c.run) {
			t.Errorf("%q at %v: got %q, %v", c.arg, c.flag, got.Run, err)
		}
	}
}

func TestTicketsThatAreNone(t *testing.T) {
	good := exampleTicket()
	if _, err := ParseTicket(good.String()); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Ticket){
		"chain":        func(t *Ticket) { t.Chain = "My Chain" },
		"run":          func(t *Ticket) { t.Run = "" },
		"no address":   func(t *Ticket) { t.Addresses = nil },
		"addresses":    func(t *Ticket) { t.Addresses = make([]string, 17) },
		"address":      func(t *Ticket) { t.Addresses = []string{"file:///etc/passwd"} },
		"rough":        func(t *Ticket) { t.Addresses = []string{"chain.example.org"} },
		"data":         func(t *Ticket) { t.Data = "/home/owner/corpus" },
		"long address": func(t *Ticket) { t.Addresses = []string{"http://" + strings.Repeat("a", 1100) + ":1"} },
	} {
		bad := good
		change(&bad)
		if got, err := ParseTicket(bad.String()); err == nil {
			t.Errorf("%s: taken as %+v", name, got)
		}
	}
	text := good.String()
	for i := range len(text) {
		if _, err := ParseTicket(text[:i]); err == nil {
			t.Errorf("cut after %d of %d characters it was taken", i, len(text))
		}
		other := []byte(text)
		other[i]++
		if _, err := ParseTicket(string(other)); err == nil {
			t.Errorf("mistyped at %d it was taken", i)
		}
	}
}

func FuzzParseTicket(f *testing.F) {
	f.Add(exampleTicket().String())
	f.Add(ticketPrefix)
	f.Fuzz(func(t *testing.T, s string) {
		got, err := ParseTicket(s)
		if err == nil && got.String() != s {
			t.Errorf("%q is also %q", s, got.String())
		}
	})
}

// What somebody passes on as RUN@HOST names a run, and an address that is read as itself.
func FuzzLocated(f *testing.F) {
	for _, s := range []string{"my-run@a.example.org", "r@[2001:db8::1]:7370", "@https://a.example.org:443#7:" + strings.Repeat("0a", 32), "r@solana:devnet#11111111111111111111111111111111", "r@a.example.org//"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var endpoints []string
		run, err := LocatedOne(s, &endpoints)
		if err != nil {
			return
		}
		if !host.RunNameValid(run) {
			t.Errorf("%q names the run %q", s, run)
		}
		for _, e := range endpoints {
			if again, err := URL(e); err != nil || again != e {
				t.Errorf("%q leads to %q, which is read as %q, %v", s, e, again, err)
			}
		}
	})
}

// A ticket leads to its run, and to no other that answers in its place.

// What a stranger says of the data must be public, unless its chain is in a private network too.
func TestDataOfAStrangerIsPublic(t *testing.T) {
	var on Run
	on.Spec.Data.Location = "https://data.example.org/set"
	for _, c := range []struct {
		flag, endpoint string
		public         bool
	}{
		{"", "https://chain.example.org:443", true}, {"", "http://203.0.113.5:7370", true}, {"http://10.0.0.5/set", "https://chain.example.org:443", false},
		{"", "http://127.0.0.1:7370", false}, {"", "http://localhost:7370", false}, {"", "http://192.168.1.4:7370", false},
	} {
		at, err := (Target{}).DataOf(c.flag, on, []string{c.endpoint})
		if err != nil || at.Public != c.public {
			t.Errorf("%+v: %+v, %v", c, at, err)
		}
	}
}
