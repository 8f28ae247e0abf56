package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/tui"
	"github.com/entrain-network/entrain/view"
)

// Summary is the result of a demo. Payload and dense bytes are those of one client.
type Summary struct {
	Event        string  `json:"event"` // "summary"
	Rounds       uint32  `json:"rounds"`
	Clients      int     `json:"clients"`
	HeldOutFirst float32 `json:"heldout_first"` // nats a token, before training
	HeldOutLast  float32 `json:"heldout_last"`
	PayloadBytes uint64  `json:"payload_bytes_per_round"`
	DenseBytes   uint64  `json:"dense_bytes_per_round"`
	ParamHash    string  `json:"param_hash"`
	HashesEqual  bool    `json:"param_hashes_equal"`
	Checkpoint   string  `json:"checkpoint"`
	Seconds      float64 `json:"seconds"`
	// TokensPerSecond is what all clients trained from their first step to their last, and
	// StepTokensPerSecond what their steps alone reach while they run.
	TokensPerSecond     float64  `json:"tokens_per_second"`
	StepTokensPerSecond float64  `json:"step_tokens_per_second"`
	Members             []Client `json:"members"` // the clients, by number
	GeneratedText       string   `json:"text"`

	Adversary          string      `json:"adversary,omitempty"` // kind of the clients that cheated
	AdversaryConvicted bool        `json:"adversary_convicted"`
	HonestConvicted    bool        `json:"honest_convicted"` // of cheating; a fee is not a conviction
	Trust              *view.Trust `json:"trust,omitempty"`  // checks, disputes and convictions

	// Of a run by buckets:

	Exchange             string   `json:"exchange"`
	AdversaryRewardShare *float64 `json:"adversary_reward_share,omitempty"` // of what all earned
	HonestRewardShare    *float64 `json:"honest_reward_share,omitempty"`
	// WindowBytes is the mean number of bytes, of objects and envelopes, that a client wrote to its
	// bucket in a window. SliceBytes is the least size of a slice's values.
	WindowBytes uint64 `json:"bytes_per_window,omitempty"`
	SliceBytes  uint64 `json:"slice_bytes,omitempty"`
}

// Err returns an error if an honest client was convicted, or if a cheat was not.
func (s Summary) Err() error {
	switch {
	case s.HonestConvicted:
		return errors.New("an honest client was convicted of cheating")
	case s.Adversary != "" && s.Exchange != Buckets && !s.AdversaryConvicted:
		return fmt.Errorf("the run ended before the cheat (%s) was convicted: %d results were recomputed; give it more --rounds, or a higher --verification",
			s.Adversary, s.trust().Drawn)
	}
	return nil
}

// trust returns the checks and convictions, none of a run without them.
func (s Summary) trust() view.Trust {
	if s.Trust == nil {
		return view.Trust{}
	}
	return *s.Trust
}

// conclude takes over the checkpoint of the final parameters, measures the held-out loss of what is
// in it, and has it write a paragraph.
func (d *demo) conclude(ctx context.Context) (Summary, error) {
	p := &d.progress
	s := Summary{
		Event: "summary", Clients: d.Clients, HeldOutFirst: d.first, PayloadBytes: p.payload.mean(), DenseBytes: 4 * uint64(d.trainer.Engine.ParamsLen()),
		ParamHash: p.agreed().String(), HashesEqual: p.equal(), Checkpoint: d.dir.file(checkpointDir), Members: p.members(),
		Adversary: d.Adversary, Exchange: d.Exchange, AdversaryConvicted: p.caught(), HonestConvicted: p.wronged(), Trust: p.run().Trust,
	}
	logs := d.dir.file("logs")
	if !p.over() {
		where := "not begun"
		if p.seen {
			where = fmt.Sprintf("in %v, step %d of %d", p.state.Phase(), p.state.Step(), d.Rounds)
		}
		return s, fmt.Errorf("the run has not finished: it is %s; see the logs in %s", where, logs)
	}
	s.Rounds = uint32(p.state.Step())
	s.TokensPerSecond, s.StepTokensPerSecond = p.speed()
	if d.buckets() {
		var sent total
		for _, c := range p.clients {
			sent.sum, sent.count = sent.sum+c.sent.sum, sent.count+c.sent.count
		}
		s.WindowBytes, s.SliceBytes = sent.mean(), s.DenseBytes/4/compression
	}
	if d.Validators > 0 {
		honest, cheats := 0., 0.
		for _, c := range s.Members {
			if c.Cheats {
				cheats += c.EarnedShare
			} else {
				honest += c.EarnedShare
			}
		}
		s.AdversaryRewardShare, s.HonestRewardShare = &cheats, &honest
	}
	if !s.HashesEqual {
		return s, fmt.Errorf("the run has finished with parameters %s, but not all clients hold them; see the logs in %s", s.ParamHash, logs)
	}
	s.Seconds = time.Since(d.began).Seconds()
	if err := d.takeCheckpoint(s.ParamHash); err != nil {
		return s, err
	}
	var err error
	s.HeldOutLast, s.GeneratedText, err = final(ctx, d.trainer, s.Checkpoint)
	return s, err
}

// takeCheckpoint moves a client's checkpoint of the final parameters into the demo's directory.
func (d *demo) takeCheckpoint(params string) error {
	to := d.dir.file(checkpointDir)
	for _, c := range d.progress.clients {
		from, err := model.Dir(d.dir.file(c.name, model.CheckpointsDir)).Find(params)
		if err != nil {
			return err
		}
		if from != "" {
			return errors.Join(os.RemoveAll(to), os.Rename(from, to))
		}
	}
	return fmt.Errorf("no client has written a checkpoint of %s; see the logs in %s", params, d.dir.file("logs"))
}

// summaryWidth is the columns of a terminal on which a summary fits.
const summaryWidth = 80

// String writes the summary for people.
func (s Summary) String() string {
	var b strings.Builder
	line := func(label, format string, args ...any) {
		text := fmt.Sprintf("%-14s ", label) + fmt.Sprintf(format, args...)
		for _, l := range tui.Wrap(text, summaryWidth, strings.Repeat(" ", 15)) {
			fmt.Fprintln(&b, l)
		}
	}
	fmt.Fprintf(&b, "\n%d rounds with %d clients in %s\n", s.Rounds, s.Clients, view.Minutes(time.Duration(s.Seconds*float64(time.Second))))
	line("held-out loss", "%.3f -> %.3f nats a byte", s.HeldOutFirst, s.HeldOutLast)
	if s.WindowBytes > 0 {
		line("sent a window", "%s bytes by each client, 1/%d of the dense gradient: its result, %s bytes, and the model's slice, for those that missed the window",
			view.Thousands(s.WindowBytes), s.DenseBytes/max(1, s.WindowBytes), view.Thousands(s.PayloadBytes))
	} else {
		line("sent a round", "%s bytes by each client, 1/%d of the dense gradient", view.Thousands(s.PayloadBytes), s.DenseBytes/max(1, s.PayloadBytes))
	}
	if s.WindowBytes == 0 && s.StepTokensPerSecond > 0 { // a window takes as long as --window says
		line("trained", "%s tokens/s, %.0f %% of the %s that the clients' steps alone reach",
			view.Thousands(uint64(s.TokensPerSecond)), 100*s.TokensPerSecond/s.StepTokensPerSecond, view.Thousands(uint64(s.StepTokensPerSecond)))
	}
	for _, c := range s.Members {
		more := ""
		if s.AdversaryRewardShare != nil {
			more = fmt.Sprintf("; %d tokens, %.1f %% of all; score %.3f", c.Earned, 100*c.EarnedShare, c.Score)
		}
		if c.Params != s.ParamHash {
			more += ", parameters " + view.Short(c.Params)
		}
		if c.Cheats {
			more += ", the cheat: " + s.Adversary
		}
		line(c.Name, "%d points%s", c.Points, more)
	}
	t := s.trust()
	if t.Drawn > 0 {
		line("recomputed", "%d results were drawn, %d found right; %d disputes", t.Drawn, t.Passed, t.Disputed)
	}
	for i := range t.Convictions {
		c := t.Convictions[len(t.Convictions)-1-i] // the oldest first
		line("CONVICTED", "%s", c.Proof())
		if where := t.Found(c); where != "" {
			line("", "the traces first differ in %s, which the chain computed itself", where)
		}
	}
	equal := "the same in all clients, and what the chain agreed on"
	switch {
	case !s.HashesEqual:
		equal = "NOT the same in all clients"
	case s.Adversary != "":
		equal = "the same in all honest clients, and what the chain agreed on"
	}
	line("parameters", "%s", s.ParamHash)
	line("", "%s", equal)
	fmt.Fprintf(&b, "%-14s %s\n\n", "checkpoint", s.Checkpoint) // a path is not broken
	for text := range strings.Lines(strings.TrimSpace(s.GeneratedText)) {
		for _, l := range tui.Wrap("    "+strings.TrimSuffix(text, "\n"), summaryWidth, "    ") {
			fmt.Fprintln(&b, l)
		}
	}
	fmt.Fprintf(&b, "\nmore text: entrain model generate %s --prompt \"The colours of \"\n", view.Quote(s.Checkpoint))
	return b.String()
}
