package client

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/client/holders"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// sliceTest is what peers of a run of slices do besides, and what a test sees of it.
type sliceTest struct {
	aggregators uint32
	shown       map[coordinator.Round]map[key.Public][]byte
	summed      map[coordinator.Round]map[key.Public]Update
	ranges      map[*peer]map[testRange]bool
	own         map[*peer]map[coordinator.Round]int // the slice that a peer fetches ranges for
	wrong       map[wire.Hash]bool                  // slices that are not what the payloads make
	recounts    int
	asked, told map[coordinator.Round]int // members for what they hold, and of these those that show something new

	shows  func(p *peer, tags []byte) []byte
	names  func(p *peer, a SumSlice, right Update) (Update, bool)
	serves func(p, to *peer) bool // ranges
}

type testRange struct {
	payload wire.Hash
	slice   int
}

const testSliceBytes = 100

// newSlices returns a network of 24 with 5 witnesses and 4 slices.
func newSlices(t *testing.T, seed uint64) *network {
	net := newFollowers(t, 1, seed)
	net.follow.slices = &sliceTest{
		aggregators: 6, shown: map[coordinator.Round]map[key.Public][]byte{}, summed: map[coordinator.Round]map[key.Public]Update{},
		ranges: map[*peer]map[testRange]bool{}, own: map[*peer]map[coordinator.Round]int{}, wrong: map[wire.Hash]bool{},
		asked: map[coordinator.Round]int{}, told: map[coordinator.Round]int{},
		shows:  func(_ *peer, tags []byte) []byte { return tags },
		names:  func(_ *peer, _ SumSlice, u Update) (Update, bool) { return u, true },
		serves: func(*peer, *peer) bool { return true },
	}
	for _, p := range net.peers {
		net.follow.slices.own[p] = map[coordinator.Round]int{}
		p.start()
	}
	return net
}

// sliced performs an action of a run of slices. It reports whether that is all to do about it.
func (p *peer) sliced(a Action) bool {
	f, self := p.follow.slices, p.key.Public()
	switch a := a.(type) {
	case ShowHeld:
		if f.shown[a.Round] == nil {
			f.shown[a.Round] = map[key.Public][]byte{}
		}
		f.shown[a.Round][self] = f.shows(p, a.Tags)
	case AskHeld:
		f.asked[a.Round] += len(a.To)
		for i, k := range a.To {
			if tags := f.shown[a.Round][k]; tags != nil && !bytes.Equal(tags, a.Shown[i]) && !p.lose(p, p.peer(k)) {
				f.told[a.Round]++
				p.feed(HeldShown{Round: a.Round, By: k, Tags: tags})
			}
		}
	case FetchPayload:
		if own, ok := f.own[p][a.Round]; ok && own != a.Slice || a.Slices < 3 || a.Slices > 4 {
			p.t.Errorf("%s fetches slice %d of %d of round %d, and slice %d before", p.name, a.Slice, a.Slices, a.Round, own)
		}
		f.own[p][a.Round] = a.Slice
		of := testRange{a.Payload, a.Slice}
		ok := slices.ContainsFunc(append([]key.Public{a.Author}, a.From...), func(k key.Public) bool {
			q := p.peer(k)
			return (q.held[a.Payload] || f.ranges[q][of]) && f.serves(q, p) && !p.lose(p, q)
		})
		if ok {
			if f.ranges[p] == nil {
				f.ranges[p] = map[testRange]bool{}
			}
			f.ranges[p][of] = true
		}
		p.feed(PayloadFetched{Round: a.Round, Member: a.Member, ID: a.ID, OK: ok})
	case SumSlice:
		for _, payload := range a.Payloads {
			if !p.held[payload] && !f.ranges[p][testRange{payload, a.Slice}] {
				p.t.Errorf("%s: asked to sum a range that it does not hold", p.name)
			}
		}
		right := rightSlice(a)
		if f.summed[a.Round] == nil {
			f.summed[a.Round] = map[key.Public]Update{}
		}
		u, ok := f.names(p, a, right)
		if f.wrong[u.Root] = u != right; ok {
			f.summed[a.Round][self] = u
		}
		p.later(SliceSummed{Round: a.Round, Slice: a.Slice, Update: right})
	case Recount:
		f.recounts++
		ev := SliceSummed{Round: a.Round, Slice: a.Slice, Update: rightSlice(a.SumSlice)}
		for i, payload := range a.Payloads {
			if !slices.ContainsFunc(append(a.Holders, a.Authors[i]), func(k key.Public) bool {
				q := p.peer(k)
				return (q.held[payload] || f.ranges[q][testRange{payload, a.Slice}]) && f.serves(q, p)
			}) {
				ev.Update = Update{}
			}
		}
		p.later(ev)
	case AskSlices:
		for _, k := range a.To {
			if u, ok := f.summed[a.Round][k]; ok && !p.lose(p, p.peer(k)) {
				p.feed(SliceNamed{Round: a.Round, By: k, Update: u})
			}
		}
	case FetchSlice:
		p.feed(SliceFetched{Round: a.Round, Slice: a.Slice, OK: true})
	case MakeUpdate:
		var parts [][]byte
		u := Update{Bytes: testUpdateBytes}
		for _, s := range a.Slices {
			parts = append(parts, s[:])
		}
		if u.Root = wire.Sum("update", parts...); slices.ContainsFunc(a.Slices, func(s wire.Hash) bool { return f.wrong[s] }) {
			u.Root = wrongRoot
		}
		if p.follow.made[a.Round] == nil {
			p.follow.made[a.Round] = map[key.Public]Update{}
		}
		p.follow.made[a.Round][self], p.held[u.Root] = u, true
		p.later(UpdateMade{Round: a.Round, Root: u.Root})
	default:
		return false
	}
	return true
}

func rightSlice(a SumSlice) Update {
	parts := [][]byte{{byte(a.Slice), byte(a.Slices)}}
	for _, payload := range a.Payloads {
		parts = append(parts, payload[:])
	}
	return Update{wire.Sum("slice", parts...), testSliceBytes}
}

func TestQuorumsOfGroups(t *testing.T) {
	for n := 1; n < 300; n++ {
		sum, held := SliceQuorum(n), holders.Quorum(n)
		// Two slices of one group cannot both have a quorum. To fake and to deny takes half.
		if 2*sum <= n || sum > n || 2*held < n || 2*(n-held+1) < n {
			t.Errorf("of %d: %d name a slice, %d hold a range", n, sum, held)
		}
	}
}

func TestSlicesTakeNoWholePayloads(t *testing.T) {
	net := newSlices(t, 1)
	net.run(200_000, net.finished)
	everybodyAgrees(t, net)
	if got, want := net.state.PointsTotal(), uint64(12*2*24); got != want {
		t.Errorf("%d points, want %d", got, want)
	}
	for p, ranges := range net.follow.slices.ranges {
		if len(ranges) != 12*23 { // each of one slice: see sliced
			t.Errorf("%s has fetched %d ranges in 12 steps, want %d", p.name, len(ranges), 12*23)
		}
	}
}

func TestSlicesWithLossesAndCrashes(t *testing.T) {
	net := newSlices(t, 2)
	net.lose = func(from, to *peer) bool { return net.random.Uint64n(5) == 0 }
	net.run(60_000, func() bool { return net.state.Step() == 4 })
	for _, p := range net.peers[3:6] {
		p.crash()
	}
	net.run(100_000, func() bool { return net.state.Step() == 6 })
	for _, p := range net.peers[3:6] {
		p.start()
	}
	net.run(400_000, net.finished)
	everybodyAgrees(t, net)
}

// TestAggregatorsAreNotAskedForResultsThatDoNotCome has one member be silent for the rest of the
// run. The rounds without it last as long as they may.
func TestAggregatorsAreNotAskedForResultsThatDoNotCome(t *testing.T) {
	net := newSlices(t, 8)
	net.run(60_000, func() bool { return net.state.Step() == 3 })
	net.peers[3].crash()
	net.run(400_000, func() bool { return net.state.Step() == 6 })
	for round, n := range net.follow.slices.asked {
		if n > 5*24 {
			t.Errorf("5 witnesses ask %d times in round %d what one of 24 members holds", n, round)
		}
	}
}

// TestOnlyGroupsThatLackAResultAreAskedAgain has one member serve its results to witnesses only. Those
// of their groups get ranges from them, and groups without a witness none. Only these are asked until
// the round ends, and what is shown already is not shown again.
func TestOnlyGroupsThatLackAResultAreAskedAgain(t *testing.T) {
	net := newSlices(t, 9)
	author, f := net.peers[5], net.follow.slices
	f.serves = func(p, to *peer) bool {
		r, ok := to.state.At(to.state.Round())
		return p != author || ok && r.Elected(to.machine.member.index)
	}
	net.run(400_000, net.finished)
	everybodyAgrees(t, net)
	again := 0
	for round, n := range f.asked {
		if told := f.told[round]; told > 5*24 || n > 2*5*24 {
			t.Errorf("5 witnesses ask %d times in round %d what one of 24 members holds, and %d times get it", n, round, told)
		} else if n > told {
			again += n - told
		}
	}
	if again == 0 {
		t.Error("nobody is asked again: the test shows nothing")
	}
}

// TestAggregatorsThatLie has the first members of every group lie about each slice: as many as leave
// the others a quorum, one more, and as many as leave themselves none.
func TestAggregatorsThatLie(t *testing.T) {
	for _, more := range []int{0, 1, 2} {
		for name, lie := range map[string]func(a SumSlice, right Update) (Update, bool){
			"all the same": func(a SumSlice, _ Update) (Update, bool) {
				return Update{wire.Sum("wrong", wire.AppendU32(nil, uint32(a.Slice))), testSliceBytes}, true
			},
			"silent": func(SumSlice, Update) (Update, bool) { return Update{}, false },
		} {
			net := newSlices(t, 3)
			f := net.follow.slices
			lied := 0
			f.names = func(p *peer, a SumSlice, right Update) (Update, bool) {
				for _, rs := range p.machine.rounds {
					if rs.number != a.Round || a.Round%4 != 1 {
						continue
					}
					group := rs.sharing.groups[rs.sharing.own]
					if i := slices.Index(group, p.machine.member.index); i < min(len(group)-SliceQuorum(len(group))+more, SliceQuorum(len(group))-1) {
						lied++
						return lie(a, right)
					}
				}
				return right, true
			}
			net.run(200_000, func() bool {
				if agreed, round := net.state.Params(); net.follow.tainted[agreed] {
					t.Fatalf("%s: wrong parameters are agreed on for round %d", name, round)
				}
				return net.finished()
			})
			everybodyAgrees(t, net)
			if got, want := net.state.PointsTotal(), uint64(12*2*24); got != want {
				t.Errorf("%s, %d more: %d points, want %d", name, more, got, want)
			}
			if lied == 0 || (f.recounts > 0) != (more > 0) || len(net.follow.tainted) > 0 && slices.Contains(values(net.follow.tainted), true) {
				t.Errorf("%s, %d more: %d lies, %d recounts, tainted %v", name, more, lied, f.recounts, net.follow.tainted)
			}
		}
	}
}

func values[K comparable, V any](m map[K]V) (list []V) {
	for _, v := range m {
		list = append(list, v)
	}
	return list
}

// TestRangesThatAreKeptBack has one member serve its payloads to some of each group only.
func TestRangesThatAreKeptBack(t *testing.T) {
	for served := range 5 {
		net := newSlices(t, 4)
		author := net.peers[5]
		net.follow.slices.serves = func(p, to *peer) bool {
			if p != author {
				return true
			}
			rs := to.machine.find(to.state.Round() - 1)
			if rs == nil || rs.sharing == nil {
				return false
			}
			return slices.Index(rs.sharing.groups[rs.sharing.own], to.machine.member.index) < served
		}
		net.run(400_000, net.finished)
		everybodyAgrees(t, net)
		// Others of the group have the range from those that got it.
		i, _ := net.state.Find(author.key.Public())
		results := net.state.Member(i).Points
		if (served > 0) != (results > 0) {
			t.Errorf("served to %d of each group: %d points", served, results)
		}
	}
}

// TestAggregatorsThatDeny has as many of each group as cannot prevent it say that they hold nothing.
func TestAggregatorsThatDeny(t *testing.T) {
	net := newSlices(t, 5)
	f := net.follow.slices
	f.shows = func(p *peer, tags []byte) []byte {
		rs := p.machine.find(p.state.Round() - 1)
		group := rs.sharing.groups[rs.sharing.own]
		if slices.Index(group, p.machine.member.index) < len(group)-holders.Quorum(len(group)) {
			return make([]byte, len(tags))
		}
		return tags
	}
	net.run(200_000, net.finished)
	everybodyAgrees(t, net)
	if got, want := net.state.PointsTotal(), uint64(12*2*24); got != want {
		t.Errorf("%d points, want %d", got, want)
	}
}

// TestRangesThatOnlyAGangHas has an author serve all groups but one, in which two of six say that
// they hold its range.
func TestRangesThatOnlyAGangHas(t *testing.T) {
	net := newSlices(t, 7)
	author, f := net.peers[5], net.follow.slices
	hidden := func(p *peer) *results {
		rs := p.machine.find(p.state.Round() - 1)
		if rs == nil || rs.sharing == nil || rs.sharing.own != 0 {
			return nil
		}
		return rs
	}
	f.serves = func(p, to *peer) bool { return p != author || hidden(to) == nil }
	f.shows = func(p *peer, tags []byte) []byte {
		rs := hidden(p)
		if rs == nil || p == author || slices.Index(rs.sharing.groups[0], p.machine.member.index) > 1 {
			return tags
		}
		if i, ok := p.state.Find(author.key.Public()); ok {
			for _, c := range rs.known.Of(i) {
				tags[i] = holders.Tag(c.id, p.key.Public())
			}
		}
		return tags
	}
	net.run(400_000, net.finished)
	everybodyAgrees(t, net)
	i, _ := net.state.Find(author.key.Public())
	if m := net.state.Member(i); m.Points > 0 || net.state.Rollbacks() > 0 {
		t.Errorf("a result that others cannot have: %d points, %d rollbacks", m.Points, net.state.Rollbacks())
	}
}

// TestOneCommitmentForWitnessesAnotherForAggregators: what aggregators show is of the commitment
// whose range they hold.
func TestOneCommitmentForWitnessesAnotherForAggregators(t *testing.T) {
	net := newSlices(t, 6)
	author := net.peers[7]
	author.equivocate = true
	net.run(200_000, net.finished)
	i, _ := net.state.Find(author.key.Public())
	if m := net.state.Member(i); m.Status != coordinator.StatusEjected {
		t.Errorf("who commits twice is %v with %d points", m.Status, m.Points)
	}
	var agreed []string
	for _, p := range net.peers {
		if _, hash, ok := p.machine.Round(); ok && p != author && !slices.Contains(agreed, fmt.Sprint(hash)) {
			agreed = append(agreed, fmt.Sprint(hash))
		}
	}
	if len(agreed) != 1 {
		t.Errorf("members hold %v", agreed)
	}
}
