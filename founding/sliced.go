package founding

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// Sliced is what each member of a run of slices receives of a round's results, in bytes, and how
// likely members that act together misuse their groups. The run has as many members as it can have.
type Sliced struct {
	Aggregators uint32 `json:"aggregators"`
	Results     uint32 `json:"results"`           // each trains one sequence at least
	Slices      uint64 `json:"slices_bytes"`      // of the update
	Ranges      uint64 `json:"ranges_bytes"`      // of the results
	Proofs      uint64 `json:"proofs_bytes"`      // and what of their pieces lies outside of ranges
	Commitments uint64 `json:"commitments_bytes"` // named by their authors
	// Held is what a witness is shown besides, if it asks each aggregator once: a byte for each
	// result.
	Held  uint64 `json:"held_bytes"`
	Risks []Risk `json:"risks"`
}

// Risk is how likely members that collude invent a slice in all rounds of a run, and how likely
// they keep results out of one round.
type Risk struct {
	Percent  uint32  `json:"colluding_percent"`
	Invented float64 `json:"invented"`
	Denied   float64 `json:"denied"`
}

// commitmentBytes is the length of an answer to a question for one commitment.
const commitmentBytes = 4 + 32 + 308

// NewSliced computes what members receive with a number of aggregators, without risks. Ranges of
// payloads all have about the same length.
func NewSliced(z trainer.Sizes, g Groups, results uint32) Sliced {
	s := Sliced{Aggregators: g.Aggregators, Results: results, Slices: z.Update}
	n, payload, of := uint64(g.Slices()), z.Payload, uint64(results)
	if z.SlicesMax > 0 {
		n = min(n, z.SlicesMax)
	}
	for i := range n {
		s.Proofs += uint64(blobs.RangeBytes(int(payload), int(payload*i/n), int(payload*(i+1)/n)))
	}
	s.Ranges = of * payload / n
	s.Proofs = of*s.Proofs/n - s.Ranges
	s.Commitments = of * commitmentBytes
	s.Held = uint64(g.Members-g.Members/uint32(n)) * of
	return s
}

// Received is the sum of what each member receives, elected or not.
func (s Sliced) Received() uint64 { return s.Slices + s.Ranges + s.Proofs + s.Commitments }

// sliced returns what a run of slices costs, and what it would with other numbers of aggregators.
func sliced(s spec.Spec, z trainer.Sizes) (own Sliced, choices []Sliced) {
	g, ok := newGroups(s)
	if !ok {
		return own, nil
	}
	with := []uint32{16, 32, 64, 128, g.Aggregators}
	slices.Sort(with)
	for _, n := range slices.Compact(with) {
		if n > g.Members/2 {
			continue
		}
		g.Aggregators = n
		c := NewSliced(z, g, min(g.Members-1, s.Batch.End))
		for _, percent := range []uint32{10, 20, colludingPercent} {
			g := g
			g.Colluding = g.Members * percent / 100
			c.Risks = append(c.Risks, Risk{percent, g.Invented(float64(s.Steps - s.Before())), g.Denied()})
		}
		if choices = append(choices, c); n == s.Aggregators() {
			own = c
		}
	}
	return own, choices
}

// String describes the parts in a sentence.
func (s Sliced) String() string {
	return fmt.Sprintf("Of %s results each receives %s, elected or not: %s of slices, %s of ranges, %s of proofs and pieces' ends, and %s of commitments. A witness is shown %s besides of what others hold.",
		view.Thousands(uint64(s.Results)), view.Bytes(s.Received()), view.Bytes(s.Slices), view.Bytes(s.Ranges), view.Bytes(s.Proofs), view.Bytes(s.Commitments), view.Bytes(s.Held))
}

// writeChoices prints what other numbers of aggregators would cost.
func writeChoices(out io.Writer, list []Sliced) error {
	fmt.Fprintf(out, "\nWhat exchange.aggregators costs, and how likely members that collude invent a slice of an update in all rounds, and keep results out of one round:\n\n")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "aggregators\treceived\t")
	for _, what := range []string{"invented", "denied"} {
		for _, r := range list[0].Risks {
			fmt.Fprintf(w, "%s, %d %%\t", what, r.Percent)
		}
	}
	for _, c := range list {
		fmt.Fprintf(w, "\n%d\t%s\t", c.Aggregators, view.Bytes(c.Received()))
		for _, r := range c.Risks {
			fmt.Fprintf(w, "%.1g\t", r.Invented)
		}
		for _, r := range c.Risks {
			fmt.Fprintf(w, "%.1g\t", r.Denied)
		}
	}
	fmt.Fprintf(w, "\n\n")
	return w.Flush()
}
