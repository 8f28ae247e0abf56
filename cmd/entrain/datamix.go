package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/entrain-network/entrain/data"
)

// makeMix makes a directory that stands for several data sets.
func (p *preparation) makeMix(ctx context.Context, c console) error {
	if err := p.fillName(); err != nil {
		return err
	}
	var weights []uint32
	var sets []string
	for _, arg := range p.mix {
		text, set, ok := strings.Cut(arg, ":")
		weight, err := strconv.ParseUint(text, 10, 32)
		if !ok || err != nil || set == "" {
			return fmt.Errorf("--mix %q is not of the form WEIGHT:SET, such as 3:./web", arg)
		}
		weights, sets = append(weights, uint32(weight)), append(sets, set)
	}
	m, err := data.MakeMix(ctx, p.out, p.name, weights, sets)
	if err != nil {
		return err
	}
	c.say("made the mix %q in %s", m.Name, p.out)
	_, err = fmt.Fprintln(c.out, m.Hash())
	return err
}
