package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/client"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/engine"
	"github.com/entrain-network/entrain/node/blobs"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// A member that missed windows needs the values on the slice of each one: a hundredth of the model.
// It finds the slices by listing the buckets of several others, lays them over what it holds, and
// compares the hash of the whole with the one that the run agreed on. If the hash differs, or there
// is too much to patch, it does the same from the model of the last checkpoint, and at last from
// the run's first parameters. It believes nothing before that hash is right, so a liar costs time
// and nothing else.

// healing is how many ways to a model were tried. A wrong hash is found only later; the next
// attempt then goes another way.
type healing struct {
	params wire.Hash
	tried  int
}

// base is parameters to patch: those at the start of a round.
type base struct {
	round  coordinator.Round
	values func() []float32 // called off the loop
	text   string
	safe   func() // as in fetched
}

// way gets parameters to patch.
type way func(done func(base, error))

// fetchModel gets the agreed parameters.
func (b *buckets) fetchModel(ctx context.Context, a client.Heal, have *blobs.Version, _ func(done, total uint64), done func(fetched, error)) {
	var held *base
	if round, root, ok := b.node.machine.Round(); ok && have != nil && have.Root == root {
		held = &base{round: round, text: heldParameters(round), values: func() []float32 { return slices.Clone(engine.Values(have.Values)) }}
	}
	b.fetchAgreed(ctx, a, held, done)
}

func heldParameters(round coordinator.Round) string {
	return "its slices since round " + fmt.Sprint(round)
}

// fetchAgreed gets the agreed parameters; have are older ones, nil if there are none.
func (b *buckets) fetchAgreed(ctx context.Context, a client.Heal, have *base, done func(fetched, error)) {
	if b.healing.params != a.Params {
		b.healing = healing{params: a.Params}
	}
	b.survey(func(c catalog) {
		if ctx.Err() != nil {
			done(fetched{}, ctx.Err())
			return
		}
		ways := b.ways(a, have, c)
		var errs []error
		var try func()
		try = func() {
			k := b.healing.tried
			if k >= len(ways) {
				b.healing.tried = 0
				done(fetched{}, errors.Join(append(errs, errors.New("no way to the agreed parameters has worked yet"))...))
				return
			}
			b.healing.tried++
			ways[k](func(from base, err error) {
				if err == nil {
					b.patch(a, from, c, func(m fetched, err error) {
						if err == nil {
							done(m, nil)
							return
						}
						errs = append(errs, err)
						try()
					})
					return
				}
				errs = append(errs, err)
				try()
			})
		}
		try()
	})
}

// ways lists the ways to the agreed parameters, the cheapest first.
func (b *buckets) ways(a client.Heal, have *base, c catalog) []way {
	n := b.node
	var ways []way
	if have != nil && have.round < a.Round && b.cheap(have.round, a.Round) {
		ways = append(ways, func(done func(base, error)) { done(*have, nil) })
	}
	whole := func(round coordinator.Round, root wire.Hash) way {
		return func(done func(base, error)) { b.whole(c, round, root, done) }
	}
	ways = append(ways, whole(a.Round, a.Params))
	if saved, ok := n.state.LastCheckpoint(); ok && saved.Params != a.Params {
		for _, round := range c.models(saved.Params) {
			ways = append(ways, whole(round, saved.Params))
		}
	}
	if b.cheap(1, a.Round) {
		ways = append(ways, func(done func(base, error)) {
			done(base{round: 1, text: initialParameters + " and the slices since", values: n.cfg.Initial}, nil)
		})
	}
	return ways
}

// cheap reports whether the slices of the windows between two rounds are worth fetching.
func (b *buckets) cheap(from, to coordinator.Round) bool {
	if b.node.slicer == nil {
		return false
	}
	return uint64(to-from)*uint64(b.node.slicer.StateSliceLen()) < 4*uint64(b.node.cfg.Engine.ParamsLen())*cheapTimes
}

// cheapTimes is up to how many times the size of the model slices are fetched.
const cheapTimes = 4

// whole fetches parameters whose hash is known, from the buckets that list them if they can.
func (b *buckets) whole(c catalog, round coordinator.Round, root wire.Hash, done func(base, error)) {
	n := b.node
	want := bucket.BlobWant{Run: b.run(), Window: round, Root: root, Bytes: 4 * uint64(n.cfg.Engine.ParamsLen()), From: b.sources()}
	if n.cfg.Kept != nil {
		want.Kept = n.cfg.Kept
	}
	if len(want.From) == 0 {
		done(base{}, errNoBucket)
		return
	}
	sort.SliceStable(want.From, func(i, j int) bool { return c.lists(want.From[i], root) > c.lists(want.From[j], root) })
	b.blob(want, func(data []byte, parts []wire.Hash, err error) {
		done(base{round: round, text: "the model of round " + fmt.Sprint(round) + ", verified", values: func() []float32 {
			values := make([]float32, n.cfg.Engine.ParamsLen())
			tensor.SetBytes(values, data)
			return values
		}, safe: func() {
			for _, part := range parts {
				if n.cfg.Kept != nil {
					n.cfg.Kept.Drop(part)
				}
			}
		}}, err)
	})
}

// sources returns the buckets of the others, beginning with another one each time.
func (b *buckets) sources() []bucket.Source {
	n := b.node
	var list []bucket.Source
	count := n.state.Count()
	for k := range count {
		i := coordinator.Member((coordinator.Round(k) + n.state.Round())) % count
		author := n.state.Key(i)
		if at, ok := b.where[author]; ok && author != n.self {
			list = append(list, bucket.Source{Location: at, Member: author})
		}
	}
	return list
}

// catalog lists the models and slices of the agreed parameters in the buckets that were surveyed.
type catalog struct {
	found []found
}

type found struct {
	bucket.Source
	bucket.Name
}

const (
	// surveyed is how many buckets are listed for a catalog at least. Neighbours in the table of
	// members write in different windows.
	surveyed = 5
	// catalogMax bounds the names taken of one bucket.
	catalogMax = 1 << 14
)

// survey lists the buckets of several members.
func (b *buckets) survey(done func(catalog)) {
	var c catalog
	from := b.sources()
	from = from[:min(max(surveyed, int(b.node.stride())+2), len(from))]
	left := len(from)
	if left == 0 {
		b.node.cfg.Loop.Post(func() { done(c) })
		return
	}
	for _, s := range from {
		b.list(s.Location, func(names []bucket.Name, err error) {
			for _, name := range names {
				if err == nil && name.Member == s.Member && (name.Kind == bucket.KindState || name.Kind == bucket.KindIndex) {
					c.found = append(c.found, found{s, name})
				}
			}
			if left--; left == 0 {
				done(c)
			}
		})
	}
}

// models lists the windows for which a bucket has the model with a hash, the newest first.
func (c catalog) models(root wire.Hash) (rounds []coordinator.Round) {
	for _, f := range c.found {
		if f.Kind == bucket.KindIndex && f.Content == root && !slices.Contains(rounds, f.Window) {
			rounds = append(rounds, f.Window)
		}
	}
	slices.Sort(rounds)
	slices.Reverse(rounds)
	return rounds[:min(len(rounds), 2)]
}

// lists returns 1 if a bucket lists the model with a hash, or else 0.
func (c catalog) lists(s bucket.Source, root wire.Hash) int {
	if slices.ContainsFunc(c.found, func(f found) bool { return f.Source == s && f.Kind == bucket.KindIndex && f.Content == root }) {
		return 1
	}
	return 0
}

// states lists the slices of a window that lead to the agreed hash, or if that is not known to the
// hash that most of them name.
func (c catalog) states(window coordinator.Round, agreed wire.Hash) (from []found) {
	var best wire.Hash
	votes := map[wire.Hash]int{}
	for _, f := range c.found {
		if f.Kind != bucket.KindState || f.Window != window {
			continue
		}
		votes[f.Content]++
		if v := votes[f.Content] - votes[best]; v > 0 || v == 0 && f.Content.Compare(best) < 0 {
			best = f.Content
		}
	}
	if votes[agreed] > 0 {
		best = agreed
	}
	for _, f := range c.found {
		if f.Kind == bucket.KindState && f.Window == window && f.Content == best {
			from = append(from, f)
		}
	}
	return from
}

// patch gets the slices of the windows between the base and the agreed round. The parameters at the
// start of a round contain the accepted sets of all windows but the two before it.
func (b *buckets) patch(a client.Heal, from base, c catalog, done func(fetched, error)) {
	n := b.node
	var bodies [][]byte
	var errs []error
	left := 1
	finish := func() {
		if left--; left > 0 {
			return
		}
		if err := errors.Join(errs...); err != nil {
			done(fetched{}, err)
			return
		}
		done(fetched{source: from.text, safe: from.safe, make: func() []float32 {
			values := from.values()
			for _, body := range bodies {
				if len(values) != n.cfg.Engine.ParamsLen() || body != nil && n.slicer.PatchState(values, body) != nil {
					return nil
				}
			}
			return values
		}}, nil)
	}
	for window := max(from.round, 2) - 1; window+2 <= a.Round; window++ {
		agreed := a.Params
		if window+2 < a.Round {
			agreed = b.agreedAt(window + 2)
		}
		list := c.states(window, agreed)
		if len(list) == 0 {
			continue // nothing was accepted in it, or the hash will tell
		}
		k := len(bodies)
		bodies = append(bodies, nil)
		left++
		b.state(list, func(body []byte, err error) {
			if err != nil {
				errs = append(errs, err)
			}
			bodies[k] = body
			finish()
		})
	}
	n.cfg.Loop.Post(finish)
}

// agreedAt returns the hash that was agreed on for the start of a round, zero if the state does not
// have it.
func (b *buckets) agreedAt(round coordinator.Round) wire.Hash {
	if params, at := b.node.state.Params(); at == round {
		return params
	}
	if r, ok := b.node.state.At(round); ok {
		if params, ok := r.Agreed(); ok {
			return params
		}
	}
	return wire.Hash{}
}

// state gets a slice from the first of a list that has it.
func (b *buckets) state(list []found, done func([]byte, error)) {
	f := list[0]
	w := bucket.Want{Location: f.Location, Name: f.Name, Max: b.node.slicer.StateSliceLen()}
	b.get(w, func(body []byte, err error) {
		if err != nil && len(list) > 1 {
			b.state(list[1:], done)
			return
		}
		done(body, err)
	})
}

func (b *buckets) blob(w bucket.BlobWant, done func(data []byte, parts []wire.Hash, err error)) {
	b.track(func(ended func()) func() {
		return b.x.Blob(w, modelFor, func(data []byte, parts []wire.Hash, err error) {
			ended()
			done(data, parts, err)
		})
	})
}

// list lists the objects of the run in a bucket.
func (b *buckets) list(at bucket.Location, done func([]bucket.Name, error)) {
	b.track(func(ended func()) func() {
		return b.x.List(at, bucket.RunPrefix(b.run()), catalogMax, lookFor, func(names []bucket.Name, err error) {
			ended()
			done(names, err)
		})
	})
}
