package runlog

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
)

// Trust is what a coordinator's state says of checks, disputes and tokens. Read from a log it holds what changed.
type Trust struct {
	// Whole says that Accounts, Checks and Disputes are all there are, and Convictions all that the state still has.
	Whole bool
	TrustHead
	Accounts    []Account    // by index
	Checks      []Check      // opened, or changed
	Closed      []Share      // checks that are no longer open
	Disputes    []Dispute    // opened, or changed
	Ended       []uint32     // disputes that are over, by number
	Convictions []Conviction // new ones, oldest first
}

// TrustHead is what a state says of all that as a whole. The numbers are those of coordinator.State.
type TrustHead struct {
	Percent   uint8  // of a round's results that are checked, as a rule
	Stake     uint64 // least stake of a member, in tokens
	Rate      uint64 // tokens a point is paid
	Treasury  uint64
	Escrow    uint64
	Verified  uint64 // points given for verifying
	Drawn     uint32 // checks there were
	Passed    uint32 // of them, that passed
	Disputed  uint32 // disputes there were
	Convicted uint32 // convictions there were
}

// Account is what a member has at stake and earned, and how it stands.
type Account struct {
	Index   uint32
	Stake   uint64 // tokens
	Balance uint64 // tokens it was rewarded with
	Settled uint64 // points that no conviction takes any more
	Claimed uint64 // points that were paid
	Doubt   uint8  // weight of its results in the draw of checks
	Strikes uint8
	Passed  uint32 // checks of its results that passed
}

// Share names the result of a member in a round.
type Share struct{ Round, Member uint32 }

// Check is a result that is being computed again.
type Check struct {
	Share
	Step       uint32
	Verifier   uint32
	Sequences  uint32
	DeadlineMs uint64
	Disputed   bool
}

// NoMember stands for nobody where a member is named.
const NoMember = coordinator.NoMember

// Dispute is how far a dispute is.
type Dispute struct {
	ID         uint32
	Share             // the accused and its result
	Accuser    uint32 // or NoMember
	Unserved   bool   // it is about what the accused does not serve
	Stage      string
	DeadlineMs uint64
	Commitment string    // ID of what it is about
	Defended   bool      // the accused has shown its trace
	Traces     [2]string // roots of the accused and the accuser; "" if not shown
	Level      string    // what they descend: operations, tiles or slices; "none" before
	Op         uint32
	Tile       uint32
	Slice      uint32
	Depth      uint8 // levels to go in this tree
	Index      uint32
	Nodes      [2]string // where they differ
	Revealed   [2]bool
	Votes      []Vote // of the tie-breakers
}

// Vote is what a tie-breaker said.
type Vote struct {
	Member uint32
	Vote   uint8 // 0: nothing yet; 1: the accused is right; 2: it is wrong; 3: it does not serve
	Trace  string
}

// Conviction is a member that was found out.
type Conviction struct {
	Number     uint32
	Round      uint32
	Member     uint32
	Key        string // hex
	Offence    string
	Lesser     bool   // it costs a fee only
	By         uint32 // or NoMember
	ByKey      string
	Slashed    uint64 // tokens
	Evidence   string // hash of the decisive message, "" if it was silence
	FirstRound uint32 // its results in the model are from here
	LastRound  uint32 // to here
	Results    uint32 // so many
	AtMs       uint64
}

// digestTrust is what a state says of checks, disputes and tokens; nil of a run that has none.
func digestTrust(s coordinator.State) *Trust {
	config := s.Config()
	drawn, passed := s.ChecksDrawn()
	t := &Trust{Whole: true, TrustHead: TrustHead{
		Percent: config.VerificationPercent, Stake: config.Stake, Rate: config.Rate, Treasury: s.Treasury(), Escrow: s.Escrow(),
		Verified: s.PointsVerified(), Drawn: drawn, Passed: passed, Disputed: s.DisputesTotal(), Convicted: s.ConvictionsTotal(),
	}}
	if t.TrustHead == (TrustHead{}) {
		return nil
	}
	t.Accounts = make([]Account, s.Count())
	for i := range t.Accounts {
		m := s.Member(uint32(i))
		t.Accounts[i] = Account{
			Index: uint32(i), Stake: m.Stake, Balance: m.Balance, Settled: m.Settled, Claimed: m.Claimed,
			Doubt: m.Doubt, Strikes: m.Strikes, Passed: m.Passed,
		}
	}
	for _, c := range s.Checks() {
		t.Checks = append(t.Checks, Check{
			Share: Share{c.Round, c.Member}, Step: c.Step, Verifier: c.Verifier, Sequences: c.Sequences, DeadlineMs: c.DeadlineMs, Disputed: c.Disputed,
		})
	}
	for _, d := range s.Disputes() {
		t.Disputes = append(t.Disputes, digestDispute(d))
	}
	for _, c := range s.Convictions() {
		t.Convictions = append(t.Convictions, digestConviction(c))
	}
	return t
}

func digestDispute(d coordinator.Dispute) Dispute {
	out := Dispute{
		ID: d.ID, Share: Share{d.Round, d.Accused}, Accuser: d.Accuser, Unserved: d.Unserved, Stage: d.Stage.String(), DeadlineMs: d.DeadlineMs,
		Defended: d.Defended, Level: d.Level.String(), Op: d.Op, Tile: d.Tile, Slice: d.Slice, Depth: d.Depth, Index: d.Index, Revealed: d.Revealed,
	}
	if !d.Commitment.Run.IsZero() {
		out.Commitment = d.Commitment.ID().String()
	}
	for side := range 2 {
		out.Traces[side], out.Nodes[side] = hashText(d.Traces[side]), hashText(d.Nodes[side])
	}
	for _, v := range d.TieBreakers {
		out.Votes = append(out.Votes, Vote{Member: v.Member, Vote: uint8(v.Vote), Trace: hashText(v.Trace)})
	}
	return out
}

func digestConviction(c coordinator.Conviction) Conviction {
	out := Conviction{
		Number: c.Number, Round: c.Round, Member: c.Member, Key: c.Key.String(), Offence: c.Offence.String(), Lesser: c.Offence.Lesser(), By: c.By,
		Slashed: c.Slashed, Evidence: hashText(c.Evidence), FirstRound: c.FirstRound, LastRound: c.LastRound, Results: c.Results, AtMs: c.AtMs,
	}
	if !c.ByKey.IsZero() {
		out.ByKey = c.ByKey.String()
	}
	return out
}

// hashText is a hash in hex, "" for none.
func hashText(h interface {
	IsZero() bool
	String() string
}) string {
	if h.IsZero() {
		return ""
	}
	return h.String()
}

// since returns what differs from an earlier one; nil if nothing does. Without an earlier one it is t itself.
func (t *Trust) since(earlier *Trust) *Trust {
	if t == nil || earlier == nil {
		return t
	}
	out := &Trust{TrustHead: t.TrustHead}
	for i, a := range t.Accounts {
		if i >= len(earlier.Accounts) || earlier.Accounts[i] != a {
			out.Accounts = append(out.Accounts, a)
		}
	}
	checks := make(map[Share]Check, len(earlier.Checks))
	for _, c := range earlier.Checks {
		checks[c.Share] = c
	}
	for _, c := range t.Checks {
		if before, ok := checks[c.Share]; !ok || before != c {
			out.Checks = append(out.Checks, c)
		}
		delete(checks, c.Share)
	}
	for _, c := range earlier.Checks { // in their order
		if _, gone := checks[c.Share]; gone {
			out.Closed = append(out.Closed, c.Share)
		}
	}
	for _, d := range t.Disputes {
		i := slices.IndexFunc(earlier.Disputes, func(e Dispute) bool { return e.ID == d.ID })
		if i < 0 || !earlier.Disputes[i].equal(d) {
			out.Disputes = append(out.Disputes, d)
		}
	}
	for _, e := range earlier.Disputes {
		if !slices.ContainsFunc(t.Disputes, func(d Dispute) bool { return d.ID == e.ID }) {
			out.Ended = append(out.Ended, e.ID)
		}
	}
	for _, c := range t.Convictions {
		if c.Number > earlier.Convicted {
			out.Convictions = append(out.Convictions, c)
		}
	}
	if out.TrustHead == earlier.TrustHead && len(out.Accounts)+len(out.Checks)+len(out.Closed)+len(out.Disputes)+len(out.Ended)+len(out.Convictions) == 0 {
		return nil
	}
	return out
}

func (d Dispute) equal(o Dispute) bool {
	if !slices.Equal(d.Votes, o.Votes) {
		return false
	}
	return d.ID == o.ID && d.Share == o.Share && d.Accuser == o.Accuser && d.Unserved == o.Unserved && d.Stage == o.Stage && d.DeadlineMs == o.DeadlineMs &&
		d.Commitment == o.Commitment && d.Defended == o.Defended && d.Traces == o.Traces && d.Level == o.Level && d.Op == o.Op && d.Tile == o.Tile &&
		d.Slice == o.Slice && d.Depth == o.Depth && d.Index == o.Index && d.Nodes == o.Nodes && d.Revealed == o.Revealed
}
