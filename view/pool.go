package view

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/entrain-network/entrain/host"
)

// WritePool prints a pool for people.
func WritePool(out io.Writer, p host.Pool) error {
	fmt.Fprintf(out, "pool        %s, %s; paid at %s\n", p.Name, p.Stage, p.Address)
	fmt.Fprintf(out, "operator    %s\n", p.Operator)
	for _, w := range p.Workers {
		fmt.Fprintf(out, "worker      %s\n", w)
	}
	fmt.Fprintf(out, "stakes in   %s\n", strings.Join(p.Runs, ", "))
	fmt.Fprintf(out, "terms       commission %s; the operator's own part at least %s; lenders begin with %s\n", BasisPoints(p.CommissionBP), BasisPoints(p.OwnBP), Tokens(max(1, p.Least)))
	fmt.Fprintf(out, "lent        %s, of which %s can still be staked and %s have come back\n", Tokens(p.Lent), Thousands(p.Idle), Thousands(p.Back))
	fmt.Fprintf(out, "to collect  %s; the operator's commission %s\n", Tokens(p.Unpaid), Tokens(p.Commission))
	if p.Held > 0 {
		fmt.Fprintf(out, "held        %s, to be shared at the first stake\n", Tokens(p.Held))
	}
	if len(p.Lenders) == 0 {
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "\nlender\tlent\tdue\n")
	for _, l := range p.Lenders {
		fmt.Fprintf(w, "%s\t%s\t%s\n", Short(l.Key.String()), Thousands(l.Lent), Thousands(l.Due))
	}
	return w.Flush()
}

// Tokens writes an amount for people.
func Tokens(n uint64) string {
	if n == 1 {
		return "1 token"
	}
	return Thousands(n) + " tokens"
}
