package coordinator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/coordinator/score"

	"github.com/entrain-network/entrain/wire"
)

// The part of scenarios that is about windows, validators, scores and slots:
//
//	blocks +N                                         let the ledger grow by so many blocks
//	commit NAME|all [payload=X] [round=N] [share=wrong] [sign=NAME] [member=NAME]
//	                                                  put a commitment on the ledger, honest but for the options; "all" = of
//	                                                  everybody who is not silent and has a share
//	window                                            all commit and report, and the window passes
//	windows N                                         so many, without a word but at the end
//	validator NAME [value=N] [payee=NAME], retire NAME
//	scores NAME [ann=0.5 ...] [period=N] [hash=zero]  commit to scores of the period that is being scored
//	tell NAME [period=N] [salt=X] [ann=0.5 ...]       reveal them, or others
//	show window|scores|validators
type saying struct{ m RevealScores }

// say makes what a validator says from options that name members.
func (sc *scenario) say(name string, options map[string]string) RevealScores {
	s := sc.world.s
	m := RevealScores{Salt: wire.Sum("test/salt", []byte(name+options["salt"]))}
	m.Period, _ = s.Scoring()
	for k, v := range options {
		switch k {
		case "period":
			m.Period = uint32(number(sc.t, v))
		case "salt", "hash", "order":
		default:
			f, err := strconv.ParseFloat(v, 64)
			if err != nil {
				sc.t.Fatal(err)
			}
			member := Member(99)
			if k != "nobody" {
				member = sc.member(k)
			}
			m.Scores = append(m.Scores, score.Score{Member: member, Value: int16(f * score.One)})
		}
	}
	slices.SortFunc(m.Scores, func(a, b score.Score) int { return int(a.Member) - int(b.Member) })
	if options["order"] == "wrong" {
		slices.Reverse(m.Scores)
	}
	return m
}

// scored are the commands of this file.
func (sc *scenario) scored(verb, name string, options map[string]string) {
	w := sc.world
	switch verb {
	case "blocks":
		w.block += number(sc.t, strings.TrimPrefix(name, "+"))
		sc.send("", Tick{})
	case "commit":
		sc.commit(name, options)
	case "window", "windows":
		n := uint64(1)
		if verb == "windows" {
			n = number(sc.t, name)
		}
		for range n {
			w.window()
		}
		sc.state()
	case "validator":
		m := RegisterValidator{}
		if v, ok := options["payee"]; ok {
			m.Payee = testKey(v)
		}
		sc.sendWith(name, value(sc, options), m)
	case "retire":
		sc.sendWith(name, value(sc, options), RetireValidator{})
	case "scores":
		m := sc.say(name, options)
		c := CommitScores{Period: m.Period, Hash: ScoresHash(w.s.ID(), testKey(name), m)}
		if options["hash"] == "zero" {
			c.Hash = wire.Hash{}
		}
		sc.send(name, c)
		if list, _ := w.s.Scores(m.Period); slices.ContainsFunc(list.Validators, func(v score.ValidatorScores) bool {
			return v.Key == testKey(name) && !v.Revealed
		}) {
			if sc.said == nil {
				sc.said = map[string]saying{}
			}
			if old, ok := sc.said[name]; !ok || old.m.Period != m.Period {
				sc.said[name] = saying{m}
			}
		}
	case "tell":
		m := sc.said[name].m
		if len(options) > 0 {
			m = sc.say(name, options)
		}
		sc.send(name, m)
	default:
		sc.t.Fatalf("unknown command %q", verb)
	}
}

func (sc *scenario) commit(name string, options map[string]string) {
	w := sc.world
	if name == "all" {
		w.commitAll()
		sc.state()
		return
	}
	i, _ := w.s.Find(testKey(name))
	if v, ok := options["member"]; ok {
		i = sc.member(v)
	}
	n := w.s.Round()
	if v, ok := options["round"]; ok {
		n = Round(number(sc.t, v))
	}
	c := dispute.Commitment{Run: w.s.ID(), Round: n, Member: i}
	if r, ok := w.s.At(n); ok {
		c = commitment(r, i)
	}
	if v, ok := options["payload"]; ok {
		c.Payload = wire.Sum("test/payload", []byte(v))
	}
	if options["share"] == "wrong" {
		c.Share = wire.Sum("test/junk")
	}
	signer := name
	if v, ok := options["sign"]; ok {
		signer = v
	}
	testKey(signer)
	sc.send(name, Commit{Signed: c.Sign(PrivateOf(testKey(signer)))})
}

func (sc *scenario) showScores(what string) {
	s := sc.world.s
	switch what {
	case "window":
		r, _ := s.At(s.Round())
		_, slice := r.SliceSeed()
		before, sliceBefore := wire.Hash{}, false
		if p, ok := s.At(s.Round() - 1); ok {
			before, sliceBefore = p.SliceSeed()
		}
		seed := r.Seed()
		fmt.Fprintf(sc.out, "> window %d until block %d, committed %s, slice %t, of the one before %t (%t)\n", s.Window(), s.DeadlineHeight(),
			sc.names(func(i Member) bool { _, ok := r.Committed(i); return ok }), slice, sliceBefore,
			before == wire.Sum("entrain/slice", seed[:]))
	case "validators":
		for _, v := range append(s.Validators(), s.Benched()...) {
			place := []string{"seat", "bench"}[map[bool]int{true: 1}[v.Bench]]
			fmt.Fprintf(sc.out, "> %s %d: %s stake=%d balance=%d trust=%d earned=%d since=%d payee=%s\n", place, v.Seat, nameOf(v.Key), v.Stake,
				v.Balance, v.Trust, v.Earned, v.Since, nameOf(v.Payee))
		}
		fmt.Fprintf(sc.out, "> treasury %d, escrow %d\n", s.Treasury(), s.Escrow())
	case "scores":
		period, stage := s.Scoring()
		fmt.Fprintf(sc.out, "> window %d, period %d, scoring %d: %v\n", s.Window(), s.Period(), period, stage)
		last, ok := s.LastScores()
		if !ok {
			return
		}
		for _, m := range last.Members {
			fmt.Fprintf(sc.out, "> period %d: %s sequences=%d scored=%t score=%.3f weight=%.3f reward=%d penalty=%d\n", last.Period,
				nameOf(s.Key(m.Member)), m.Sequences, m.Scored, float64(m.Score)/score.One, float64(m.Weight)/score.WeightOne, m.Reward, m.Penalty)
		}
		for _, v := range last.Validators {
			fmt.Fprintf(sc.out, "> period %d: %s said %d, revealed=%t agreement=%.3f trust=%d stake=%d reward=%d\n", last.Period,
				nameOf(v.Key), len(v.Scores), v.Revealed, float64(v.Agreement)/score.AgreementOne, v.Trust, v.Stake, v.Reward)
		}
	}
}
