package founding

import (
	"fmt"
	"strconv"
	"time"

	"github.com/entrain-network/entrain/coordinator"
)

// Terms are what an owner may change of a paused run. "" and 0 leave a term as it is.
type Terms struct {
	Rate, Emission                                   string // tokens
	Waiting, Warmup, Train, Witness, Cooldown, Epoch time.Duration
}

// Change returns the message that sets the terms, where now are those that the run has.
func (t Terms) Change(now coordinator.Config) (coordinator.Change, error) {
	m := coordinator.Change{
		Rate: now.Rate, Emission: now.Emission, WaitingMs: now.WaitingMs, WarmupMs: now.WarmupMs,
		RoundTrainMs: now.RoundTrainMs, RoundWitnessMs: now.RoundWitnessMs, CooldownMs: now.CooldownMs, EpochMs: now.EpochMs,
	}
	for _, f := range []struct {
		text string
		to   *uint64
	}{{t.Rate, &m.Rate}, {t.Emission, &m.Emission}} {
		if f.text == "" {
			continue
		}
		n, err := strconv.ParseUint(f.text, 10, 64)
		if err != nil {
			return m, fmt.Errorf("%q is no amount: want a whole number of tokens", f.text)
		}
		*f.to = n
	}
	for _, f := range []struct {
		time time.Duration
		to   *uint64
	}{{t.Waiting, &m.WaitingMs}, {t.Warmup, &m.WarmupMs}, {t.Train, &m.RoundTrainMs}, {t.Witness, &m.RoundWitnessMs}, {t.Cooldown, &m.CooldownMs}, {t.Epoch, &m.EpochMs}} {
		if f.time < 0 {
			return m, fmt.Errorf("%v is no length of time", f.time)
		}
		if f.time > 0 {
			*f.to = uint64(f.time.Milliseconds())
		}
	}
	return m, nil
}
