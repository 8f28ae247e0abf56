// Package check explores the coordinator's rules exhaustively on tiny runs: three or four members,
// some of which cheat, from a given situation (a [Scene]) on, with every message that they may send
// in every order, and time that may pass after each. It visits every state within a depth, and
// checks after every message what must hold (see properties.go). The first violation comes with a
// shortest list of messages that leads to it.
//
// What is abstract: training changes no parameters, so that all honest members name the same; a
// step has two operations (see trace.go); and the chance of all blocks is the same, drawn by
// [Options.Seed]. Time moves from one deadline to the next, and does not pass a deadline while an
// honest party of a dispute owes a move.
package check

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
)

// Rule applies a message to a state, as coordinator.State.Apply does.
type Rule func(coordinator.State, coordinator.Env, coordinator.Message) error

// Options are the settings of an exploration.
type Options struct {
	Scene   string // a name of Scenes
	Members int    // MembersMin to MembersMax keys
	Depth   int    // longest list of messages
	States  int    // stop after this many states; 0 means no limit
	Seed    uint64 // chance of all blocks
	Rule    Rule   // nil means State.Apply; tests plant bugs here
}

// The limits of Options.Members.
const (
	MembersMin = 3
	MembersMax = 4
)

// Result is what an exploration found.
type Result struct {
	Scene       string
	Members     int
	Depth       int  // the last depth at which all states were visited
	States      int  // different ones
	Transitions int  // messages applied
	Refused     int  // of them
	Complete    bool // no state beyond these can be reached
	Violation   *Violation
}

// Violation is a property that does not hold.
type Violation struct {
	Property string
	Text     string
	Script   []string // a shortest list of messages
}

// pages are the bytes of a state. States share the pages in which they do not differ.
type pages []*page

type page struct {
	data [coordinator.PageBytes]byte
	hash [16]byte
}

// split cuts a buffer into pages. It takes those that did not change from before.
func split(b []byte, before pages) pages {
	list := make(pages, len(b)/coordinator.PageBytes)
	for i := range list {
		part := b[i*coordinator.PageBytes:][:coordinator.PageBytes]
		if before != nil && bytes.Equal(before[i].data[:], part) {
			list[i] = before[i]
			continue
		}
		p := &page{data: [coordinator.PageBytes]byte(part)}
		sum := sha256.Sum256(part)
		copy(p.hash[:], sum[:])
		list[i] = p
	}
	return list
}

func (p pages) join(b []byte) []byte {
	b = b[:0]
	for _, v := range p {
		b = append(b, v.data[:]...)
	}
	return b
}

// node is a situation: a state, the time, and the history that properties need.
type node struct {
	state pages
	ghost ghost
	index uint32 // in explorer.seen
}

func (n node) key() (k [16]byte) {
	h := sha256.New()
	for _, p := range n.state {
		h.Write(p.hash[:])
	}
	_ = binary.Write(h, binary.LittleEndian, n.ghost)
	copy(k[:], h.Sum(nil))
	return k
}

// came says how a situation was reached first: by which of the moves of which situation.
type came struct{ from, move uint32 }

type explorer struct {
	cast
	rule  Rule
	seen  map[[16]byte]struct{}
	paths []came
	// The buffers of the state before a message, and after it.
	old, now []byte
	result   Result
}

// Run explores a scene. It ends early with ctx, at a violation, and at Options.States.
func Run(ctx context.Context, o Options) (Result, error) {
	if o.Members < MembersMin || o.Members > MembersMax {
		return Result{}, fmt.Errorf("%d members: want %d to %d", o.Members, MembersMin, MembersMax)
	}
	scene, ok := find(o.Scene)
	if !ok {
		return Result{}, fmt.Errorf("no scene %q; there are %s", o.Scene, names())
	}
	x := explorer{rule: o.Rule, seen: map[[16]byte]struct{}{}, result: Result{Scene: o.Scene, Members: o.Members}}
	if x.rule == nil {
		x.rule = coordinator.State.Apply
	}
	var first node
	var err error
	if x.cast, first, err = stage(scene, o.Members, o.Seed); err != nil {
		return Result{}, err
	}
	x.add(&first, came{})
	level := []node{first}
	for x.result.Depth < o.Depth && len(level) > 0 {
		var next []node
		for i := range level {
			if ctx.Err() != nil || o.States > 0 && len(x.paths) >= o.States {
				x.result.States = len(x.paths)
				return x.result, ctx.Err()
			}
			found, bad := x.expand(&level[i])
			if bad != nil {
				x.result.Violation, x.result.States = bad, len(x.paths)
				return x.result, nil
			}
			next = append(next, found...)
			level[i] = node{} // free its pages
		}
		level = next
		x.result.Depth++
	}
	x.result.States, x.result.Complete = len(x.paths), len(level) == 0
	return x.result, nil
}

// add notes a situation, and reports whether it is new.
func (x *explorer) add(n *node, by came) bool {
	k := n.key()
	if _, known := x.seen[k]; known {
		return false
	}
	x.seen[k] = struct{}{}
	n.index = uint32(len(x.paths))
	x.paths = append(x.paths, by)
	return true
}

// expand makes every move of a situation, and returns the new situations that these lead to.
func (x *explorer) expand(n *node) (found []node, bad *Violation) {
	x.old = n.state.join(x.old)
	old, err := coordinator.Open(x.old)
	if err != nil {
		return nil, x.violation(n.index, "", &broken{"bounded", err.Error()})
	}
	for k, m := range x.moves(old, n.ghost) {
		x.result.Transitions++
		next, applied, err := x.make(n, old, m)
		if err != nil {
			return nil, x.violation(n.index, m.what, err)
		}
		if !applied {
			x.result.Refused++
		} else if x.add(&next, came{n.index, uint32(k)}) {
			found = append(found, next)
		}
	}
	return found, nil
}

// make makes one move. It reports whether the message was accepted.
func (x *explorer) make(n *node, old coordinator.State, m move) (next node, applied bool, bad *broken) {
	defer func() {
		if p := recover(); p != nil {
			bad = &broken{"no panic", fmt.Sprint(p)}
		}
	}()
	x.now = append(x.now[:0], x.old...)
	s, err := coordinator.Open(x.now)
	if err != nil {
		panic(err) // as old
	}
	env := x.env(m, n.ghost)
	to, most := s.WillPay(env, m.message)
	if err := x.rule(s, env, m.message); err != nil {
		var code coordinator.Error
		switch {
		case !errors.As(err, &code):
			return node{}, false, &broken{"refusals", "refused without a code: " + err.Error()}
		case !bytes.Equal(x.now, x.old):
			return node{}, false, &broken{"refusals", fmt.Sprintf("refused with %q, but the state changed", err)}
		}
		return node{}, false, nil
	}
	next = node{ghost: n.ghost}
	next.ghost.Now = env.NowMs
	if bad := x.judge(&next.ghost, transition{old: old, new: s, env: env, move: m, payee: to, due: most}); bad != nil {
		return node{}, true, bad
	}
	next.state = split(x.now, n.state)
	return next, true, nil
}

// violation retraces the way to a situation, and to the move after it.
func (x *explorer) violation(at uint32, last string, b *broken) *Violation {
	var way []uint32
	for at != 0 {
		way = append(way, x.paths[at].move)
		at = x.paths[at].from
	}
	v := &Violation{Property: b.property, Text: b.text}
	n := x.first
	for len(way) > 0 {
		x.old = n.state.join(x.old)
		old, err := coordinator.Open(x.old)
		if err != nil {
			break
		}
		m := x.moves(old, n.ghost)[way[len(way)-1]]
		v.Script = append(v.Script, x.line(m, n.ghost))
		next, _, bad := x.make(&n, old, m)
		if bad != nil {
			break
		}
		n, way = next, way[:len(way)-1]
	}
	if last != "" {
		v.Script = append(v.Script, fmt.Sprintf("%6.1f s  %s", x.seconds(n.ghost), last))
	}
	return v
}
