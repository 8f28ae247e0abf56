package client

import (
	"slices"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

// shelves is what a peer of a run of buckets has in its bucket, which outlives it.
type shelves struct {
	commitments map[wire.Hash]authored
	reveals     map[slice]bool
	reveal      func(Reveal) Revealed // instead of success
	revealed    []Reveal
	trained     []Train
	asked       []FetchPayload
	lists       func() [][]byte // what others say that they lack
	copied      []Copy
	lacks       map[coordinator.Round][]byte
	hides       func(from *peer) bool     // from whom what is in the bucket
	read, sent  map[coordinator.Round]int // lists, and copies that others found
}

// hidesFrom reports whether a peer gets nothing from the bucket.
func (s *shelves) hidesFrom(p *peer) bool { return s.hides != nil && s.hides(p) }

// slice is what a seed draws of a payload.
type slice struct{ payload, seed wire.Hash }

// byBuckets makes a run one of buckets, with windows of two seconds.
func byBuckets(c *coordinator.Config) {
	c.Exchange, c.WindowBlocks, c.Overlap, c.MissedMax = coordinator.Buckets, 40, 1, 20
}

func (net *network) buckets() bool { return net.state.Config().Exchange == coordinator.Buckets }

// bucket performs what is done in another way in a run of buckets, and says whether it was that.
func (p *peer) bucket(a Action) bool {
	if p.shelves.commitments == nil {
		p.shelves.commitments, p.shelves.reveals = map[wire.Hash]authored{}, map[slice]bool{}
		p.shelves.lacks, p.shelves.read, p.shelves.sent = map[coordinator.Round][]byte{}, map[coordinator.Round]int{}, map[coordinator.Round]int{}
	}
	switch a := a.(type) {
	case Commit:
		if last := p.signed().Commitment; last.Round == a.Commitment.Round && last != a.Commitment {
			p.t.Errorf("%s commits twice in round %d", p.name, a.Commitment.Round)
		}
		signed := a.Commitment.Sign(p.key)
		p.saved.Committed = []dispute.Signed{signed}
		p.shelves.commitments[a.Commitment.ID()] = authored{signed, p.key.Public()}
		p.perform(Submit{coordinator.Commit{Signed: signed}})
	case Republish:
		p.perform(Submit{coordinator.Commit{Signed: p.signed()}})
	case Reveal:
		p.shelves.revealed = append(p.shelves.revealed, a)
		out := Revealed{Round: a.Round, OK: true}
		if p.shelves.reveal != nil {
			out = p.shelves.reveal(a)
		}
		if out.OK {
			p.shelves.reveals[slice{a.Payload, a.Seed}] = true
			p.held[a.Payload] = true
		}
		p.feed(out)
	case AskCommitments:
		r, _ := p.state.At(a.Round)
		for _, i := range a.Of {
			id, ok := r.Committed(i)
			if !ok {
				p.t.Errorf("%s: asks for a commitment of round %d that the ledger does not have", p.name, a.Round)
				continue
			}
			if k, ok := p.peer(p.state.Key(i)).shelves.commitments[id]; ok && !p.peer(p.state.Key(i)).shelves.hidesFrom(p) {
				p.feed(CommitmentReceived{Signed: &k.signed, Signer: k.author, ID: k.signed.Commitment.ID()})
			}
		}
	case FetchPayload:
		p.shelves.asked = append(p.shelves.asked, a)
		from := &p.peer(p.state.Key(a.Member)).shelves
		ok := from.reveals[slice{a.Payload, a.Seed}] && !from.hidesFrom(p)
		p.held[a.Payload] = p.held[a.Payload] || ok
		p.feed(PayloadFetched{Round: a.Round, Member: a.Member, ID: a.ID, OK: ok})
	case Lack:
		p.shelves.lacks[a.Round] = a.Members
	case AskLacks:
		p.shelves.read[a.Round] += len(a.Of)
		var lists [][]byte
		if p.shelves.lists != nil {
			lists = p.shelves.lists()
		}
		for _, k := range a.Of {
			if list := p.peer(k).shelves.lacks[a.Round]; list != nil {
				lists = append(lists, list)
			}
		}
		if lists != nil {
			p.feed(Lacked{Round: a.Round, Lists: lists})
		}
	case Copy:
		p.shelves.copied = append(p.shelves.copied, a)
	case FindCopy:
		p.findCopy(a)
	case Train:
		p.shelves.trained = append(p.shelves.trained, a)
		return false
	default:
		return false
	}
	return true
}

// findCopy looks into others' buckets, and takes the first copy that is there.
func (p *peer) findCopy(a FindCopy) {
	for _, k := range a.From {
		from := p.peer(k)
		at := slices.IndexFunc(from.shelves.copied, func(c Copy) bool { return c.ID == a.ID && c.Seed == a.Seed })
		if at < 0 || from.shelves.hidesFrom(p) {
			continue
		}
		from.shelves.sent[a.Round]++
		p.held[from.shelves.copied[at].Payload] = true
		c := p.peer(p.state.Key(a.Member)).shelves.commitments[a.ID]
		p.feed(CommitmentReceived{Signed: &c.signed, Signer: c.author, ID: a.ID})
		p.feed(Found{Round: a.Round, Member: a.Member, ID: a.ID, OK: true})
		return
	}
	p.feed(Found{Round: a.Round, Member: a.Member, ID: a.ID})
}

func (p *peer) results() uint32 {
	i, ok := p.state.Find(p.key.Public())
	if !ok {
		return 0
	}
	return p.state.Member(i).Results
}

func TestWindowsGoOn(t *testing.T) {
	net := newNetwork(t, 4, 1, 8, 1, byBuckets)
	seeds := map[coordinator.Round]wire.Hash{}
	net.run(60_000, func() bool {
		for r := net.state.Round(); r > 0 && r+ringRounds > net.state.Round(); r-- {
			if round, ok := net.state.At(r); ok {
				if seed, ok := round.SliceSeed(); ok {
					seeds[r] = seed
				}
			}
		}
		return net.finished()
	})
	for _, p := range net.peers {
		if p.results() != 8 || len(p.shelves.revealed) != 8 || p.heals > 0 || len(p.notes) > 0 {
			t.Errorf("%s: %d results, %d revealed, %d healed, notes %q", p.name, p.results(), len(p.shelves.revealed), p.heals, p.notes)
		}
		for _, a := range p.shelves.revealed {
			if a.Seed != seeds[a.Round] || a.Seed.IsZero() {
				t.Errorf("%s reveals by seed %s in round %d instead of %s", p.name, a.Seed, a.Round, seeds[a.Round])
			}
		}
		for _, a := range p.shelves.asked {
			if a.Seed != seeds[a.Round] {
				t.Errorf("%s asks for the slice of seed %s in round %d instead of %s", p.name, a.Seed, a.Round, seeds[a.Round])
			}
		}
		for k, a := range p.shelves.trained {
			if k > 0 && p.shelves.trained[k-1].Round+1 == a.Round && a.Settle != seeds[a.Round-1] {
				t.Errorf("%s: before round %d it takes out the slice of %s instead of %s", p.name, a.Round, a.Settle, seeds[a.Round-1])
			}
		}
	}
}

// What the ledger did not take in time was not committed to: it is not revealed, nobody looks for it, and nothing is taken out for it.
func TestALateCommitmentIsNone(t *testing.T) {
	net := newNetwork(t, 4, 1, 8, 1, byBuckets)
	late := net.peers[3]
	var round coordinator.Round
	net.censor = func(m coordinator.Message) bool {
		c, ok := m.(coordinator.Commit)
		if !ok || c.Signed.Commitment.Round != 3 || !c.Signed.Verify(late.key.Public()) {
			return false
		}
		round = 3
		return true
	}
	net.run(60_000, net.finished)
	if round == 0 || late.results() != 7 {
		t.Fatalf("%d results", late.results())
	}
	for _, a := range late.shelves.revealed {
		if a.Round == round {
			t.Error("it was revealed")
		}
	}
	for _, a := range late.shelves.trained {
		if a.Round == round+1 && !a.Settle.IsZero() {
			t.Error("something was taken out that was not sent")
		}
	}
	for _, p := range net.peers[:3] {
		if p.results() != 8 {
			t.Errorf("%s: %d results", p.name, p.results())
		}
		for _, a := range p.shelves.asked {
			if p.state.Key(a.Member) == late.key.Public() && a.Round == round {
				t.Errorf("%s looks for what was not committed to", p.name)
			}
		}
	}
}

func TestRevealingIsTriedAgain(t *testing.T) {
	net := newNetwork(t, 3, 1, 6, 1, byBuckets)
	tries := 0
	net.peers[2].shelves.reveal = func(a Reveal) Revealed {
		if a.Round == 2 {
			tries++
			return Revealed{Round: a.Round, OK: tries == 3}
		}
		return Revealed{Round: a.Round, OK: true}
	}
	net.run(60_000, net.finished)
	if tries != 3 || net.peers[2].results() != 6 {
		t.Errorf("%d tries, %d results", tries, net.peers[2].results())
	}
}

func TestWhatIsLostIsNotRevealed(t *testing.T) {
	net := newNetwork(t, 3, 1, 6, 1, byBuckets)
	tries := 0
	net.peers[2].shelves.reveal = func(a Reveal) Revealed {
		if a.Round == 2 {
			tries++
			return Revealed{Round: a.Round, Lost: true}
		}
		return Revealed{Round: a.Round, OK: true}
	}
	net.run(60_000, net.finished)
	if tries != 1 || net.peers[2].results() != 5 || net.peers[0].results() != 6 {
		t.Errorf("%d tries, %d results, of another %d", tries, net.peers[2].results(), net.peers[0].results())
	}
}

// Who computes for longer than a window lasts gives up, says so, and still follows the others.
func TestATooSlowMemberGivesUp(t *testing.T) {
	net := newNetwork(t, 4, 1, 6, 1, byBuckets)
	slow := net.peers[3]
	slow.slow = 2500
	net.run(60_000, net.finished)
	if slow.results() != 0 || len(slow.commits) != 0 || !strings.Contains(strings.Join(slow.notes, " "), "too slow") {
		t.Errorf("%d results, notes %q", slow.results(), slow.notes)
	}
	if net.peers[0].results() != 6 {
		t.Errorf("%d results of another", net.peers[0].results())
	}
}

// A member that crashed after it had committed reveals that, and commits to nothing else.
func TestACrashInAWindowCostsNothingThatWasCommittedTo(t *testing.T) {
	net := newNetwork(t, 3, 1, 8, 1, byBuckets)
	p := net.peers[2]
	net.run(30_000, func() bool { return p.signed().Commitment.Round == 3 })
	p.crash()
	for range 10 {
		net.tick()
	}
	p.start()
	net.run(60_000, net.finished)
	if p.results() < 7 {
		t.Errorf("%d results", p.results())
	}
	found := false
	for _, a := range p.shelves.revealed {
		found = found || a.Round == 3
	}
	if !found {
		t.Error("it was not revealed")
	}
}

func TestStrangersCommitmentsDoNotCountInWindows(t *testing.T) {
	net := newNetwork(t, 3, 1, 4, 1, byBuckets)
	net.run(30_000, func() bool { return net.state.Step() == 2 })
	p := net.peers[0]
	c := net.peers[1].signed().Commitment
	c.Payload = wire.Sum("another")
	signed := c.Sign(net.peers[1].key)
	p.feed(CommitmentReceived{Signed: &signed, Signer: net.peers[1].key.Public(), ID: c.ID()})
	p.drain()
	for _, k := range p.machine.find(c.Round).known.Of(c.Member) {
		if k.commitment.Payload == c.Payload {
			t.Error("it is believed")
		}
	}
	net.run(60_000, net.finished)
	if p.results() != 4 {
		t.Errorf("%d results", p.results())
	}
}
