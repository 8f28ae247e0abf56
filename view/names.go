package view

import (
	"context"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/ledger"
)

// Names are what keys are called on a chain, by key, hex. A name is whose took it first, so every
// view shows a part of the key beside it.
type Names map[string]host.Profile

// NewNames returns the names in a list.
func NewNames(list []host.Profile) Names {
	n := make(Names, len(list))
	for _, p := range list {
		n[p.Key.String()] = p
	}
	return n
}

// namesFor bounds the wait for names, which a view can do without.
const namesFor = 5 * time.Second

// NamesOn returns what keys are called on a chain; none if it does not say.
func NamesOn(ctx context.Context, client ledger.Chain) Names {
	ctx, cancel := context.WithTimeout(ctx, namesFor)
	defer cancel()
	list, _ := client.Names(ctx)
	return NewNames(list)
}

// namesEvery is how often KeepNames asks for names.
const namesEvery = 30 * time.Second

// KeepNames tells what keys are called, again and again until ctx ends.
func KeepNames(ctx context.Context, client ledger.Chain, tell func(Names)) {
	timer := time.NewTicker(namesEvery)
	defer timer.Stop()
	for ctx.Err() == nil {
		tell(NamesOn(ctx, client))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// Call sets the names of the run's members that have none.
func (n Names) Call(members []Member) {
	for i := range members {
		if m := &members[i]; m.Name == "" {
			p := n[m.Key]
			m.Name, m.Team, m.chosen = p.Name, p.Team, p.Name != ""
		}
	}
}

// Called sets what keys are called on the chain.
func (f *Fold) Called(n Names) { f.chosen = n }

// Label returns the member's name, or a short form of its key. A name that it chose comes with the
// beginning of the key.
func (m Member) Label() string {
	switch {
	case m.Name == "":
		return Short(m.Key)
	case m.chosen:
		return m.Name + " " + m.Key[:6]
	}
	return m.Name
}

// Title returns a short form of the member's key, and its name and team if it has any.
func (m Member) Title() string {
	switch {
	case m.Name == "":
		return Short(m.Key)
	case m.Team == "":
		return Short(m.Key) + " " + m.Name
	}
	return Short(m.Key) + " " + m.Name + ", " + m.Team
}
