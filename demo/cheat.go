package demo

import (
	"errors"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/participant/trainer"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// A Cheat makes a dishonest participant of an honest one. The demo's cheating clients are child
// processes that take part as any other, except that their node's configuration passes through
// Wrap. No other command of the program has a way to cheat.
type Cheat struct {
	Kind string       // name of a kind: `entrain demo --help` lists them
	Gang []key.Public // all who cheat together, in one order; nil means that it acts alone
}

// Wrap returns the configuration of a node that cheats.
func (c Cheat) Wrap(cfg node.Config, t *trainer.Trainer) (node.Config, error) {
	self, s := cfg.Key.Public(), t.Spec
	o := adversary.Options{Seed: wire.Sum("entrain/adversary", self[:]), Run: t.Run, NewEngine: t.NewEngine, Gang: c.Gang}
	switch {
	case s.Trust.VerificationPercent > 0:
		text, err := s.Append(nil)
		if err != nil {
			return cfg, err
		}
		if o.Referee, err = verify.NewReferee(text); err != nil {
			return cfg, err
		}
	case !s.Buckets():
		return cfg, errors.New("nobody would notice a cheat: the run has no verification")
	}
	return adversary.Wrap(c.Kind, cfg, o)
}
