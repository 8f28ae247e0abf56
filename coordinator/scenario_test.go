package coordinator

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/internal/record"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt with what happens now; read the diff")

// A scenario file holds commands and, under each, what came of it. A line of state reads
//
//	> RoundTrain epoch=1 round=2 step=2 points=8 | ann active 4 | bob waiting 4 missed=1
//
// and shows the phase, the counters, and of each member that has changed its status, points and
// failures. A result longer than 100 columns continues on lines that begin with "..". Commands:
//
//	new [members=N] [witnesses=N] [Field=value ...]   create a run; fields as in Config, with testConfig as default
//	tick +MS                                          let time pass
//	join|withdraw|pause|resume|end NAME               send that message; join [speed=N]
//	refund NAME N, change NAME [Field=value ...]      what else an owner does; fields as in Config
//	speed NAME N                                      NAME says that it is that fast
//	ready NAME|all [epoch=N] [params=NAME]
//	report NAME|all [complete=false] [held=a,b] [round=N] [params=NAME|zero] [prev=NAME] [filter=ones|short]
//	                                                  report as elected witness; all = every elected one that is not silent
//	checkpoint NAME|chosen [epoch=N] [params=NAME]
//	silence NAME, speak NAME                          whether NAME's results reach the others, and it reports
//	epoch                                             everybody ready, from WaitingForMembers to the first round
//	show round [N] | redo | batch | shares            print more of the state
//	corrupt zero|magic|version|limits|short|BYTE=VAL  open a copy that was changed so
//	eject NAME                                        set the reserved status, as a later version will
//	unknown                                           send a message of a foreign type
//
// About verification and tokens:
//
//	join NAME [value=N] [payee=NAME]
//	deposit NAME for=NAME [value=N], fund NAME [value=N], claim NAME [value=N]
//	crowd N [value=N]                                 N members join, called m0, m1, ...
//	arena                                             create a run of six, in round 3, with all results of round 1 to check
//	lie NAME [at=OP] [as=NAME]                        what NAME computes is wrong from that operation on, as of another
//	pass|accuse|unserved NAME of=NAME [round=N]       the verdict of NAME on the result of another, honest but for
//	  [gradient=wrong] [sign=NAME] [share=wrong]      the options; "accuse all" = of everybody by its verifier
//	vote NAME right|wrong|unserved [trace=zero|some]  a tie-breaker's vote in the oldest dispute, or dispute=N
//	defend|reveal|evidence|concede NAME [bad=true]    a move in it; bad = one that proves nothing
//	play                                              accused and accuser of it make their moves until it is over
//	equivocate NAME of=NAME [sign=NAME] [same=true]   show two commitments
//	silent NAME                                       NAME makes no moves when they play
//	late +MS                                          let time pass that nobody tells the run of
//	referee off|on                                    what the host knows
//	show checks|disputes|convictions|tokens
//
// About windows, validators, scores and slots: see scenario_scores_test.go.
type scenario struct {
	world *world
	lies  map[string]uint32 // who lies, from which operation on
	as    map[string]string // and whose lie it is, if it is another's
	mute  map[string]bool
	said  map[string]saying // what validators committed to
	poked bool              // the state was changed by other means than messages, so the log does not lead to it
	t     *testing.T
	out   *bytes.Buffer
	bytes hash.Hash // over all messages and states
	seen  *coverage
	// What the lines of state have shown of each member, and of which world.
	shown   []string
	shownOf *world
}

// coverage is what the scenarios together have shown.
type coverage struct {
	errors map[Error]bool
	edges  map[[2]Phase]bool
	// Kinds of messages that were applied, and offences that were convicted.
	messages map[uint8]bool
	offences map[dispute.Offence]bool
}

// edges are all the transitions between phases that one message can bring about where WaitingMs is not 0. A report can end
// both phases of a round, so a round may seem to follow another directly, or an epoch to end from RoundTrain.
var edges = [][2]Phase{
	{Uninitialized, WaitingForMembers},
	{WaitingForMembers, Warmup},
	{WaitingForMembers, Paused},
	{Warmup, WaitingForMembers},
	{Warmup, RoundTrain},
	{Warmup, Paused},
	{RoundTrain, RoundWitness},
	{RoundTrain, Cooldown},
	{RoundWitness, RoundTrain},
	{RoundWitness, Cooldown},
	{Cooldown, WaitingForMembers},
	{Cooldown, Finished},
	{Cooldown, Paused},
	{Paused, WaitingForMembers},
	{WaitingForMembers, Finished},
	{Warmup, Finished},
	{Paused, Finished},
}

func TestScenarios(t *testing.T) { scenarios(t) }

func scenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in testdata: %v", err)
	}
	seen := &coverage{errors: map[Error]bool{}, edges: map[[2]Phase]bool{}, messages: map[uint8]bool{}, offences: map[dispute.Offence]bool{}}
	hashes := map[string]string{}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sc := &scenario{t: t, out: &bytes.Buffer{}, bytes: sha256.New(), seen: seen}
			command := ""
			for line := range strings.Lines(string(want)) {
				if first, ok := strings.CutSuffix(line, "\\\n"); ok {
					fmt.Fprint(sc.out, line)
					command += first
					continue
				}
				sc.line(command, strings.TrimSuffix(line, "\n"))
				command = ""
			}
			if sc.world != nil && !sc.poked {
				sc.world.replay()
			}
			compare(t, file, want, wrapped(sc.out.Bytes()))
			hashes[name] = hex.EncodeToString(sc.bytes.Sum(nil))
		})
	}
	compareGolden(t, hashes)
	for e := Error(1); e < record.ErrorsEnd; e++ {
		if !seen.errors[e] {
			t.Errorf("no scenario shows error %d, %q", e, e.Error())
		}
	}
	for kind := range uint8(kindsEnd) {
		if !seen.messages[kind] {
			t.Errorf("no scenario applies a message of kind %d", kind)
		}
	}
	for o := dispute.WrongResult; o <= dispute.Contradiction; o++ {
		if !seen.offences[o] {
			t.Errorf("no scenario shows a conviction of %v", o)
		}
	}
	for _, edge := range edges {
		if !seen.edges[edge] {
			t.Errorf("no scenario goes from %v to %v", edge[0], edge[1])
		}
	}
	for edge := range seen.edges {
		if !slices.Contains(edges, edge) {
			t.Errorf("a scenario goes from %v to %v, which is not a transition", edge[0], edge[1])
		}
	}
}

func compare(t *testing.T, file string, want, got []byte) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	g, w := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(g), len(w)) {
		if i >= len(g) || i >= len(w) || g[i] != w[i] {
			t.Fatalf("%s:%d differs; from there on got\n%s", file, i+1, strings.Join(g[min(i, len(g)):min(i+12, len(g))], "\n"))
		}
	}
}

// line copies comments, drops old results, and runs commands. The first part of a command may stand
// on lines before that end in a backslash.
func (sc *scenario) line(first, line string) {
	if result(line) {
		return
	}
	fmt.Fprintln(sc.out, line)
	if line == "" || strings.HasPrefix(line, "#") {
		return
	}
	words := strings.Fields(first + line)
	options := map[string]string{}
	args := words[1:1]
	for _, word := range words[1:] {
		if k, v, ok := strings.Cut(word, "="); ok {
			options[k] = v
		} else {
			args = append(args, word)
		}
	}
	if words[0] != "new" && words[0] != "arena" && sc.world == nil {
		sc.t.Fatalf("%q before any run was created", line)
	}
	sc.command(words[0], args, options)
	if sc.world != nil {
		sc.bytes.Write(sc.world.s.Bytes())
	}
}

func (sc *scenario) command(verb string, args []string, options map[string]string) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	w := sc.world
	switch verb {
	case "new":
		sc.create(options)
	case "tick":
		w.now += number(sc.t, strings.TrimPrefix(name, "+"))
		sc.send("", Tick{})
	case "work":
		w.work = number(sc.t, name)
	case "join":
		sc.join(name, options)
	case "withdraw":
		sc.send(name, Withdraw{})
	case "end":
		sc.send(name, End{})
	case "refund":
		sc.send(name, Refund{Amount: number(sc.t, args[1])})
	case "change":
		sc.change(name, options)
	case "pause":
		sc.send(name, Pause{})
	case "resume":
		sc.send(name, Resume{})
	case "speed":
		sc.send(name, SetSpeed{Speed: uint32(number(sc.t, args[1]))})
	case "unknown":
		sc.send("ann", nil)
	case "ready":
		sc.ready(name, options)
	case "report":
		sc.report(name, options)
	case "checkpoint":
		sc.checkpoint(name, options)
	case "silence", "speak":
		w.silent[sc.member(name)] = verb == "silence"
	case "epoch":
		w.now += w.config.WaitingMs
		sc.send("", Tick{})
		sc.ready("all", nil)
	case "show":
		sc.show(args)
	case "corrupt":
		sc.corrupt(name, options)
	case "eject":
		putStatus(w.s.place(sc.member(name)), StatusEjected)
		sc.poked = true
		sc.state()
	default:
		sc.trust(verb, args, options)
	}
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (sc *scenario) member(name string) Member {
	i, ok := sc.world.s.Find(testKey(name))
	if !ok {
		sc.t.Fatalf("no member %q", name)
	}
	return i
}

// nameOf returns the name of a member, which scenarios take from a short list.
func nameOf(k key.Public) string {
	keys.Lock()
	defer keys.Unlock()
	for name, pub := range keys.publics {
		if pub == k {
			return name
		}
	}
	return "?"
}

// send applies a message and prints what came of it.
func (sc *scenario) send(name string, m Message) { sc.sendWith(name, 0, m) }

// sendWith is send with tokens attached.
func (sc *scenario) sendWith(name string, value uint64, m Message) {
	var sender key.Public
	if name != "" && name != "nobody" {
		sender = testKey(name)
	}
	if m != nil {
		sc.bytes.Write(Append(nil, m))
	}
	before, convictions := sc.world.s.Phase(), sc.world.s.ConvictionsTotal()
	if err := sc.world.applyWith(sender, value, m); err != nil {
		sc.fail(err)
		return
	}
	sc.seen.messages[Append(nil, m)[0]] = true
	if after := sc.world.s.Phase(); after != before {
		sc.seen.edges[[2]Phase{before, after}] = true
	}
	sc.state()
	sc.news(convictions)
}

func (sc *scenario) fail(err error) {
	if code, ok := err.(Error); ok {
		sc.seen.errors[code] = true
	}
	fmt.Fprintf(sc.out, "error: %v\n", err)
}

func (sc *scenario) state() {
	s := sc.world.s
	fmt.Fprintf(sc.out, "> %v epoch=%d round=%d step=%d points=%d", s.Phase(), s.Epoch(), s.Round(), s.Step(), s.PointsTotal())
	for _, f := range []struct {
		name string
		n    uint64
	}{{"drain", uint64(s.Draining())}, {"retired", s.PointsRetired()}, {"rollbacks", uint64(s.Rollbacks())}, {"lost", s.RedoLost()},
		{"checks", uint64(len(s.Checks()))}, {"disputes", uint64(len(s.Disputes()))}} {
		if f.n > 0 {
			fmt.Fprintf(sc.out, " %s=%d", f.name, f.n)
		}
	}
	if s.PausePending() {
		fmt.Fprint(sc.out, " pausing")
	}
	sc.members()
	fmt.Fprintln(sc.out)
}

// members prints the members that are new or have changed since the line of state before.
func (sc *scenario) members() {
	if sc.shownOf != sc.world {
		sc.shownOf, sc.shown = sc.world, nil
	}
	for i := range sc.world.s.Count() {
		m := sc.world.s.Member(i)
		text := fmt.Sprintf("%s %v %d%s", nameOf(m.Key), m.Status, m.Points, sc.standing(m))
		switch {
		case int(i) == len(sc.shown):
			sc.shown = append(sc.shown, "")
		case sc.shown[i] == text:
			continue
		}
		was, _, _ := strings.Cut(sc.shown[i], " ")
		sc.shown[i] = text
		if was != "" && was != nameOf(m.Key) {
			text += " in place of " + was
		}
		fmt.Fprintf(sc.out, " | %s", text)
	}
}

// columnsMax is the longest line of a result; longer ones continue on lines that begin with "..".
const columnsMax = 100

// wrapped breaks the long results of a scenario.
func wrapped(text []byte) []byte {
	var out bytes.Buffer
	for line := range strings.Lines(string(text)) {
		for result(line) && len(line) > columnsMax+1 {
			at := strings.LastIndexByte(line[:columnsMax+1], ' ')
			if bar := strings.LastIndex(line[:columnsMax+1], " |"); bar > columnsMax/2 {
				at = bar // between two members
			}
			if at <= len(".. ") {
				break
			}
			out.WriteString(line[:at] + "\n")
			line = ".. " + line[at+1:]
		}
		out.WriteString(line)
	}
	return out.Bytes()
}

// result reports whether a line is what came of a command.
func result(line string) bool {
	for _, begin := range []string{">", "error:", "fault:", ".."} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return false
}

func (sc *scenario) ready(name string, options map[string]string) {
	w := sc.world
	m := Ready{Epoch: w.s.Epoch()}
	m.Params, _ = w.s.Params()
	if v, ok := options["epoch"]; ok {
		m.Epoch = Epoch(number(sc.t, v))
	}
	if v, ok := options["params"]; ok {
		m.Params = wire.Sum("test/params", []byte(v))
	}
	if name != "all" {
		sc.send(name, m)
		return
	}
	for i := range w.s.Count() {
		if w.s.Status(i) == StatusWaiting && !w.silent[i] && w.s.Phase() == Warmup {
			sc.send(nameOf(w.s.Key(i)), m)
		}
	}
}

func (sc *scenario) report(name string, options map[string]string) {
	w := sc.world
	if name != "all" {
		i, _ := w.s.Find(testKey(name))
		sc.send(name, sc.witness(i, options))
		return
	}
	number := w.s.Round()
	r, ok := w.s.At(number)
	if !ok {
		sc.t.Fatal("no round to report in")
	}
	for _, i := range r.Witnesses() {
		phase := w.s.Phase()
		if w.silent[i] || w.s.Round() != number || phase != RoundTrain && phase != RoundWitness || w.s.Status(i) != StatusActive {
			continue
		}
		if r, _ = w.s.At(number); r.Reported(i) {
			continue
		}
		sc.send(nameOf(w.s.Key(i)), sc.witness(i, options))
	}
}

// witness makes the report of member i, honest but for the options.
func (sc *scenario) witness(i Member, options map[string]string) Witness {
	w := sc.world
	has := w.heard
	if v, ok := options["held"]; ok {
		names := strings.Split(v, ",")
		has = func(j Member) bool { return slices.Contains(names, nameOf(w.s.Key(j))) }
	}
	m := w.report(i, has)
	for k, v := range options {
		switch k {
		case "complete":
			m.Complete = v == "true"
		case "round":
			m.Round = Round(number(sc.t, v))
		case "params":
			m.Params = wire.Hash{}
			if v != "zero" {
				m.Params = wire.Sum("test/params", []byte(v))
			}
		case "prev":
			m.Prev = wire.Sum("test/params", []byte(v))
		case "filter":
			switch v {
			case "short":
				m.Commitments = m.Commitments[8:]
			case "some":
				m.Commitments = make([]byte, 8)
			}
			for b := range m.Commitments {
				m.Commitments[b] = 0xff
			}
		case "extra":
			m.Held = SetHeld(m.Held, Member(number(sc.t, v)))
		case "zeros":
			m.Held = append(m.Held, make([]byte, number(sc.t, v))...)
		}
	}
	return m
}

func (sc *scenario) checkpoint(name string, options map[string]string) {
	w := sc.world
	m := Checkpoint{Epoch: w.s.Epoch(), Manifest: wire.Sum("test/manifest")}
	m.Params, _ = w.s.Params()
	if v, ok := options["epoch"]; ok {
		m.Epoch = Epoch(number(sc.t, v))
	}
	if v, ok := options["params"]; ok {
		m.Params = wire.Sum("test/params", []byte(v))
	}
	if v, ok := options["manifest"]; ok {
		m.Manifest = wire.Sum("test/manifest", []byte(v))
	}
	if name == "chosen" {
		list := w.s.Checkpointers()
		if len(list) > 1 && w.apply(w.s.Key(list[0]), m) == nil { // it takes two to end the phase
			list = list[1:]
		}
		name = nameOf(w.s.Key(list[0]))
	}
	sc.send(name, m)
	if c, ok := w.s.LastCheckpoint(); ok {
		words := ""
		if v, ok := options["manifest"]; ok {
			words = fmt.Sprintf(", named by %d, %q: %v", c.Words, v, c.Manifest == m.Manifest)
		}
		fmt.Fprintf(sc.out, "> checkpoint of epoch %d%s\n", c.Epoch, words)
	}
}
