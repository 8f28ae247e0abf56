package view

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/runlog"
)

// Limits of what is kept of disputes and convictions, and of the moves of one dispute.
const (
	disputesKept    = 64
	convictionsKept = 256
	movesKept       = 64
)

// Trust holds the checks, disputes, convictions and tokens of a run.
type Trust struct {
	runlog.TrustHead
	Checks      []Check      `json:"checks"`      // open, in order of rounds and members
	Disputes    []Dispute    `json:"disputes"`    // newest first, at most disputesKept
	Convictions []Conviction `json:"convictions"` // newest first, at most convictionsKept
}

// Check is a result that is being computed again.
type Check struct {
	Round      coordinator.Round  `json:"round"`
	Member     coordinator.Member `json:"member"`
	Verifier   coordinator.Member `json:"verifier"`
	Sequences  uint32             `json:"sequences"`
	DeadlineMs uint64             `json:"deadline_ms"`
	Disputed   bool               `json:"disputed"`
}

// Dispute is a dispute that is open or over.
type Dispute struct {
	ID         uint32             `json:"id"`
	Round      coordinator.Round  `json:"round"`
	Member     coordinator.Member `json:"member"`  // the accused
	Accuser    int64              `json:"accuser"` // -1: none at the moment
	Unserved   bool               `json:"unserved,omitempty"`
	Stage      string             `json:"stage"`
	Level      string             `json:"level"`
	Op         uint32             `json:"op"`
	OpName     string             `json:"op_name,omitempty"` // what it computes, if known
	Sequences  uint32             `json:"sequences"`         // of the share; 0: not known
	Tile       uint32             `json:"tile"`
	Slice      uint32             `json:"slice"`
	Depth      uint8              `json:"depth"` // levels to go in this tree
	DeadlineMs uint64             `json:"deadline_ms"`
	Commitment string             `json:"commitment"`
	Traces     [2]string          `json:"traces"` // of the accused and the accuser
	Nodes      [2]string          `json:"nodes"`  // where they differ
	Votes      []Vote             `json:"votes"`
	Moves      []Move             `json:"moves"` // oldest first, the last movesKept
	OpenedMs   uint64             `json:"opened_ms"`
	EndedMs    uint64             `json:"ended_ms"` // 0: it is open
	Outcome    string             `json:"outcome,omitempty"`
	Conviction uint32             `json:"conviction,omitempty"` // number of the one it ended in
}

// Vote is the vote of a tie-breaker.
type Vote struct {
	Member coordinator.Member `json:"member"`
	Vote   string             `json:"vote"` // "", right, wrong or unserved
	Trace  string             `json:"trace"`
}

// Move is a move in a dispute.
type Move struct {
	TimeMs uint64 `json:"time_ms"`
	Text   string `json:"text"`
}

// Conviction is the conviction of a member.
type Conviction struct {
	Number     uint32             `json:"number"`
	Round      coordinator.Round  `json:"round"`
	Member     coordinator.Member `json:"member"`
	Key        string             `json:"key"`
	Name       string             `json:"name,omitempty"` // as in Member
	Offence    string             `json:"offence"`
	Words      string             `json:"words"` // what the member did
	Lesser     bool               `json:"lesser,omitempty"`
	By         int64              `json:"by"` // -1: nobody
	ByKey      string             `json:"by_key,omitempty"`
	Slashed    uint64             `json:"slashed"`
	Evidence   string             `json:"evidence,omitempty"`
	FirstRound coordinator.Round  `json:"first_round"`
	LastRound  coordinator.Round  `json:"last_round"`
	Results    uint32             `json:"results"`
	AtMs       uint64             `json:"at_ms"`
}

// Proof returns a conviction in one line: the member, what it did, the evidence, and its results in
// the model.
func (c Conviction) Proof() string {
	text := fmt.Sprintf("member %d (%s) %s in round %d: convicted of %s", c.Member, cmp.Or(c.Name, Short(c.Key)), c.Words, c.Round, c.Offence)
	if c.By >= 0 {
		text += fmt.Sprintf(", reported by member %d", c.By)
	}
	if c.Evidence != "" {
		text += ", evidence " + Short(c.Evidence)
	}
	if c.Slashed > 0 {
		text += fmt.Sprintf("; loses %s tokens", Thousands(c.Slashed))
	}
	switch {
	case c.Results == 1:
		text += fmt.Sprintf("; its result of round %d is in the model", c.LastRound)
	case c.Results > 1:
		text += fmt.Sprintf("; %d results of rounds %d to %d are in the model", c.Results, c.FirstRound, c.LastRound)
	}
	return text
}

// trust takes what changed of checks, disputes and tokens. The members' rows come after it.
func (f *Fold) trust(ms uint64, t *runlog.Trust) {
	if t == nil {
		return
	}
	if f.run.Trust == nil {
		f.run.Trust = &Trust{}
	}
	v := f.run.Trust
	v.TrustHead = t.TrustHead
	for _, c := range t.Convictions {
		f.convicted(ms, c)
	}
	f.checks(t)
	for _, d := range t.Disputes {
		f.dispute(ms, d)
	}
	for i := range v.Disputes {
		d := &v.Disputes[i]
		gone := slices.Contains(t.Ended, d.ID) || t.Whole && !slices.ContainsFunc(t.Disputes, func(o dispute.Dispute) bool { return o.ID == d.ID })
		if gone && d.EndedMs == 0 {
			f.ended(ms, d)
		}
	}
}

// checks brings the list of open checks up to date, and marks the results whose checks are over.
func (f *Fold) checks(t *runlog.Trust) {
	v := f.run.Trust
	open, closed := make(map[runlog.Share]bool, len(t.Checks)), make(map[runlog.Share]bool, len(t.Closed))
	for _, c := range t.Checks {
		open[runlog.Share{Round: c.Round, Member: c.Member}] = true
	}
	for _, s := range t.Closed {
		closed[s] = true
	}
	kept := v.Checks[:0]
	for _, c := range v.Checks {
		if s := (runlog.Share{Round: c.Round, Member: c.Member}); !closed[s] && (open[s] || !t.Whole) {
			kept = append(kept, c)
		} else if r := f.find(c.Round); r != nil && f.passed[c.Member] {
			r.Verified++
			*r.mark(c.Member) = Verified
		}
	}
	v.Checks = kept
	for _, c := range t.Checks {
		row := Check{Round: c.Round, Member: c.Member, Verifier: c.Verifier, Sequences: c.Sequences, DeadlineMs: c.DeadlineMs, Disputed: c.Disputed}
		i, found := slices.BinarySearchFunc(v.Checks, row, compareChecks)
		if found {
			v.Checks[i] = row
			continue
		}
		v.Checks = slices.Insert(v.Checks, i, row)
		if r := f.find(c.Round); r != nil {
			r.Checked++
		}
	}
}

func compareChecks(a, b Check) int {
	if a.Round != b.Round {
		return int(int64(a.Round) - int64(b.Round))
	}
	return int(int64(a.Member) - int64(b.Member))
}

// convicted takes a conviction, once.
func (f *Fold) convicted(ms uint64, c dispute.Conviction) {
	v := f.run.Trust
	if len(v.Convictions) > 0 && c.Number <= v.Convictions[0].Number {
		return
	}
	row := newConviction(c)
	row.Name = f.called[row.Key]
	v.Convictions = slices.Insert(v.Convictions, 0, row)
	v.Convictions = v.Convictions[:min(len(v.Convictions), convictionsKept)]
	if r := f.find(c.Round); r != nil && !row.Lesser {
		r.Convicted++
		*r.mark(c.Member) = Wrong
	}
	f.say(ms, "warn", "", row.Proof())
}

// misdeeds says of each offence what the member did, as a predicate.
var misdeeds = map[dispute.Offence]string{
	dispute.WrongResult:     "sent a result that its share of the data does not give",
	dispute.Equivocated:     "signed two different commitments",
	dispute.FalseAccusation: "accused a member whose result was right",
	dispute.FalsePass:       "passed a result without recomputing it",
	dispute.Silence:         "did not make its move in a dispute",
	dispute.NotServing:      "did not serve the data that checks of its results need",
	dispute.Absence:         "missed too many rounds in a row",
	dispute.Contradiction:   "reported other parameters than the agreed ones, three times in a row",
}

func newConviction(c dispute.Conviction) Conviction {
	return Conviction{
		Number: c.Number, Round: c.Round, Member: c.Member, Key: c.Key.String(), Offence: c.Offence.String(),
		Words: cmp.Or(misdeeds[c.Offence], "broke the rules"), Lesser: c.Offence.Lesser(), By: orNobody(c.By), ByKey: hashText(c.ByKey), Slashed: c.Slashed,
		Evidence: hashText(c.Evidence), FirstRound: c.FirstRound, LastRound: c.LastRound,
		Results: c.Results, AtMs: c.AtMs,
	}
}

// hashText returns a hash or key in hex, "" if it is zero.
func hashText[T interface {
	IsZero() bool
	String() string
}](h T) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

func orNobody(i coordinator.Member) int64 {
	if i == dispute.NoMember {
		return -1
	}
	return int64(i)
}

// votes holds the words for a tie-breaker's vote.
var votes = []string{"", "right", "wrong", "unserved"}

// dispute takes what changed in a dispute, and adds to its moves.
func (f *Fold) dispute(ms uint64, d dispute.Dispute) {
	v := f.run.Trust
	i := slices.IndexFunc(v.Disputes, func(o Dispute) bool { return o.ID == d.ID })
	if i < 0 {
		v.Disputes = slices.Insert(v.Disputes, 0, Dispute{ID: d.ID, OpenedMs: ms, Accuser: -1})
		v.Disputes = v.Disputes[:min(len(v.Disputes), disputesKept)]
		i = 0
		text := fmt.Sprintf("dispute %d: what member %d committed to in round %d is not what comes out", d.ID, d.Accused, d.Round)
		if d.Unserved {
			text = fmt.Sprintf("dispute %d: member %d does not serve what its result of round %d is checked with", d.ID, d.Accused, d.Round)
		}
		f.say(ms, "warn", "", text)
	}
	row := &v.Disputes[i]
	before := *row
	row.Round, row.Member, row.Accuser, row.Unserved = d.Round, d.Accused, orNobody(d.Accuser), d.Unserved
	row.Stage, row.Level = d.Stage.String(), d.Level.String()
	row.Op, row.Tile, row.Slice, row.Depth, row.DeadlineMs = d.Op, d.Tile, d.Slice, d.Depth, d.DeadlineMs
	row.Sequences = d.Sequences
	if !d.Commitment.Run.IsZero() {
		row.Commitment = d.Commitment.ID().String()
	}
	for side := range 2 {
		row.Traces[side], row.Nodes[side] = hashText(d.Traces[side]), hashText(d.Nodes[side])
	}
	f.nameOp(row)
	row.Votes = make([]Vote, len(d.TieBreakers))
	for k, x := range d.TieBreakers {
		row.Votes[k] = Vote{Member: x.Member, Vote: votes[min(int(x.Vote), len(votes)-1)], Trace: hashText(x.Trace)}
	}
	for _, text := range row.moves(before) {
		row.Moves = append(row.Moves, Move{TimeMs: ms, Text: text})
	}
	row.Moves = row.Moves[max(0, len(row.Moves)-movesKept):]
}

// nameOp says what the operation computes that a dispute has come down to.
func (f *Fold) nameOp(d *Dispute) {
	if f.names != nil && d.Sequences > 0 && (d.Level == "tiles" || d.Level == "slices") {
		d.OpName = f.names(d.Sequences, d.Op)
	}
}

// moves returns the moves since the dispute was as before.
func (d *Dispute) moves(before Dispute) []string {
	var list []string
	say := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch {
	case d.Accuser < 0:
	case before.Accuser < 0 && before.Stage == "":
		say("member %d accuses member %d", d.Accuser, d.Member)
	case before.Accuser != d.Accuser:
		say("member %d goes on as accuser", d.Accuser)
	}
	for k, v := range d.Votes {
		if v.Vote != "" && (k >= len(before.Votes) || before.Votes[k].Vote == "") {
			say("tie-breaker %d: the accused is %s", v.Member, map[string]string{"right": "right", "wrong": "wrong", "unserved": "not serving"}[v.Vote])
		}
	}
	if d.Traces[0] != before.Traces[0] {
		say("the accused shows its trace %s", Short(d.Traces[0]))
	}
	if d.Traces[1] != before.Traces[1] && d.Traces[1] != "" {
		say("the accuser names its trace as %s", Short(d.Traces[1]))
	}
	if d.Stage != before.Stage {
		say("stage: %s", d.Stage)
	}
	if where := d.Where(); where != "" && (d.Level != before.Level || where != before.Where() || d.Depth != before.Depth) {
		say("the traces differ in %s: %s, %d levels to go; %s against %s", d.Level, where, d.Depth, Short(d.Nodes[0]), Short(d.Nodes[1]))
	}
	return list
}

// Where returns the place at which the two traces of a dispute differ, as far as it is found; "" if
// none is yet.
func (d Dispute) Where() string {
	if d.Level == "" || d.Level == "none" {
		return ""
	}
	name := ""
	if d.OpName != "" {
		name = " (" + d.OpName + ")"
	}
	return fmt.Sprintf("operation %d%s, tile %d, slice %d", d.Op, name, d.Tile, d.Slice)
}

// Found returns the place at which a dispute found the result wrong that a conviction is about; ""
// if the conviction needed no dispute.
func (t *Trust) Found(c Conviction) string {
	for _, d := range t.Disputes {
		if d.Conviction == c.Number {
			return d.Where()
		}
	}
	return ""
}

// ended tells how a dispute came out, by the conviction that came with its end.
func (f *Fold) ended(ms uint64, d *Dispute) {
	d.EndedMs, d.Outcome = ms, "nobody convicted"
	if d.Unserved {
		d.Outcome = "what was missing is served, or was struck"
	}
	for _, c := range f.run.Trust.Convictions {
		if c.Round == d.Round && c.AtMs >= d.OpenedMs-min(d.OpenedMs, clockSlackMs) && (c.Member == d.Member || int64(c.Member) == d.Accuser) {
			d.Outcome, d.Conviction = c.Proof(), c.Number
			break
		}
	}
	d.Moves = append(d.Moves, Move{TimeMs: ms, Text: "over: " + d.Outcome})
	f.say(ms, "warn", "", fmt.Sprintf("dispute %d is over: %s", d.ID, d.Outcome))
}

// clockSlackMs is how far this machine's clock may be before the ledger's: times of records are the
// former, of convictions the latter.
const clockSlackMs = 60_000

// copy returns the trust as of now.
func (t *Trust) copy() *Trust {
	if t == nil {
		return nil
	}
	out := *t
	out.Checks, out.Convictions = slices.Clone(t.Checks), slices.Clone(t.Convictions)
	out.Disputes = slices.Clone(t.Disputes)
	for i := range out.Disputes {
		d := &out.Disputes[i]
		d.Votes, d.Moves = slices.Clone(d.Votes), slices.Clone(d.Moves)
	}
	return &out
}
