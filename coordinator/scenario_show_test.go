package coordinator

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/coordinator/internal/record"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// create makes a new run from options, or prints the faults of its configuration.
func (sc *scenario) create(options map[string]string) {
	l := Limits{Members: 8, Witnesses: 4}
	c := testConfig()
	for k, v := range options {
		switch k {
		case "members":
			l.Members = uint32(number(sc.t, v))
		case "witnesses":
			l.Witnesses = uint16(number(sc.t, v))
		case "validators":
			l.Validators = uint16(number(sc.t, v))
		case "buckets":
			l.Buckets = v == "true"
		case "speeds":
			l.Speeds = v == "true"
		case "Name":
			c.Name = v
		case "Owner":
			c.Owner = key.Public{}
		case "ModelHash":
			c.ModelHash = wire.Hash{}
		case "StateHash":
			c.StateHash = wire.Sum("test/fresh")
		case "SpecHash":
			c.SpecHash = wire.Hash{}
		default:
			f := reflect.ValueOf(&c).Elem().FieldByName(k)
			if !f.IsValid() {
				sc.t.Fatalf("no field %q in Config", k)
			}
			f.SetUint(number(sc.t, v))
		}
	}
	sc.bytes.Write(c.Append(l.Append(nil)))
	if _, err := New(l, c, Env{}); err != nil {
		sc.fail(err)
		for _, f := range c.Check(l) {
			sc.seen.errors[f.Code] = true
			fmt.Fprintf(sc.out, "fault: %v\n", f)
		}
		return
	}
	if sc.world != nil {
		sc.world.replay()
	}
	sc.world = newWorld(sc.t, l, c, "scenario")
	sc.said = nil
	sc.lies, sc.as, sc.mute = map[string]uint32{}, map[string]string{}, map[string]bool{}
	sc.seen.edges[[2]Phase{Uninitialized, sc.world.s.Phase()}] = true
	sc.state()
}

// show prints parts of the state that the line of state leaves out.
func (sc *scenario) show(args []string) {
	s := sc.world.s
	if len(args) == 0 {
		sc.t.Fatal("show what?")
	}
	switch args[0] {
	case "checks", "disputes", "convictions", "tokens":
		sc.showTrust(args[0])
	case "window", "validators", "scores":
		sc.showScores(args[0])
	case "shares":
		r, _ := s.At(s.Round())
		fmt.Fprintf(sc.out, "> shares of %d:", r.Batch())
		for i := range s.Count() {
			fmt.Fprintf(sc.out, " %s %d at %d", nameOf(s.Key(i)), batch.Total(r.Share(i)), r.Speed(i))
		}
		fmt.Fprintln(sc.out)
	case "redo":
		fmt.Fprintf(sc.out, "> redo %v data=%d\n", s.Redo(), s.DataIndex())
	case "params":
		params, round := s.Params()
		what := "trained"
		if params == s.Config().ModelHash {
			what = "initial"
		}
		if saved, ok := s.LastCheckpoint(); ok && saved.Params == params {
			what = "checkpointed"
		}
		fmt.Fprintf(sc.out, "> params %s, of round %d\n", what, round)
	case "time":
		fmt.Fprintf(sc.out, "> phase since +%d until +%d\n", s.PhaseSince()-bornMs, s.Deadline()-min(s.Deadline(), bornMs))
	case "checkpointers":
		fmt.Fprintf(sc.out, "> checkpointers %s\n", sc.names(s.Checkpointer))
	case "round":
		n := s.Round()
		if len(args) > 1 {
			n = Round(number(sc.t, args[1]))
		}
		r, ok := s.At(n)
		if !ok {
			fmt.Fprintf(sc.out, "> round %d is not in the ring\n", n)
			return
		}
		sc.showRound(r)
	default:
		sc.t.Fatalf("cannot show %q", args[0])
	}
}

func (sc *scenario) showRound(r RoundState) {
	kind := "drains"
	if r.Trains() {
		kind = fmt.Sprintf("is step %d", r.Step())
	}
	fmt.Fprintf(sc.out, "> round %d %s batch=%d spans=%v active=%s expected=%s\n", r.Number(), kind, r.Batch(), r.Spans(),
		sc.names(r.Active), sc.names(r.Expected))
	_, agreed := r.Agreed()
	fmt.Fprintf(sc.out, "> round %d attests=%d witnesses=%s reports=%d quorum=%d final=%t accepted=%s agreed=%t\n", r.Number(),
		r.Attests(), sc.names(r.Elected), len(r.Reports()), r.Quorum(), r.Final(), sc.names(r.Accepted), agreed)
}

// names lists the members for whom is is true.
func (sc *scenario) names(is func(Member) bool) string {
	var list []string
	for i := range sc.world.s.Count() {
		if is(i) {
			list = append(list, nameOf(sc.world.s.Key(i)))
		}
	}
	return "[" + strings.Join(list, " ") + "]"
}

// corrupt opens a changed copy of the state.
func (sc *scenario) corrupt(how string, options map[string]string) {
	b := slices.Clone(sc.world.s.Bytes())
	switch how {
	case "zero":
		clear(b)
	case "magic":
		b[hMagic]++
	case "version":
		b[hVersion]++
	case "limits":
		record.Header(b).SetLimitMembers(MembersMax + 1)
	case "short":
		b = b[:len(b)-1]
	case "":
		for k, v := range options {
			b[number(sc.t, k)] = uint8(number(sc.t, v))
		}
	default:
		sc.t.Fatalf("cannot corrupt %q", how)
	}
	if _, err := Open(b); err != nil {
		sc.fail(err)
		return
	}
	fmt.Fprintln(sc.out, "> opens")
}

// change sends the owner's change of a run: the terms that it has, but for the options.
func (sc *scenario) change(name string, options map[string]string) {
	c := sc.world.s.Config()
	m := Change{
		Rate: c.Rate, Emission: c.Emission, WaitingMs: c.WaitingMs, WarmupMs: c.WarmupMs,
		RoundTrainMs: c.RoundTrainMs, RoundWitnessMs: c.RoundWitnessMs, CooldownMs: c.CooldownMs, EpochMs: c.EpochMs,
	}
	for k, v := range options {
		reflect.ValueOf(&m).Elem().FieldByName(k).SetUint(number(sc.t, v))
	}
	sc.send(name, m)
}
