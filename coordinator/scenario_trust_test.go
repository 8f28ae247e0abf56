package coordinator

import (
	"fmt"
	"strings"

	"github.com/entrain-network/entrain/bisect"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// The part of scenarios that is about verification, disputes and tokens.

func value(sc *scenario, options map[string]string) uint64 {
	if v, ok := options["value"]; ok {
		return number(sc.t, v)
	}
	return 0
}

func (sc *scenario) join(name string, options map[string]string) {
	m := Join{Speed: 100}
	if v, ok := options["speed"]; ok {
		m.Speed = uint32(number(sc.t, v))
	}
	if v, ok := options["payee"]; ok {
		m.Payee = testKey(v)
	}
	sc.sendWith(name, value(sc, options), m)
}

func (sc *scenario) trust(verb string, args []string, options map[string]string) {
	name := strings.Join(args[:min(1, len(args))], "")
	w := sc.world
	switch verb {
	case "deposit":
		sc.sendWith(name, value(sc, options), Deposit{Member: testKey(options["for"])})
	case "fund":
		sc.sendWith(name, value(sc, options), Fund{})
	case "claim":
		sc.sendWith(name, value(sc, options), Claim{})
	case "crowd":
		for i := range number(sc.t, name) {
			if err := w.applyWith(testKey(fmt.Sprint("m", i)), value(sc, options), Join{}); err != nil {
				sc.t.Fatal(err)
			}
		}
	case "arena":
		sc.arena()
	case "lie":
		if name == "verifier" {
			name = sc.verifier(options["of"])
		}
		sc.lies[name] = 0
		if v, ok := options["as"]; ok {
			sc.as[name] = v
		}
		if v, ok := options["at"]; ok {
			sc.lies[name] = uint32(number(sc.t, v))
		}
	case "silent":
		if name == "verifier" {
			name = sc.verifier(options["of"])
		}
		sc.mute[name] = true
	case "late":
		w.now += number(sc.t, strings.TrimPrefix(name, "+"))
	case "referee":
		w.referee = program{}
		if name == "off" {
			w.referee = nil
		}
	case "pass", "accuse", "unserved":
		sc.verdict(verb, name, options)
	case "equivocate":
		sc.equivocate(name, options)
	case "vote", "defend", "reveal", "evidence", "concede", "play":
		sc.move(verb, args, options)
	default:
		sc.scored(verb, name, options)
	}
}

// arena is where disputes begin: six members with stakes, whose results of round 1 are all being checked.
func (sc *scenario) arena() {
	if sc.world != nil {
		sc.world.replay()
	}
	c := trusting()
	c.BatchStart, c.BatchEnd, c.StartMembers, c.MinMembers = 12, 12, 6, 2
	w := newWorld(sc.t, Limits{Members: 8, Witnesses: 4}, c, "scenario")
	sc.world, sc.lies, sc.as, sc.mute = w, map[string]uint32{}, map[string]string{}, map[string]bool{}
	p := &player{w: w}
	for _, name := range []string{"ann", "bob", "cat", "dan", "eve", "fay"} {
		p.must(w.applyWith(testKey(name), c.Stake, Join{}))
	}
	w.now += c.WaitingMs
	p.must(w.apply(key.Public{}, Tick{}))
	for w.s.Round() < 3 {
		p.honest()
	}
	sc.state()
}

// verifier returns who is to check the first result of a member that is checked.
func (sc *scenario) verifier(of string) string {
	for _, c := range sc.world.s.Checks() {
		if c.Member == sc.member(of) {
			return nameOf(sc.world.s.Key(c.Verifier))
		}
	}
	sc.t.Fatalf("nobody checks %s", of)
	return ""
}

// compute returns what a member computes of a check, honestly or not.
func (sc *scenario) compute(c dispute.Check, name string) *trace {
	of := sc.world.caseOf(c)
	from, lies := sc.lies[name]
	if !lies {
		return compute(of, nil)
	}
	if other, ok := sc.as[name]; ok {
		name = other
	}
	if n := (program{}).Ops(c.Sequences); from >= n-1 {
		t := compute(of, nil)
		t.result.Payload = wire.Sum("test/lie", []byte(name))
		return t.end(dispute.Outcome(t.result))
	}
	return compute(of, func(op, _, _ uint32, words []uint32) []uint32 {
		if op == from {
			words[0] ^= 1 << (len(name) + int(name[0])&7)
		}
		return words
	})
}

func (sc *scenario) verdict(verb, name string, options map[string]string) {
	w := sc.world
	if name == "all" {
		for _, c := range w.s.Checks() {
			t := compute(w.caseOf(c), nil)
			m := Accuse{Round: c.Round, Member: c.Member, Commitment: w.sign(t.result), Trace: t.blind(w.s.Key(c.Verifier))}
			if err := w.apply(w.s.Key(c.Verifier), m); err != nil {
				sc.fail(err)
			}
		}
		fmt.Fprintf(sc.out, "> %d checks, %d disputes\n", len(w.s.Checks()), len(w.s.Disputes()))
		return
	}
	of := options["of"]
	member := sc.member(of)
	check := dispute.Check{Round: 1, Member: member, Sequences: 2}
	found, round := false, options["round"]
	for _, c := range w.s.Checks() {
		if c.Member == member && (!found || fmt.Sprint(c.Round) == round) {
			check, found = c, true
		}
	}
	if round != "" {
		check.Round = Round(number(sc.t, round))
	}
	if name == "verifier" {
		name = nameOf(w.s.Key(check.Verifier))
	}
	theirs, own := sc.compute(check, of), sc.compute(check, name)
	commitment := theirs.result
	if options["share"] == "wrong" {
		commitment.Share = wire.Sum("test/junk")
	}
	signed := w.sign(commitment)
	if v, ok := options["sign"]; ok {
		signed = commitment.Sign(PrivateOf(testKey(v)))
	}
	switch verb {
	case "pass":
		m := Pass{Round: check.Round, Member: member, Commitment: signed, Gradient: gradient(own.before)}
		if options["gradient"] == "wrong" {
			m.Gradient = wire.Hash{}
		}
		sc.applied(name, m)
	case "accuse":
		sc.applied(name, Accuse{Round: check.Round, Member: member, Commitment: signed, Trace: own.blind(testKey(name))})
	default:
		sc.applied(name, Unserved{Round: check.Round, Member: member})
	}
}

// applied sends a message, and says who sent it if the command does not.
func (sc *scenario) applied(name string, m Message) {
	fmt.Fprintf(sc.out, "> %s: ", name)
	sc.send(name, m)
}

func (sc *scenario) equivocate(name string, options map[string]string) {
	w := sc.world
	c := dispute.Commitment{Run: w.s.ID(), Round: w.s.Round(), Member: sc.member(options["of"])}
	m := Equivocation{A: w.sign(c)}
	c.Payload = wire.Sum("test/other")
	if v, ok := options["member"]; ok {
		m.A.Commitment.Member, c.Member = Member(number(sc.t, v)), Member(number(sc.t, v))
	}
	if options["same"] == "true" {
		c = m.A.Commitment
	}
	m.B = c.Sign(PrivateOf(w.s.Key(sc.member(options["of"]))))
	if v, ok := options["sign"]; ok {
		m.B = c.Sign(PrivateOf(testKey(v)))
	}
	sc.send(name, m)
}

func (sc *scenario) move(verb string, args []string, options map[string]string) {
	w := sc.world
	var d dispute.Dispute
	if list := w.s.Disputes(); len(list) > 0 {
		d = list[0]
	}
	id := d.ID
	if v, ok := options["dispute"]; ok {
		id = uint32(number(sc.t, v))
		if other, ok := w.s.Dispute(id); ok {
			d = other
		}
	}
	if verb == "play" {
		parties := map[Member]*party{}
		for i := range w.s.Count() {
			if name := nameOf(w.s.Key(i)); !sc.mute[name] {
				parties[i] = &party{trace: sc.compute(d.Check, name), moves: -1}
			}
		}
		before := w.s.ConvictionsTotal()
		messages, took := w.fight(id, parties)
		fmt.Fprintf(sc.out, "> it is over after %d messages and %d ms\n", messages, took)
		sc.state()
		sc.news(before)
		return
	}
	name := args[0]
	switch name {
	case "accused":
		name = nameOf(w.s.Key(d.Accused))
	case "accuser":
		name = nameOf(w.s.Key(d.Accuser))
	case "first", "second", "third":
		name = nameOf(w.s.Key(d.TieBreakers[strings.Index("first second third", name)/6].Member))
	}
	bad := options["bad"] == "true"
	t := sc.compute(d.Check, name)
	var m Message
	switch verb {
	case "vote":
		v := TieBreak{Dispute: id}
		switch args[1] {
		case "right":
			v.Vote, v.Trace = dispute.VoteRight, t.blind(testKey(name))
		case "wrong":
			v.Vote, v.Trace = dispute.VoteWrong, t.blind(testKey(name))
		case "unserved":
			v.Vote = dispute.VoteUnserved
		}
		switch options["trace"] {
		case "zero":
			v.Trace = wire.Hash{}
		case "some":
			v.Trace = wire.Hash{1}
		case "accuser": // copied as it is
			v.Trace = d.Traces[dispute.Accuser]
		case "blind": // copied as if it were the root
			v.Trace = dispute.Blind(testKey(name), d.Traces[dispute.Accuser])
		}
		m = v
	case "defend":
		proof := bisect.Prove(t.ops, uint32(len(t.ops)-1))
		if bad {
			proof = proof[1:]
		}
		m = Defend{Dispute: id, Trace: t.root(), Proof: proof}
	case "reveal":
		v := Reveal{Dispute: id}
		if got, ok := t.move(d, side(d, w.s, name)).(Reveal); ok && !bad {
			v.Nodes = got.Nodes
		}
		m = v
	case "evidence":
		m = Evidence{Dispute: id, Bytes: t.evidence(d.Op, d.Tile, d.Slice)}
		if bad {
			m = Evidence{Dispute: id, Bytes: []byte("?")}
		}
	case "concede":
		m = Concede{Dispute: id}
	}
	sc.applied(name, m)
}

// side returns which side of a dispute a member is on; that of the accused if none.
func side(d dispute.Dispute, s State, name string) int {
	if d.ID != 0 && d.Accuser != dispute.NoMember && s.Key(d.Accuser) == testKey(name) {
		return dispute.Accuser
	}
	return dispute.Accused
}

// news prints what a message brought about besides the state.
func (sc *scenario) news(before uint32) {
	s := sc.world.s
	for _, c := range s.Convictions() {
		if c.Number <= before {
			continue
		}
		sc.seen.offences[c.Offence] = true
		by := "nobody"
		if c.By != dispute.NoMember {
			by = nameOf(c.ByKey)
		}
		fmt.Fprintf(sc.out, "> convicted %s of %v in round %d, by %s, %d slashed, results of rounds %d to %d\n",
			nameOf(c.Key), c.Offence, c.Round, by, c.Slashed, c.FirstRound, c.LastRound)
	}
	if to, amount := s.Payout(); amount > 0 {
		fmt.Fprintf(sc.out, "> %s is paid %d\n", nameOf(to), amount)
	}
}

// standing returns a member's failures, doubt and tokens, those that a newcomer does not have.
func (sc *scenario) standing(m MemberState) string {
	text := ""
	for n, f := range []struct {
		name string
		n    uint64
		not  uint64
	}{
		{"missed", uint64(m.Missed), 0}, {"idle", uint64(m.Idle), 0},
		{"doubt", uint64(m.Doubt), dispute.DoubtNew}, {"strikes", uint64(m.Strikes), 0}, {"skipped", uint64(m.Skipped), 0},
		{"astray", uint64(m.Astray), 0}, {"passed", uint64(m.Passed), 0}, {"stake", m.Stake, 0},
		{"balance", m.Balance, 0}, {"unvested", m.Unvested, 0},
	} {
		if n == 2 && sc.world.config.VerificationPercent == 0 && sc.world.s.Escrow() == 0 {
			break
		}
		if f.n != f.not {
			text += fmt.Sprintf(" %s=%d", f.name, f.n)
		}
	}
	return text
}

func (sc *scenario) showTrust(what string) {
	s := sc.world.s
	name := func(i Member) string {
		if i == dispute.NoMember {
			return "nobody"
		}
		return nameOf(s.Key(i))
	}
	switch what {
	case "checks":
		for _, c := range s.Checks() {
			fmt.Fprintf(sc.out, "> %s checks %s in round %d, %d sequences, until +%d", name(c.Verifier), name(c.Member), c.Round,
				c.Sequences, c.DeadlineMs-bornMs)
			if c.Disputed {
				fmt.Fprint(sc.out, ", disputed")
			}
			if c.Reassigned {
				fmt.Fprint(sc.out, ", reassigned")
			}
			fmt.Fprintln(sc.out)
		}
	case "disputes":
		for _, d := range s.Disputes() {
			fmt.Fprintf(sc.out, "> dispute %d of %s against %s: %v until +%d, unserved=%t, tie-breakers", d.ID, name(d.Accuser),
				name(d.Accused), d.Stage, d.DeadlineMs-bornMs, d.Unserved)
			for _, v := range d.TieBreakers {
				fmt.Fprintf(sc.out, " %s:%d", name(v.Member), v.Vote)
			}
			if d.Stage >= dispute.StageDescending {
				fmt.Fprintf(sc.out, ", %v, operation %d tile %d slice %d, depth %d index %d, revealed %v", d.Level, d.Op, d.Tile,
					d.Slice, d.Depth, d.Index, d.Revealed)
			}
			fmt.Fprintln(sc.out)
		}
	case "tokens":
		fmt.Fprintf(sc.out, "> treasury %d, escrow %d", s.Treasury(), s.Escrow())
		for i := range s.Count() {
			m := s.Member(i)
			fmt.Fprintf(sc.out, " | %s stake=%d balance=%d points=%d settled=%d claimed=%d payee=%s", nameOf(m.Key), m.Stake,
				m.Balance, m.Points, m.Settled, m.Claimed, nameOf(m.Payee))
			if m.ReleaseMs > 0 {
				fmt.Fprintf(sc.out, " free at +%d", m.ReleaseMs-bornMs)
			}
		}
		fmt.Fprintln(sc.out)
	default:
		fmt.Fprintf(sc.out, "> %d convictions\n", s.ConvictionsTotal())
	}
}
