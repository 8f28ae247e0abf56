package spec

import (
	"cmp"
	"fmt"
	"regexp"

	"github.com/entrain-network/entrain/coordinator"
)

// keyOf maps the fields of a coordinator.Config to the keys that set them, with the keys' limits.
var keyOf = map[string]string{
	"MinMembers": "members.min", "StartMembers": "members.start", "Witnesses": "members.witnesses",
	"WaitingMs": "times.waiting", "WarmupMs": "times.warmup", "RoundTrainMs": "times.round_train",
	"RoundWitnessMs": "times.round_witness", "CooldownMs": "times.cooldown", "EpochMs": "times.epoch",
	"TotalSteps": "steps", "BatchStart": "batch.start", "BatchEnd": "batch.end",
	"BatchRampTokens": "batch.ramp_tokens", "SequenceTokens": "data.sequence", "Overlap": "members.overlap",
	"MissedMax": "members.missed_max", "VerificationPercent": "trust.verification_percent",
	"VerifyMs": "trust.verify", "DisputeMs": "trust.dispute", "Stake": "trust.stake",
	"UnbondMs": "trust.unbond", "Rate": "trust.rate", "Exchange": "exchange.kind",
	"WindowBlocks": "exchange.window_blocks", "Sharing": "batch.shares", "Validators": "scores.validators",
	"ScoreWindows": "scores.windows", "Emission": "scores.emission", "Numerics": "numerics",
	"ValidatorPercent": "scores.validator_percent", "Penalty": "scores.penalty_percent",
	"RegisterCost": "members.register_cost", "Slots": "members.slots",
	"ImmuneWindows": "members.immune_windows", "Name": "name", "Limits.Members": "members.capacity",
	"Limits.Witnesses": "members.witnesses, or 32", "Limits.Validators": "scores.validators",
}

// fieldName matches a field's name in a fault of a coordinator.Config.
var fieldName = regexp.MustCompile(`(?:Limits\.)?\b[A-Z]\w+`)

// inKeys describes a fault in a coordinator's configuration by the keys the user typed.
func inKeys(f coordinator.Fault) error {
	toKey := func(text string) string {
		return fieldName.ReplaceAllStringFunc(text, func(field string) string { return cmp.Or(keyOf[field], field) })
	}
	key, bound := toKey(f.Field), toKey(f.Bound)
	switch {
	case bound != "" && f.Code == coordinator.ErrTooSmall:
		return fmt.Errorf("%s: must be at least %s", key, bound)
	case bound != "" && f.Code == coordinator.ErrTooLarge:
		return fmt.Errorf("%s: must be at most %s", key, bound)
	case bound != "":
		return fmt.Errorf("%s: %w (%s)", key, f.Code, bound)
	}
	return fmt.Errorf("%s: %w", key, f.Code)
}
