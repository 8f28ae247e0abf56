package runlog

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
)

// Windows is what a coordinator's state says of windows, scores and validators: of runs that exchange by buckets, or in which validators
// score. Read from a log it holds what changed: the lists those rows, or, where Whole is set, all.
type Windows struct {
	Whole bool
	WindowsHead
	Commits    []Commits // of the ring's rounds, all
	Miners     []Miner   // by place
	Validators []Seat    // all, by seat, if SeatsTold; else they are as before
	SeatsTold  bool
	Period     *Period // settled last, once, when it is
}

// WindowsHead is what a state says of that as a whole. The numbers are those of coordinator.State.
type WindowsHead struct {
	Buckets          bool   // results travel through buckets, and commitments are on the chain
	WindowBlocks     uint32 // of a window
	DeadlineHeight   uint64 // at which the window ends; 0: height does not end the phase
	Window           uint32
	ScoreWindows     uint32 // in a period; 0: nobody scores
	Current          uint32 // period that runs
	Scoring          uint32 // period that is being scored; 0: none
	Stage            uint8  // of that: coordinator.ScoreStage
	Emission         uint64 // tokens a period
	ValidatorPercent uint8
	Given            uint64 // tokens ever given for scores
	Taken            uint64 // tokens that penalties took back
}

// Commits is how many commitments to a round are on the chain.
type Commits struct{ Round, Count uint32 }

// Miner is what a member's scores brought it.
type Miner struct {
	Index  uint32
	Since  uint32 // window
	Score  int16  // moving average, in units of 1/coordinator.ScoreOne
	Scored bool
	Unripe uint64 // tokens that are given with the next settlement
	Earned uint64 // tokens it was ever given for scores
}

// Seat is a validator.
type Seat struct {
	Seat    uint32
	Key     string // hex
	Payee   string
	Stake   uint64
	Balance uint64
	Earned  uint64
	Trust   uint8
	Since   uint32 // window
}

// Period is what came of a period that is settled.
type Period struct {
	Number      uint32
	First, Last uint32 // windows
	Members     []MemberScore
	Validators  []SeatScores
}

// MemberScore is what a member was scored, and got.
type MemberScore struct {
	Member    uint32
	Sequences uint32
	Scored    bool
	Score     int16
	Weight    uint32 // of coordinator.WeightOne
	Reward    uint64
	Penalty   uint64
}

// SeatScores is what a validator said of a period, and got.
type SeatScores struct {
	Seat      uint32
	Key       string
	Revealed  bool
	Agreement uint16 // of coordinator.AgreementOne
	Trust     uint8
	Stake     uint64
	Reward    uint64
	Said      []Said
}

// Said is a validator's score of a member.
type Said struct {
	Member uint32
	Value  int16
}

// digestWindows is what a state says of windows and scores; nil of a run that has none.
func digestWindows(s coordinator.State) *Windows {
	c := s.Config()
	if c.Exchange != coordinator.Buckets && c.Validators == 0 {
		return nil
	}
	w := &Windows{Whole: true, SeatsTold: true, WindowsHead: WindowsHead{
		Buckets: c.Exchange == coordinator.Buckets, WindowBlocks: c.WindowBlocks, DeadlineHeight: s.DeadlineHeight(), Window: s.Window(),
		ScoreWindows: c.ScoreWindows, Current: s.Period(), Emission: c.Emission, ValidatorPercent: c.ValidatorPercent,
	}}
	period, stage := s.Scoring()
	w.Scoring, w.Stage = period, uint8(stage)
	w.Given, w.Taken = s.Emitted()
	for number := s.Round() - min(s.Round(), roundsKept-1); number <= s.Round(); number++ {
		if r, ok := s.At(number); ok && w.Buckets {
			w.Commits = append(w.Commits, Commits{number, r.CommittedCount()})
		}
	}
	if c.Validators == 0 {
		return w
	}
	for i := range s.Count() {
		m := s.Member(i)
		w.Miners = append(w.Miners, Miner{Index: i, Since: m.Since, Score: m.Score, Scored: m.Scored, Unripe: m.Unvested, Earned: m.Earned})
	}
	for _, v := range s.Validators() {
		w.Validators = append(w.Validators, Seat{Seat: v.Seat, Key: v.Key.String(), Payee: hashText(v.Payee), Stake: v.Stake, Balance: v.Balance, Earned: v.Earned, Trust: v.Trust, Since: v.Since})
	}
	if last, ok := s.LastScores(); ok && last.Settled {
		w.Period = digestPeriod(last)
	}
	return w
}

func digestPeriod(p coordinator.Scores) *Period {
	d := &Period{Number: p.Period, First: p.First, Last: p.Last}
	for _, m := range p.Members {
		d.Members = append(d.Members, MemberScore{m.Member, m.Sequences, m.Scored, m.Score, m.Weight, m.Reward, m.Penalty})
	}
	for _, v := range p.Validators {
		x := SeatScores{Seat: v.Seat, Key: v.Key.String(), Revealed: v.Revealed, Agreement: v.Agreement, Trust: v.Trust, Stake: v.Stake, Reward: v.Reward}
		for _, s := range v.Scores {
			x.Said = append(x.Said, Said{s.Member, s.Value})
		}
		d.Validators = append(d.Validators, x)
	}
	return d
}

// since returns what differs from an earlier one; nil if nothing does. Without an earlier one it is w itself.
func (w *Windows) since(earlier *Windows) *Windows {
	if w == nil || earlier == nil {
		return w
	}
	out := &Windows{WindowsHead: w.WindowsHead, Commits: w.Commits}
	for i, m := range w.Miners {
		if i >= len(earlier.Miners) || earlier.Miners[i] != m {
			out.Miners = append(out.Miners, m)
		}
	}
	if !slices.Equal(w.Validators, earlier.Validators) {
		out.Validators, out.SeatsTold = w.Validators, true
	}
	if w.Period != nil && (earlier.Period == nil || earlier.Period.Number != w.Period.Number) {
		out.Period = w.Period
	}
	if out.WindowsHead == earlier.WindowsHead && slices.Equal(out.Commits, earlier.Commits) && len(out.Miners) == 0 && !out.SeatsTold && out.Period == nil {
		return nil
	}
	return out
}

func appendWindows(p *pen, w *Windows) {
	h := w.WindowsHead
	for _, b := range []bool{w.Whole, w.SeatsTold, w.Period != nil, h.Buckets} {
		p.bool(b)
	}
	for _, v := range []uint32{h.WindowBlocks, h.Window, h.ScoreWindows, h.Current, h.Scoring} {
		p.uint(uint64(v))
	}
	p.u8(h.Stage)
	p.u8(h.ValidatorPercent)
	for _, v := range []uint64{h.DeadlineHeight, h.Emission, h.Given, h.Taken} {
		p.uint(v)
	}
	p.uint(uint64(len(w.Commits)))
	for _, c := range w.Commits {
		p.uint(uint64(c.Round))
		p.uint(uint64(c.Count))
	}
	p.uint(uint64(len(w.Miners)))
	for _, m := range w.Miners {
		p.uint(uint64(m.Index))
		p.uint(uint64(m.Since))
		p.i16(m.Score)
		p.bool(m.Scored)
		p.uint(m.Unripe)
		p.uint(m.Earned)
	}
	if w.SeatsTold {
		p.uint(uint64(len(w.Validators)))
		for _, v := range w.Validators {
			p.uint(uint64(v.Seat))
			p.text(v.Key)
			p.text(v.Payee)
			p.uint(v.Stake)
			p.uint(v.Balance)
			p.uint(v.Earned)
			p.u8(v.Trust)
			p.uint(uint64(v.Since))
		}
	}
	if w.Period != nil {
		appendPeriod(p, w.Period)
	}
}

func parseWindows(e *eye) *Windows {
	w := &Windows{Whole: e.bool(), SeatsTold: e.bool()}
	settled := e.bool()
	h := &w.WindowsHead
	h.Buckets, h.WindowBlocks, h.Window, h.ScoreWindows, h.Current, h.Scoring = e.bool(), e.u32(), e.u32(), e.u32(), e.u32(), e.u32()
	h.Stage, h.ValidatorPercent, h.DeadlineHeight, h.Emission, h.Given, h.Taken = e.u8(), e.u8(), e.u64(), e.u64(), e.u64(), e.u64()
	for range e.uint(roundsMax) {
		w.Commits = append(w.Commits, Commits{e.u32(), e.u32()})
	}
	for range e.uint(membersMax) {
		m := Miner{Index: uint32(e.uint(membersMax - 1)), Since: e.u32(), Score: e.i16(), Scored: e.bool(), Unripe: e.u64(), Earned: e.u64()}
		if e.bad {
			return nil
		}
		w.Miners = append(w.Miners, m)
	}
	if w.SeatsTold {
		for range e.uint(seatsMax) {
			w.Validators = append(w.Validators, Seat{Seat: e.u32(), Key: e.text(), Payee: e.text(), Stake: e.u64(), Balance: e.u64(), Earned: e.u64(), Trust: e.u8(), Since: e.u32()})
		}
	}
	if settled && !e.bad {
		w.Period = parsePeriod(e)
	}
	return w
}

func appendPeriod(p *pen, d *Period) {
	for _, v := range []uint32{d.Number, d.First, d.Last} {
		p.uint(uint64(v))
	}
	p.uint(uint64(len(d.Members)))
	for _, m := range d.Members {
		p.uint(uint64(m.Member))
		p.uint(uint64(m.Sequences))
		p.bool(m.Scored)
		p.i16(m.Score)
		p.uint(uint64(m.Weight))
		p.uint(m.Reward)
		p.uint(m.Penalty)
	}
	p.uint(uint64(len(d.Validators)))
	for _, v := range d.Validators {
		p.uint(uint64(v.Seat))
		p.text(v.Key)
		p.bool(v.Revealed)
		p.uint(uint64(v.Agreement))
		p.u8(v.Trust)
		p.uint(v.Stake)
		p.uint(v.Reward)
		p.uint(uint64(len(v.Said)))
		for _, s := range v.Said {
			p.uint(uint64(s.Member))
			p.i16(s.Value)
		}
	}
}

func parsePeriod(e *eye) *Period {
	d := &Period{Number: e.u32(), First: e.u32(), Last: e.u32()}
	for range e.uint(membersMax) {
		m := MemberScore{Member: uint32(e.uint(membersMax - 1)), Sequences: e.u32(), Scored: e.bool(), Score: e.i16(), Weight: e.u32(), Reward: e.u64(), Penalty: e.u64()}
		if e.bad {
			return nil
		}
		d.Members = append(d.Members, m)
	}
	for range e.uint(seatsMax) {
		v := SeatScores{Seat: e.u32(), Key: e.text(), Revealed: e.bool(), Agreement: uint16(e.uint(1<<16 - 1)), Trust: e.u8(), Stake: e.u64(), Reward: e.u64()}
		for range e.uint(membersMax) {
			s := Said{uint32(e.uint(membersMax - 1)), e.i16()}
			if e.bad {
				return nil
			}
			v.Said = append(v.Said, s)
		}
		d.Validators = append(d.Validators, v)
	}
	return d
}
