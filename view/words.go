package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
)

// Teller puts a participant's events into words, leaving out what was said before.
type Teller struct {
	// Invite is the command with which others join, for the wait for members; "" names the one that
	// prints a ticket.
	Invite string

	phase  string
	epoch  coordinator.Epoch
	status string
	points uint64
	step   coordinator.Step
	steps  coordinator.Step
	said   string
	no     []string // refusals since something else was said
	drains bool     // rounds train no more in this epoch
}

// soonBytes bounds a model that arrives soon, so that few lines report how much of it has.
const soonBytes = 100 << 20

// Words returns a line for people, or "".
func (t *Teller) Words(ev event.Event) string {
	text := t.phrase(ev)
	_, refused := ev.(event.Refused)
	if text == t.said || refused && slices.Contains(t.no, text) {
		return "" // what repeats itself
	}
	if text != "" {
		t.said = text
	}
	if refused {
		t.no = append(t.no[max(0, len(t.no)-7):], text)
	} else if text != "" {
		t.no = nil
	}
	return text
}

func (t *Teller) phrase(got event.Event) string {
	switch ev := got.(type) {
	case event.State:
		return t.state(ev)
	case event.Loaded:
		return fmt.Sprintf("%s: %s", ev.Source, Short(ev.Params.String()))
	case event.Trained:
		return fmt.Sprintf("step %d/%d: loss %.3f, %s tokens/s; %s points", ev.Step, t.steps, ev.Loss,
			Thousands(uint64(ev.TokensPerSecond())), Thousands(t.points))
	case event.Evaluated:
		return fmt.Sprintf("held-out loss after step %d: %.3f nats a token", ev.Step, ev.HeldOut)
	case event.Sample:
		return fmt.Sprintf("after step %d the model writes: %s | %s", ev.Step, ev.Prompt, strings.Join(strings.Fields(ev.Text), " "))
	case event.Scored:
		return fmt.Sprintf("%s after step %d: accuracy %.3f, normalized %.3f, of %d", ev.Task, ev.Step, ev.Acc, ev.AccNorm, ev.Items)
	case event.Healing:
		every := uint64(10)
		if ev.Total < soonBytes {
			every = 50
		}
		return fmt.Sprintf("fetching the model: %d %% of %s", Percent(ev.Bytes, ev.Total)/every*every, Bytes(ev.Total))
	case event.Healed:
		return fmt.Sprintf("caught up from %s: %s", ev.Source, Short(ev.Params.String()))
	case event.Checkpoint:
		return fmt.Sprintf("checkpoint of step %d written", ev.Step)
	case event.Refused:
		return "the chain refused: " + ev.Text
	case event.Note:
		return ev.Text
	case event.Check:
		return ev.Text
	case event.Verdict:
		return ev.Text
	case event.Dispute:
		return ev.Text
	case event.Convicted:
		return ev.Text
	case event.Kept:
		return "the model is in " + ev.Path
	case event.Finished:
		serving := "until Ctrl-C"
		if ev.Seconds >= 0 {
			serving = fmt.Sprintf("for %s, Ctrl-C leaves now", Lasts(time.Duration(ev.Seconds)*time.Second))
		}
		return fmt.Sprintf("the run has finished with parameters %s; serving them to others %s", ev.Params, serving)
	}
	return ""
}

// state tells of a change of phase outside of rounds, which the lines about training show, and of
// our own standing.
func (t *Teller) state(ev event.State) string {
	before := *t
	t.phase, t.epoch, t.status, t.points, t.step, t.steps = ev.Phase, ev.Epoch, ev.Status, ev.Points, ev.Step, ev.Steps
	if text := t.waiting(ev); text != "" {
		return text
	}
	t.drains = ev.Snapshot != nil && inRounds(t.phase) && ev.Snapshot.State.Draining() > 0
	if t.drains && !before.drains {
		return fmt.Sprintf("epoch %d is ending: its last results are attested and applied; rounds without training: %d", t.epoch, ev.Snapshot.State.Draining())
	}
	if t.status == before.status && (t.phase == before.phase || inRounds(t.phase) && inRounds(before.phase)) {
		return ""
	}
	return fmt.Sprintf("%s, epoch %d, step %d/%d, members %d; you are %s", ev.Phase, ev.Epoch, ev.Step, ev.Steps, ev.Members, OrDash(Standing(ev.Phase, ev.Status)))
}

// waiting says what a run that lacks members waits for, "" if it does not.
func (t *Teller) waiting(ev event.State) string {
	if ev.Snapshot == nil || ev.Phase != coordinator.WaitingForMembers.String() {
		return ""
	}
	config := ev.Snapshot.State.Config()
	need := max(config.StartMembers, config.MinMembers)
	if ev.Members >= need {
		return ""
	}
	invite := t.Invite
	if invite == "" {
		invite = "entrain join TICKET, which entrain run ticket " + config.Name + " prints"
	}
	return fmt.Sprintf("waiting: %d of %d members; invite with: %s", ev.Members, need, invite)
}
