package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/view"
)

// columns writes a table of columns under their names; names and cells are separated by tabs.
func columns(out io.Writer, names string, rows func(row func(format string, args ...any))) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, names)
	rows(func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) })
	return w.Flush()
}

// Runs writes the runs of a chain as a table.
func Runs(out io.Writer, list []ledger.RunStatus) error {
	return columns(out, "run\tphase\tepoch\tstep\tmembers", func(row func(string, ...any)) {
		for _, r := range list {
			row("%s\t%s\t%d\t%d\t%d", r.Name, r.Phase, r.Epoch, r.Step, r.Members)
		}
	})
}

// Names writes what keys are called as a table.
func Names(out io.Writer, list []host.Profile) error {
	return columns(out, "name\tteam\tkey", func(row func(string, ...any)) {
		for _, p := range list {
			row("%s\t%s\t%s", p.Name, view.OrDash(p.Team), p.Key)
		}
	})
}

// Closed writes the receipts of closed runs as a table.
func Closed(out io.Writer, list []host.Receipt) error {
	return columns(out, "run\towner\tclosed\tsteps\tpoints\tlast state", func(row func(string, ...any)) {
		for _, r := range list {
			row("%s\t%s\t%s\t%d\t%d\t%s", r.Name, view.Short(r.Owner.String()), time.UnixMilli(int64(r.TimeMs)).UTC().Format(time.DateOnly),
				r.Step, r.Points, view.Short(r.State.String()))
		}
	})
}

// Replicas writes the block of Bittensor that the replicas of a chain agree on, if there is one,
// and the replicas as a table.
func Replicas(out io.Writer, list []host.Replica, clock *host.Clock, now time.Time) error {
	if clock != nil {
		fmt.Fprintf(out, "\nBittensor's block %d, 0x%v, was agreed on %v ago", clock.Number, clock.Hash, now.Sub(time.UnixMilli(int64(clock.SinceMs))).Round(time.Second))
		if clock.Standing {
			fmt.Fprintf(out, ", and no newer one: a run that counts its blocks counts the chain's own time, now at block %d", clock.Count)
		}
		fmt.Fprintln(out)
	}
	return columns(out, "\nreplica\tseat\tweight\tstake\toperator\tvotes for a change", func(row func(string, ...any)) {
		for _, r := range list {
			row("%v\t%s\t%d\t%d\t%.8s\t%d", r.Key, r.Seat, r.Power, r.Stake, r.Operator.String(), len(r.Votes))
		}
	})
}

// History writes the past states of a run, one a line.
func History(out io.Writer, list []host.Change) error {
	for _, s := range list {
		if _, err := fmt.Fprintf(out, "%10d  %s  %v\n", s.Height, time.UnixMilli(int64(s.TimeMs)).UTC().Format(time.DateTime), s.Hash); err != nil {
			return err
		}
	}
	return nil
}

// Admission writes who may take part in a run.
func Admission(out io.Writer, run string, a host.Admission) error {
	takes := "anybody"
	if a.Listed {
		takes = "only listed keys, and nodes that work for them"
	}
	fmt.Fprintf(out, "run %q takes %s\n", run, takes)
	if a.Program != "" {
		fmt.Fprintf(out, "joining requires entrain %s or newer\n", a.Program)
	}
	for _, k := range a.Allowed {
		fmt.Fprintf(out, "listed  %s\n", k)
	}
	for _, d := range a.Delegations {
		until := time.UnixMilli(int64(d.ExpiresMs)).Format(time.RFC3339)
		if d.Revoked {
			until += ", revoked"
		}
		fmt.Fprintf(out, "node    %s works for %s until %s\n", d.Node, d.Owner, until)
	}
	return nil
}

// Pools writes the pools of a chain as a table.
func Pools(out io.Writer, list []host.Pool) error {
	return columns(out, "pool\tstage\tlent\tidle\tcommission\town part\tlenders", func(row func(string, ...any)) {
		for _, p := range list {
			row("%s\t%s\t%s\t%s\t%s\t%s\t%d", p.Name, p.Stage, view.Thousands(p.Lent), view.Thousands(p.Idle),
				view.BasisPoints(p.CommissionBP), view.BasisPoints(p.OwnBP), len(p.Lenders))
		}
	})
}

// Pool writes a pool: its terms, its tokens and its lenders.
func Pool(out io.Writer, p host.Pool) error {
	fmt.Fprintf(out, "pool        %s, %s; paid at %s\n", p.Name, p.Stage, p.Address)
	fmt.Fprintf(out, "operator    %s\n", p.Operator)
	for _, w := range p.Workers {
		fmt.Fprintf(out, "worker      %s\n", w)
	}
	fmt.Fprintf(out, "stakes in   %s\n", strings.Join(p.Runs, ", "))
	fmt.Fprintf(out, "terms       commission %s; the operator's own part at least %s; lenders begin with %s\n",
		view.BasisPoints(p.CommissionBP), view.BasisPoints(p.OwnBP), view.Tokens(max(1, p.Least)))
	fmt.Fprintf(out, "lent        %s, of which %s can still be staked and %s have come back\n",
		view.Tokens(p.Lent), view.Thousands(p.Idle), view.Thousands(p.Back))
	fmt.Fprintf(out, "to collect  %s; the operator's commission %s\n", view.Tokens(p.Unpaid), view.Tokens(p.Commission))
	if p.Held > 0 {
		fmt.Fprintf(out, "held        %s, to be shared at the first stake\n", view.Tokens(p.Held))
	}
	if len(p.Lenders) == 0 {
		return nil
	}
	return columns(out, "\nlender\tlent\tdue", func(row func(string, ...any)) {
		for _, l := range p.Lenders {
			row("%s\t%s\t%s", view.Short(l.Key.String()), view.Thousands(l.Lent), view.Thousands(l.Due))
		}
	})
}

// speed returns bytes a second, a dash if that is not known.
func speed(rate float64) string {
	if rate == 0 {
		return "-"
	}
	return view.Bytes(uint64(rate)) + "/s"
}

// Peers writes a participant's connections at a time as a table.
func Peers(out io.Writer, at time.Time, list []p2p.PeerStatus) error {
	fmt.Fprintf(out, "as of %s\n", at.Local().Format(time.DateTime))
	return columns(out, "PEER\tWAY\tROUND TRIP\tDOWN\tUP\tRECEIVED\tSENT\tOFFENCES", func(row func(string, ...any)) {
		for _, p := range list {
			rtt, offences := "-", fmt.Sprintf("%.0f", p.Weight)
			if p.RTT > 0 {
				rtt = p.RTT.Round(100 * time.Microsecond).String()
			}
			if p.Banned {
				offences = "banned"
			}
			row("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", p.Key.String()[:16], cmp.Or(p.Way, "none"), rtt, speed(p.Down), speed(p.Up), view.Bytes(p.Received), view.Bytes(p.Sent), offences)
		}
	})
}

// Account is what a key has, on which chain.
type Account struct {
	ledger.Account
	Chain  string `json:"chain"`
	Supply uint64 `json:"supply"` // all tokens of the chain
}

// GetAccount asks a chain what a key has.
func GetAccount(ctx context.Context, l ledger.Chain, who key.Public) (Account, error) {
	has, err := l.Account(ctx, who)
	status, err2 := l.Status(ctx)
	return Account{has, status.Chain, status.Supply}, errors.Join(err, err2)
}

// Write writes the account in words.
func (a Account) Write(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s of %s on chain %s\n", view.Tokens(a.Tokens), view.Thousands(a.Supply), a.Chain)
	if a.Address != "" && err == nil {
		_, err = fmt.Fprintf(out, "%.9f SOL for fees and rent at %s\n", float64(a.Lamports)/1e9, a.Address)
	}
	if a.Locked > 0 && err == nil {
		_, err = fmt.Fprintf(out, "%.9f SOL are in announced addresses and in messages on their way or cut off; the key's next transaction takes back what is not needed\n", float64(a.Locked)/1e9)
	}
	return err
}
