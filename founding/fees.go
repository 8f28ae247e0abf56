package founding

import (
	"fmt"
	"io"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/committee"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/score"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

// Fees are what a run costs on Solana, in lamports, of which 1,000,000,000 are a SOL.
type Fees struct {
	Rent     uint64 `json:"rent"`      // of the run's accounts, which its owner gets back
	NameRent uint64 `json:"name_rent"` // of its name and its vault, which nobody gets back
	Member   uint64 `json:"member"`    // that a member must have to begin
	// Of a round or window with Preview.Members members: all transactions, their fees, and what
	// priceStep for a compute unit adds to these.
	Transactions uint64 `json:"transactions"`
	Round        uint64 `json:"round"`
	Priority     uint64 `json:"priority"`
	Accuser      uint64 `json:"accuser,omitempty"`    // that accusing takes, and gives back
	NoReferee    string `json:"no_referee,omitempty"` // why its checks of results cannot be judged
}

// priceStep is a price of a compute unit, in millionths of a lamport.
const priceStep = 10_000

// newFees computes what a run with some members costs, from the measured costs of messages.
func newFees(s spec.Spec, members uint32) (Fees, error) {
	if s.Data.Manifest == "" {
		s.Data.Manifest = wire.Hash{}.String() // create names the data
	}
	text, err := s.Append(nil)
	if err != nil {
		return Fees{}, err
	}
	limits, config := s.Coordinator(key.Public{}, wire.Hash{}, wire.Hash{})
	n := uint64(members)
	witnesses := min(members, uint32(limits.Witnesses))
	filter := bloom.Size(members, witnesses, committee.Quorum(witnesses)).Bytes()
	report := coordinator.Append(nil, coordinator.Witness{Held: make([]byte, (n+7)/8), Commitments: make([]byte, filter)})
	f := Fees{
		Rent: solana.Rent(solana.RunBytes(limits)) + solana.Rent(solana.BufferBytes(len(text))), NameRent: solana.Rent(solana.NameBytes) + solana.Rent(solana.PurseBytes),
		Member: solana.MemberLamports,
	}
	if config.VerificationPercent > 0 {
		rules, err := verify.Rules(text)
		if err != nil {
			f.NoReferee = err.Error()
		}
		f.Accuser = solana.AccuserLamports
		f.Rent += solana.Rent(solana.BufferBytes(len(rules)))
	}
	reports := uint64(witnesses)
	// The last report ends a round, or a tick does, and in a large run further ticks.
	ticks := 1 + solana.Ticks(n, limits, config)
	f.Transactions = reports*solana.Transactions(len(report)) + ticks
	units := reports*uint64(solana.Asked(solana.ReportUnits(n))) + ticks*uint64(solana.Asked(solana.CloseUnits(n, limits, config)/ticks))
	if s.Exchange.Kind == spec.ExchangeBucket {
		f.Transactions += n
		units += n * uint64(solana.Asked(solana.CommitUnits))
	}
	if v := uint64(config.Validators); v > 0 {
		// Each commits to the scores of a period, and shows them, which takes about as much as a report.
		scores := coordinator.Append(nil, coordinator.RevealScores{Scores: make([]score.Score, n)})
		windows := max(1, uint64(config.ScoreWindows))
		sent := v * (1 + solana.Transactions(len(scores)))
		f.Transactions += (sent + windows - 1) / windows
		units += sent * uint64(solana.Asked(solana.ReportUnits(n))) / windows
	}
	f.Round = f.Transactions * solana.SignatureFee
	f.Priority = units * priceStep / 1_000_000
	return f, nil
}

// write prints the fees of a run with some members.
func (f Fees) write(out io.Writer, members uint32) error {
	if f.NoReferee != "" {
		_, err := fmt.Fprintf(out, "\nSolana would refuse it: %s.\n", f.NoReferee)
		return err
	}
	sol := func(lamports uint64) float64 { return float64(lamports) / 1e9 }
	_, err := fmt.Fprintf(out, "\nOn Solana the run's accounts hold %.3f SOL, which its owner gets back, its name and its vault %.3f SOL,\n"+
		"which stay, and a member needs %.3f SOL to begin with. With %d members a round takes about\n"+
		"%d transactions and %.6f SOL of fees, all members together, and for each\n"+
		"%s micro-lamports that a compute unit costs while the network is busy another %.6f SOL.\n",
		sol(f.Rent), sol(f.NameRent), sol(f.Member), members, f.Transactions, sol(f.Round), view.Thousands(priceStep), sol(f.Priority))
	if err == nil && f.Accuser > 0 {
		_, err = fmt.Fprintf(out, "A member that finds a wrong result needs up to %.1f SOL to prove it. They come back when the dispute ends;\n"+
			"a member that has less accuses nobody.\n", sol(f.Accuser))
	}
	return err
}
