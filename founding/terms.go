package founding

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/onchain"
)

// Close returns the transaction that ends a run, or removes it if it is over.
func Close(ctx context.Context, l ledger.Chain, run string) (body host.Body, over bool, err error) {
	p, err := onchain.GetRun(ctx, l, run)
	if err != nil {
		return nil, false, err
	}
	if p.Snapshot.State.Phase() == coordinator.Finished {
		return host.CloseRun{Run: run}, true, nil
	}
	return host.ToRun(run, coordinator.End{}), false, nil
}

// ChangeRun returns the transaction that changes terms of a paused run, as Change has them.
func ChangeRun(ctx context.Context, l ledger.Chain, run string, terms []string) (host.Body, error) {
	p, err := onchain.GetRun(ctx, l, run)
	if err != nil {
		return nil, err
	}
	m, err := Change(p.Snapshot.State.Config(), terms)
	return host.ToRun(run, m), err
}

// Change returns the message that changes terms of a paused run, where now are those that the run
// has. Each of terms is KEY=VALUE, with a key and a value as the specification has them.
func Change(now coordinator.Config, terms []string) (coordinator.Change, error) {
	m := coordinator.Change{
		Rate: now.Rate, Emission: now.Emission, WaitingMs: now.WaitingMs, WarmupMs: now.WarmupMs,
		RoundTrainMs: now.RoundTrainMs, RoundWitnessMs: now.RoundWitnessMs, CooldownMs: now.CooldownMs, EpochMs: now.EpochMs,
	}
	amounts := map[string]*uint64{"trust.rate": &m.Rate, "scores.emission": &m.Emission}
	times := map[string]*uint64{
		"times.waiting": &m.WaitingMs, "times.warmup": &m.WarmupMs, "times.round_train": &m.RoundTrainMs,
		"times.round_witness": &m.RoundWitnessMs, "times.cooldown": &m.CooldownMs, "times.epoch": &m.EpochMs,
	}
	for _, term := range terms {
		key, value, _ := strings.Cut(term, "=")
		var err error
		switch amount, time := amounts[key], times[key]; {
		case amount != nil:
			*amount, err = strconv.ParseUint(value, 10, 64)
		case time != nil:
			*time, err = milliseconds(value)
		default:
			err = errors.New("want KEY=VALUE, where KEY is trust.rate, scores.emission, or times.waiting, warmup, round_train, round_witness, cooldown or epoch")
		}
		if err != nil {
			return m, fmt.Errorf("--set %q: %w", term, err)
		}
	}
	return m, nil
}

// milliseconds reads a duration such as 5m.
func milliseconds(text string) (uint64, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = errors.New("a time is not negative")
	}
	return uint64(max(0, d).Milliseconds()), err
}
