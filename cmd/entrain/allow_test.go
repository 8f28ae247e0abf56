package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// A run with a list takes listed keys, and nodes that work for them, and join --check and join say why not.
func TestAPermissionedRun(t *testing.T) {
	s := newShell(t)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	public := map[string]string{}
	for _, name := range []string{"owner", "ann", "eve", "node"} {
		public[name] = strings.TrimSpace(s.ok("key", "new", "--key", file(name)))
	}
	s.ok("chain", "init", "--home", file("chain"), "--chain-id", "ours", "--api", "127.0.0.1:0", "--block", "20ms", "--key", file("owner"))
	s.chainOf(file("chain"))
	writeFile(t, file("text"), strings.Repeat("Who goes there? ", 4000))
	s.ok("data", "prepare", "-o", file("data"), file("text"))
	s.ok("run", "create", "-f", writeFile(t, file("run.toml"), "name = \"ours\"\n"), "--data", file("data"), "--key", file("owner"))
	can := func(who string) []string {
		t.Helper()
		kinds, text := s.cannot("ours", "--key", file(who), "--data", file("data"))
		if !strings.Contains(text, public[who]) || !strings.Contains(text, "entrain run allow ours") {
			t.Errorf("%s is told %s", who, text)
		}
		return kinds
	}
	yes := func(who string) {
		t.Helper()
		s.ok("join", "ours", "--check", "--key", file(who), "--data", file("data"))
	}
	yes("eve") // nobody has made a list
	s.fails([]string{"run", "allow", "ours", public["ann"], "--key", file("eve")}, "owner")
	s.fails([]string{"run", "allow", "ours", "--remove", "--key", file("owner")}, "say whose keys")
	s.ok("run", "allow", "ours", public["ann"], public["ann"], "--key", file("owner"))
	yes("ann")
	if got := can("eve"); !slices.Equal(got, []string{participant.ObstacleListed}) {
		t.Errorf("eve: %v", got)
	}
	s.fails([]string{"join", "ours", "--key", file("eve"), "--state", file("e"), "--data", file("data")}, "takes only keys on its owner's list")

	line := strings.TrimSpace(s.ok("key", "delegate", public["node"], "--run", "ours", "--chain-id", "ours", "--for", "1h", "--key", file("ann")))
	can("node")
	s.fails([]string{"key", "delegate", "--renew", line, "--key", file("eve")}, "is for the node "+public["node"])
	s.ok("key", "delegate", "--renew", writeFile(t, file("line"), line+"\n"), "--key", file("node"))
	yes("node")
	s.joins("ours", file("node"))
	if m := member(t, s, "ours", public["node"]); m.Payee != public["ann"] {
		t.Errorf("a node of ann's is paid at %s", m.Payee)
	}
	if out := s.ok("run", "allow", "ours"); !strings.Contains(out, "listed  "+public["ann"]) || !strings.Contains(out, public["node"]+" works for "+public["ann"]) {
		t.Errorf("allowed: %s", out)
	}
	s.fails([]string{"key", "delegate", "--revoke", public["node"], "--run", "ours", "--key", file("eve")}, "does not work for")
	s.ok("key", "delegate", "--revoke", public["node"], "--run", "ours", "--key", file("ann"))
	can("node")
	if m := member(t, s, "ours", public["node"]); m.Status != "withdrawn" {
		t.Errorf("a revoked node is %s", m.Status)
	}
	s.ok("run", "allow", "ours", "--remove", public["ann"], "--key", file("owner"))
	can("ann")
	s.ok("run", "allow", "ours", "--anyone", "--key", file("owner"))
	yes("ann")
	yes("eve")
}

func member(t *testing.T, s *shell, run, who string) view.Member {
	t.Helper()
	for _, m := range object[view.Run](s, "status", run, "--json").Members {
		if m.Key == who {
			return m
		}
	}
	t.Fatalf("%s is no member", who)
	return view.Member{}
}

func TestDelegationsAreReadStrictly(t *testing.T) {
	owner, node := key.FromSeed([32]byte{1}), key.FromSeed([32]byte{2}).Public()
	now := time.UnixMilli(1_000_000)
	d := onchain.Delegation{Chain: "c", Run: "r", Node: node, Certificate: host.NewCertificate(owner, "c", "r", node, 2_000_000)}
	got, err := onchain.ParseDelegation(d.String())
	if err != nil || got != d {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := d.Check("c", "r", node, now); err != nil {
		t.Error(err)
	}
	for want, err := range map[string]error{
		"not for run": d.Check("c", "other", node, now), "this is": d.Check("c", "r", owner.Public(), now), "expired": d.Check("c", "r", node, time.UnixMilli(2_000_000)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	text := d.String()
	for i := range text {
		changed := text[:i] + string("AB"[btoi(text[i] == 'A')]) + text[i+1:]
		if _, err := onchain.ParseDelegation(changed); !errors.Is(err, onchain.ErrDelegation) {
			t.Fatalf("character %d changed: %v", i, err)
		}
	}
	for _, s := range []string{"", onchain.DelegationPrefix, text[:len(text)-4], text + "AAAA"} {
		if _, err := onchain.ParseDelegation(s); err == nil {
			t.Errorf("%q is read", s)
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

func FuzzParseDelegation(f *testing.F) {
	node := key.FromSeed([32]byte{2}).Public()
	f.Add(onchain.Delegation{Chain: "c", Run: "r", Node: node, Certificate: host.NewCertificate(key.FromSeed([32]byte{1}), "c", "r", node, 9)}.String())
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := onchain.ParseDelegation(s); err == nil && d.String() != s {
			t.Errorf("%q is read, and written as %q", s, d)
		}
	})
}

func TestAnOldProgramIsTold(t *testing.T) {
	for _, c := range []struct {
		least, since, program string
		held                  bool
	}{
		{"", "", "v0.1.0", false}, {"v1.2.0", "", "v1.1.9", true}, {"v1.2.0", "", "v1.2.0", false}, {"v1.2.0", "", "v2.0.0+dirty", false},
		{"v1.2.0", "", "(devel)", false}, {"", "v1.2.0", "v1.1.9", true}, {"v1.1.0", "v1.2.0", "v1.1.9", true}, {"v1.2.0", "v1.1.0", "v1.1.9", true},
		{"v1.1.0", "v1.2.0", "v1.2.0", false}, {"", "nonsense", "v0.1.0", false},
	} {
		s := spec.Spec{Name: "ours", Members: spec.Members{ClientMin: c.least}}
		list := participant.TooOld(s, c.since, c.program)
		if held := len(list) == 1 && list[0].Kind == participant.ObstacleVersion && strings.Contains(list[0].Reason, fmt.Sprintf("wants entrain v1.2.0 or newer, and this is %s", c.program)); held != c.held {
			t.Errorf("%+v: %v", c, list)
		}
	}
}

// Keys are read once each and in order, and no more of them than a transaction takes.
func FuzzParseKeys(f *testing.F) {
	f.Add(strings.Repeat("ab", 32) + " " + strings.Repeat("01", 32) + " " + strings.Repeat("ab", 32))
	f.Add("rubbish")
	f.Add(strings.Repeat("x ", host.AdmitKeysMax+1))
	f.Fuzz(func(t *testing.T, line string) {
		texts := strings.Fields(line)
		keys, err := parseKeys(texts)
		if err != nil {
			return
		}
		if len(keys) > min(len(texts), host.AdmitKeysMax) {
			t.Errorf("%d keys of %d texts", len(keys), len(texts))
		}
		for i, k := range keys {
			if i > 0 && keys[i-1].Compare(k) >= 0 {
				t.Errorf("%s is not after %s", k, keys[i-1])
			}
			if !slices.ContainsFunc(texts, func(s string) bool { return strings.EqualFold(s, k.String()) }) {
				t.Errorf("%s is in none of the texts", k)
			}
		}
	})
}
