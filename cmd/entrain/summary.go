package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/entrain-network/entrain/checkpoint"
	"github.com/entrain-network/entrain/engine/cpu"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/wire"
)

// summary is what came of a demo. Payload and dense bytes are those of one client.
type summary struct {
	Event         string         `json:"event"` // "summary"
	Rounds        uint32         `json:"rounds"`
	Clients       int            `json:"clients"`
	HeldOutFirst  float32        `json:"heldout_first"` // nats a token, before training
	HeldOutLast   float32        `json:"heldout_last"`
	PayloadBytes  uint64         `json:"payload_bytes_per_round"`
	DenseBytes    uint64         `json:"dense_bytes_per_round"`
	ParamHash     string         `json:"param_hash"`
	HashesEqual   bool           `json:"param_hashes_equal"`
	Checkpoint    string         `json:"checkpoint"`
	Seconds       float64        `json:"seconds"`
	Members       []clientPoints `json:"client_points"`
	GeneratedText string         `json:"text"`

	Adversary          string           `json:"adversary,omitempty"` // kind of cheat that the last client was, or the last ones
	Verification       uint8            `json:"verification_percent"`
	Checks             uint32           `json:"checks"` // results drawn to be recomputed
	Passed             uint32           `json:"checks_passed"`
	Disputes           uint32           `json:"disputes"`
	AdversaryConvicted bool             `json:"adversary_convicted"`
	HonestConvicted    bool             `json:"honest_convicted"` // of cheating; a fee for an absence does not count
	Convictions        []demoConviction `json:"convictions,omitempty"`

	// Of a run by buckets:
	Exchange             string    `json:"exchange"`
	Rewards              []earning `json:"rewards,omitempty"`
	AdversaryRewardShare *float64  `json:"adversary_reward_share,omitempty"` // of all that clients earned for their scores
	HonestRewardShare    *float64  `json:"honest_reward_share,omitempty"`
	// WindowBytes is what a client wrote to its bucket in a window, objects and envelopes, in the mean; SliceBytes is the least that the values
	// of a slice take.
	WindowBytes uint64 `json:"bytes_per_window,omitempty"`
	SliceBytes  uint64 `json:"slice_bytes,omitempty"`
}

// fault says that the wrong ones were convicted, or none.
func (s summary) fault() error {
	switch {
	case s.HonestConvicted:
		return errors.New("an honest client was convicted of cheating")
	case s.Adversary != "" && s.Exchange != exchangeBucket && !s.AdversaryConvicted:
		return fmt.Errorf("the run ended before the cheat (%s) was convicted: %d results were recomputed; give it more --rounds, or a higher --verification", s.Adversary, s.Checks)
	}
	return nil
}

type clientPoints struct {
	Client string `json:"client"`
	Points uint64 `json:"points"`
	Params string `json:"params"`
}

// conclude looks at what the network left: it takes over the checkpoint of the final parameters, measures the held-out loss of what is in
// it, and has it write a paragraph.
func (d *demo) conclude(ctx context.Context) (summary, error) {
	b := d.board
	s := summary{
		Event: "summary", Rounds: b.step, Clients: len(b.clients), HeldOutFirst: d.first,
		PayloadBytes: b.payloadMean(), DenseBytes: b.dense, ParamHash: b.agreed, HashesEqual: b.equal(), Checkpoint: d.dir.file(checkpointName),
	}
	s.Adversary, s.Verification, s.Checks, s.Passed, s.Disputes = b.court.kind, d.dir.set.Verification, b.court.checks, b.court.passed, b.court.number
	s.AdversaryConvicted, s.HonestConvicted, s.Convictions = b.court.caught(), b.court.wronged(), b.court.convictions
	s.Exchange = d.dir.set.Exchange
	if b.market.on {
		cheats := b.market.share()
		honest := 1 - cheats
		s.Rewards, s.AdversaryRewardShare, s.HonestRewardShare = b.market.rows, &cheats, &honest
	}
	if s.Exchange == exchangeBucket {
		s.WindowBytes, s.SliceBytes = b.market.sentMean(), b.dense/4/uint64(demoCompression)
	}
	for _, c := range b.clients {
		s.Members = append(s.Members, clientPoints{c.name, c.points, c.params})
	}
	if b.phase != phaseFinished {
		return s, fmt.Errorf("the run has not finished: it is in %s, step %d of %d; see the logs in %s", orDash(b.phase), b.step, b.steps, d.dir.file("logs"))
	}
	if !s.HashesEqual {
		return s, fmt.Errorf("the run has finished with parameters %s, but not all clients hold them: %v; see the logs in %s", b.agreed, s.Members, d.dir.file("logs"))
	}
	s.Seconds = time.Since(d.began).Seconds()
	if err := d.takeCheckpoint(b.agreed); err != nil {
		return s, err
	}
	saved, err := checkpoint.OpenLocal(os.DirFS(s.Checkpoint))
	if err != nil {
		return s, err
	}
	params := make([]float32, d.trainer.Engine.ParamsLen())
	if err := saved.Params(d.trainer.Model.Layout(), params); err != nil {
		return s, err
	}
	if s.HeldOutLast, err = d.trainer.Engine.HeldOut(ctx, cpu.Floats(params)); err != nil {
		return s, err
	}
	g := model.Generator{Model: d.trainer.Model, Tokenizer: d.trainer.Tokenizer, Params: params,
		Sampling: llama.Sampling{Temperature: 0.7, TopK: 40}, Seed: wire.Sum("entrain/demo")}
	text, err := g.Text(ctx, "The rays of light ", paragraphTokens, nil)
	s.GeneratedText = text
	return s, err
}

// paragraphTokens is how long the demo's sample is.
const paragraphTokens = 400

// takeCheckpoint moves a client's checkpoint of the final parameters to where the summary says it lies.
func (d *demo) takeCheckpoint(params string) error {
	to := d.dir.file(checkpointName)
	for _, c := range d.board.clients {
		from, err := participant.NewCheckpoints(d.dir.file(c.name, "checkpoints"), 1, d.trainer).Find(params)
		if err != nil {
			return err
		}
		if from != "" {
			return errors.Join(os.RemoveAll(to), os.Rename(from, to))
		}
	}
	return fmt.Errorf("no client has written a checkpoint of %s; see the logs in %s", params, d.dir.file("logs"))
}

// show prints the summary.
func (s summary) show(c console, asJSON bool) error {
	if asJSON {
		return c.object(s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d rounds with %d clients in %s\n", s.Rounds, s.Clients, minutes(time.Duration(s.Seconds*float64(time.Second))))
	fmt.Fprintf(&b, "held-out loss       %.3f -> %.3f nats a byte\n", s.HeldOutFirst, s.HeldOutLast)
	fmt.Fprintf(&b, "sent a round        %s bytes by each client; the dense gradient has %s: 1/%d\n", thousands(s.PayloadBytes), thousands(s.DenseBytes), s.DenseBytes/max(1, s.PayloadBytes))
	if s.WindowBytes > 0 {
		fmt.Fprintf(&b, "written a window    %s bytes by each client to its bucket: 1/%d of the dense gradient; the slice's values are %s\n", thousands(s.WindowBytes), s.DenseBytes/max(1, s.WindowBytes), thousands(s.SliceBytes))
	}
	for _, r := range s.Rewards {
		cheat := ""
		if r.Cheats {
			cheat = ", the cheat: " + s.Adversary
		}
		fmt.Fprintf(&b, "%-12s %6d tokens, %5.1f %% of all; score %6.3f%s\n", r.Client, r.Earned, 100*r.Share, r.Score, cheat)
	}
	for _, p := range s.Members {
		fmt.Fprintf(&b, "%-12s %6d points   parameters %s\n", p.Client, p.Points, short(p.Params))
	}
	equal := "the same in all clients, and what the chain agreed on"
	switch {
	case !s.HashesEqual:
		equal = "NOT the same in all clients"
	case s.Adversary != "":
		equal = "the same in all honest clients, and what the chain agreed on"
	}
	if s.Checks > 0 {
		fmt.Fprintf(&b, "recomputed          %d results were drawn, %d found right; %d disputes\n", s.Checks, s.Passed, s.Disputes)
	}
	for _, v := range s.Convictions {
		fmt.Fprintf(&b, "%s\n", v.line())
	}
	fmt.Fprintf(&b, "parameters          %s\n                    %s\n", s.ParamHash, equal)
	fmt.Fprintf(&b, "checkpoint          %s\n\n%s\n\n", s.Checkpoint, indent(s.GeneratedText))
	fmt.Fprintf(&b, "more text: entrain generate %s --prompt \"The colours of \"\n", s.Checkpoint)
	_, err := c.out.Write([]byte(b.String()))
	return err
}

// indent sets a text off from its surroundings.
func indent(s string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n    ")
}
