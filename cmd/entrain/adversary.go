package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/verify"
	"github.com/entrain-network/entrain/wire"
)

// cheating is how a participant cheats, for demonstrations of what becomes of it.
type cheating struct {
	kind string
	gang []string // public keys of those it works with, its own included
}

// flags adds the flags by which the demo makes one of its clients a cheat. They are no use to anybody else, and are not shown.
func (c *cheating) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&c.kind, "adversary", "", "cheat in the way of this `kind`, and lose the stake")
	f.StringArrayVar(&c.gang, "gang", nil, "public `key` of one of those who cheat together; may be repeated")
	_ = f.MarkHidden("adversary")
	_ = f.MarkHidden("gang")
}

// bend makes a cheat of the participant's node if it is to be one.
func (p *participant) bend(cfg node.Config) (node.Config, error) {
	if p.cheating.kind == "" {
		return cfg, nil
	}
	self := p.key.Public()
	o := adversary.Options{Seed: wire.Sum("entrain/adversary", self[:]), Train: p.trainer.parts}
	if p.trainer.spec.Buckets() {
		return adversary.Wrap(p.cheating.kind, cfg, o)
	}
	if p.tracer == nil {
		return cfg, errors.New("--adversary: the run has no verification, so nobody would notice")
	}
	for _, s := range p.cheating.gang {
		k, err := key.ParsePublic(s)
		if err != nil {
			return cfg, fmt.Errorf("--gang %q: %w", s, err)
		}
		o.Gang = append(o.Gang, k)
	}
	text, err := p.trainer.spec.Append(nil)
	if err != nil {
		return cfg, err
	}
	if o.Referee, err = verify.NewReferee(text); err != nil {
		return cfg, err
	}
	return adversary.Wrap(p.cheating.kind, cfg, o)
}
