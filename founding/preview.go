package founding

import (
	"fmt"
	"io"
	"math/big"
	"strings"
	"text/tabwriter"

	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/spec"
	"github.com/entrain-network/entrain/view"
)

// Preview describes what a specification means.
type Preview struct {
	Run      string        `json:"run"`
	Schedule string        `json:"schedule"`
	Needs    trainer.Sizes `json:"needs"`
	Members  uint32        `json:"members"` // that it takes to begin
	// Received is the number of bytes that each of Members members receives, and on average sends,
	// in a round.
	Received  uint64     `json:"received_bytes"`
	Aggregate *Aggregate `json:"aggregate,omitempty"` // nil if there is no choice
	Links     Links      `json:"links"`
	Tokens    uint64     `json:"tokens"` // trained on in all
	Theft     Theft      `json:"theft"`
	weakness  error
	Solana    *Fees         `json:"solana,omitempty"` // of a run there
	Steps     []PreviewStep `json:"steps"`            // the first, the last, and some between
}

// PreviewStep is one step of a run.
type PreviewStep struct {
	Step   uint32  `json:"step"`
	Tokens uint64  `json:"tokens"` // trained on once it is done
	Rate   float32 `json:"learning_rate"`
	Batch  uint32  `json:"batch"` // sequences
}

// PreviewStepsMax is the most steps that a preview shows.
const PreviewStepsMax = 64

// Preview computes what the draft means, and what the run costs on Solana if it is there.
func (d Draft) Preview(solana bool) (p Preview, err error) {
	s, err := d.Read()
	if err == nil {
		p, err = newPreview(s)
	}
	if err == nil && solana {
		var fees Fees
		fees, err = newFees(s, p.Members)
		p.Solana = &fees
	}
	return p, err
}

// newPreview computes what a specification means.
func newPreview(s spec.Spec) (p Preview, err error) {
	schedule, err := s.Schedule()
	if err != nil {
		return p, err
	}
	p = Preview{Run: s.Name, Schedule: s.LearningRate.Schedule, Members: s.Members.Start, Theft: newTheft(s), weakness: weakness(s)}
	if p.Needs, err = trainer.SizesOf(s); err != nil {
		return p, err
	}
	p.Received = uint64(p.Members-min(p.Members, 1)) * p.Needs.Payload
	p.Aggregate = newAggregate(s, p.Needs)
	p.Links = newLinks(s, p.Needs, p.Aggregate)
	p.Tokens = s.First() * uint64(s.Data.Sequence)
	steps := s.Steps - s.Before()
	n, last := min(PreviewStepsMax, uint64(steps)), uint64(steps-1)
	for step := uint32(1); ; step++ {
		size := batchSize(s, p.Tokens)
		p.Tokens += uint64(size) * uint64(s.Data.Sequence)
		// The steps shown are spaced evenly between the first and the last.
		if uint64(step-1) == uint64(len(p.Steps))*last/max(1, n-1) {
			p.Steps = append(p.Steps, PreviewStep{s.Before() + step, p.Tokens, schedule.LR(step), size})
		}
		if step == steps {
			return p, nil
		}
	}
}

// batchSize returns the size of the batch after a number of tokens, as the coordinator computes it.
func batchSize(s spec.Spec, tokens uint64) uint32 {
	if tokens >= s.Batch.RampTokens {
		return s.Batch.End
	}
	grown := new(big.Int).SetUint64(uint64(s.Batch.End - s.Batch.Start))
	grown.Mul(grown, new(big.Int).SetUint64(tokens))
	grown.Div(grown, new(big.Int).SetUint64(s.Batch.RampTokens))
	return s.Batch.Start + uint32(grown.Uint64())
}

// Write prints the preview as charts and a table.
func (p Preview) Write(out io.Writer) error {
	last := p.Steps[len(p.Steps)-1]
	fmt.Fprintf(out, "%s: %s parameters, %s steps, %s tokens\n\n", p.Run, view.Thousands(p.Needs.Parameters), view.Thousands(uint64(last.Step)), view.Thousands(p.Tokens))
	rates, batches := make([]float64, len(p.Steps)), make([]float64, len(p.Steps))
	for i, s := range p.Steps {
		rates[i], batches[i] = float64(s.Rate), float64(s.Batch)
	}
	chart(out, "learning rate, "+p.Schedule, rates)
	if p.Steps[0].Batch != last.Batch {
		chart(out, "sequences in a batch", batches)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "step\ttokens\tlearning rate\tbatch\t\n")
	every := (len(p.Steps) + 15) / 16
	for i, s := range p.Steps {
		if i%every == 0 || i == len(p.Steps)-1 {
			fmt.Fprintf(w, "%s\t%s\t%.4g\t%d\t\n", view.Thousands(uint64(s.Step)), view.Thousands(s.Tokens), s.Rate, s.Batch)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if p.weakness != nil {
		fmt.Fprintf(out, "\nIt would be refused: %v.\n", p.weakness)
	}
	gpu := view.Bytes(p.Needs.DeviceMemory)
	if p.Needs.DeviceLeast < p.Needs.DeviceMemory {
		gpu += fmt.Sprintf(", at least %s,", view.Bytes(p.Needs.DeviceLeast))
	}
	memory := view.Bytes(p.Needs.Memory)
	if p.Needs.Frozen == 0 {
		memory += fmt.Sprintf(" of memory, %d bytes a parameter,", p.Needs.Memory/p.Needs.Parameters)
	} else {
		memory += " of memory"
	}
	_, err := fmt.Fprintf(out, "\nA member needs about %s and %s of disk. When it joins, it fetches a model of %s.\n"+
		"If it computes on a GPU, that takes %s of the GPU's memory besides.\n"+
		"A result has at most %s",
		memory, view.Bytes(p.Needs.Disk(1)), view.Bytes(p.Needs.Model), gpu, view.Bytes(p.Needs.Payload))
	if err == nil && p.Members > 1 {
		_, err = fmt.Fprintf(out, "; with %d members each receives %s a round, and sends as much on average", p.Members, view.Bytes(p.Received))
	}
	if err == nil {
		_, err = fmt.Fprintln(out, ".")
	}
	if err == nil && p.Needs.Slice > 0 {
		_, err = fmt.Fprintf(out, "It writes about %s a window to its bucket, the result and a slice of the agreed parameters, and now and then the model.\n",
			view.Bytes(p.Needs.Payload+p.Needs.Slice))
	}
	if err == nil && p.Aggregate != nil {
		if _, err = fmt.Fprintln(out, p.Aggregate); err == nil && p.Aggregate.Choices != nil {
			err = writeChoices(out, p.Aggregate.Choices)
		}
	}
	if err == nil {
		fmt.Fprintln(out)
		err = p.Links.write(out)
	}
	if err != nil || p.Solana == nil {
		return err
	}
	return p.Solana.write(out, p.Members)
}

// chartRows is the height of a chart.
const chartRows = 8

// chart draws values from 0 to their greatest, one column each.
func chart(out io.Writer, title string, values []float64) {
	most := 0.0
	for _, v := range values {
		most = max(most, v)
	}
	fmt.Fprintf(out, "%s\n", title)
	for row := chartRows; row > 0; row-- {
		label := ""
		if row == chartRows {
			label = fmt.Sprintf("%.4g", most)
		}
		var line strings.Builder
		for _, v := range values {
			if most > 0 && v/most*chartRows > float64(row)-0.5 {
				line.WriteByte('#')
			} else {
				line.WriteByte(' ')
			}
		}
		fmt.Fprintf(out, "%9s |%s\n", label, strings.TrimRight(line.String(), " "))
	}
	fmt.Fprintf(out, "%9s +%s\n\n", "0", strings.Repeat("-", len(values)))
}
