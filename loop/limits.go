package loop

import (
	"context"
	"math"
	"slices"
	"time"
)

// Limits bound the time of requests by contexts, which end with a step of the time. Thousands of
// requests are under way in a large run, and nearly all end before; so those that would end with
// the same step share one context.
type Limits struct {
	Step time.Duration
	list []limit
}

type limit struct {
	step   uint64 // with which it ends
	ctx    context.Context
	cancel func()
}

// Within returns a context that ends with the first step of End after d, at the time nowMs in
// milliseconds.
func (l *Limits) Within(of context.Context, nowMs uint64, d time.Duration) context.Context {
	step := (nowMs + uint64((d + l.Step).Milliseconds())) / uint64(l.Step.Milliseconds())
	for i := len(l.list) - 1; i >= 0; i-- {
		if l.list[i].step == step {
			return l.list[i].ctx
		}
	}
	ctx, cancel := context.WithCancel(of)
	l.list = append(l.list, limit{step, ctx, cancel})
	return ctx
}

// End ends the contexts whose time is over.
func (l *Limits) End(nowMs uint64) {
	now := nowMs / uint64(l.Step.Milliseconds())
	l.list = slices.DeleteFunc(l.list, func(o limit) bool {
		if o.step > now {
			return false
		}
		o.cancel()
		return true
	})
}

// Next returns the time in milliseconds at which the next context ends, the greatest if there is
// none.
func (l *Limits) Next() uint64 {
	next := uint64(math.MaxUint64)
	for _, o := range l.list {
		next = min(next, o.step*uint64(l.Step.Milliseconds()))
	}
	return next
}
