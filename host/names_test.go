package host

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

func TestNamesCannotBeTakenForEachOther(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	for _, who := range []string{"ann", "bob", "cat"} {
		c.accept(c.tx(who, send("demo", coordinator.Join{})))
	}
	for _, step := range []struct {
		who, name, team string
		want            Code
	}{
		{"eve", "eve", "", CodeName}, // no part in a run
		{"ann", "alice", "reds", CodeOK},
		{"bob", "alice", "", CodeName},
		{"bob", "a1ice", "", CodeName},
		{"bob", "al-ice", "", CodeName},
		{"bob", "red5", "", CodeName},
		{"bob", "morn", "al1ce", CodeName},
		{"bob", "morn", "red5", CodeName},
		{"bob", "morn", "rnorn", CodeName},
		{"bob", "morn", "reds", CodeOK},
		{"cat", "mom", "", CodeName},
		{"cat", "mor-n", "", CodeName},
		{"cat", "vvow", "", CodeOK},
		{"owner", "wow", "", CodeName},
		{"cat", "vvvow", "", CodeOK},
		{"owner", "vwow", "", CodeName},
		{"owner", "Wow", "", CodeName},
		{"owner", "w", "", CodeName},
		{"owner", "alïce", "", CodeName},
		{"owner", "a\u202eb", "", CodeName},
		{"owner", "<b>", "", CodeName},
		{"owner", "a b", "", CodeName},
		{"owner", "12345", "", CodeName},
		{"owner", "deadbeef", "", CodeName},
		{"owner", "", "reds", CodeName},
		{"owner", "ada", "", CodeOK},
		{"cat", "acla", "", CodeName},
		{"cat", "a-c1a", "", CodeName},
		{"owner", "grace", "", CodeOK},
		{"cat", "9race", "", CodeName},
		{"bob", "ada", "", CodeOK}, // free again
		{"ann", "", "", CodeOK},
		{"ann", "", "", CodeOK},
		{"cat", "alice", "", CodeOK},
	} {
		c.want(step.want, c.tx(step.who, SetName{"demo", step.name, step.team}))
	}
	want := map[string]string{"owner": "grace", "bob": "ada", "cat": "alice"}
	list, root, err := OpenNames(c.host.ProveNames(wire.Hash{}), nil)
	if err != nil || root != c.host.Hash() || len(list) != len(want) {
		t.Fatalf("%v, %v; the state's hash is %v, names %v", err, root, c.host.Hash(), list)
	}
	for who, name := range want {
		if i, ok := c.host.names.find(public(who)); !ok || c.host.names.list[i].Name != name {
			t.Errorf("%s is not called %s: %v", who, name, list)
		}
	}
	again, err := ParseHost(c.host.Append(nil), Rules{})
	if err != nil || !bytes.Equal(again.Append(nil), c.host.Append(nil)) || again.Hash() != c.host.Hash() {
		t.Errorf("a host that was read differs: %v", err)
	}
}

// Keys cost nothing: one that has left keeps no name, and a full table is full.
func TestNamesOfKeysThatHaveLeftAreFree(t *testing.T) {
	c := newChain(t)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	c.accept(c.tx("owner", SetName{"demo", "ada", ""}))
	c.accept(c.tx("ann", send("demo", coordinator.Join{})))
	list := &c.host.names.list
	for n := range NamesMax { // one more than there can be: the next block forgets one
		*list = append(*list, newNamed(Profile{Key: public(string(wire.AppendU32(nil, uint32(n)))), Name: "none"}))
	}
	slices.SortFunc(*list, func(a, b named) int { return a.Key.Compare(b.Key) })
	c.want(CodeListFull, c.tx("ann", SetName{"demo", "ann", ""}))
	c.accept(c.tx("ann", SetName{"demo", "ann", ""}))
	c.accept(c.tx("owner", SetName{"demo", "grace", ""})) // has its place
	for turns := 0; len(*list) > 2; turns++ {
		if turns > 2*NamesMax {
			t.Fatalf("after %d blocks %d names are left", turns, len(*list))
		}
		c.host.height++
		c.host.forgetName()
	}
	c.block()
	for _, who := range []string{"owner", "ann"} {
		if _, ok := c.host.names.find(public(who)); !ok {
			t.Errorf("%s has lost its name: %v", who, c.host.names.list)
		}
	}
}

// A client that names the hash of its list gets no list, however long it is, unless it has changed.
func TestNamesAreSentOnce(t *testing.T) {
	c := newChain(t)
	for i := range NamesMax {
		k := key.Public{byte(i >> 8), byte(i), 1}
		c.host.names.list = append(c.host.names.list, newNamed(Profile{Key: k, Name: fmt.Sprintf("member-with-a-name-%05d", i), Team: "a-team-with-a-long-name"}))
	}
	c.host.names.kept = false
	c.host.Commit()
	first := c.host.ProveNames(wire.Hash{})
	list, _, err := OpenNames(first, nil)
	if err != nil || len(list) != NamesMax {
		t.Fatalf("%d names: %v", len(list), err)
	}
	again := c.host.ProveNames(NamesHash(list))
	known, root, err := OpenNames(again, list)
	if err != nil || root != c.host.Hash() || len(known) != NamesMax || len(again) > 400 {
		t.Errorf("%d names, state %v, in %d bytes: %v", len(known), root, len(again), err)
	}
	t.Logf("%d bytes at first, then %d", len(first), len(again))
	list[7].Name = "another"
	if _, root, _ := OpenNames(again, list); root == c.host.Hash() {
		t.Error("other names are proven")
	}
	if b := c.host.ProveNames(NamesHash(list)); len(b) != len(first) {
		t.Error("who knows others gets no list")
	}
}

func FuzzOpenNames(f *testing.F) {
	c := newChain(f)
	c.accept(c.tx("owner", createRun("demo", "owner", 16)))
	c.accept(c.tx("owner", SetName{"demo", "ada", "reds"}))
	f.Add(c.host.ProveNames(wire.Hash{}))
	f.Add(c.host.ProveNames(c.host.names.sum()))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _, err := OpenNames(b, nil)
		for _, e := range list {
			if err == nil && (!NameValid(e.Name) || e.Team != "" && !NameValid(e.Team)) {
				t.Errorf("reads %+v", e)
			}
		}
	})
}
