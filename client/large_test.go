package client

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/client/holders"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// crowd is a run of many members in its second round, which attests nothing but itself, with the
// checks of the first open. One machine takes part in it; the others are only what they send.
type crowd struct {
	tb      testing.TB
	keys    []key.Public
	state   coordinator.State
	env     coordinator.Env
	initial wire.Hash
}

func newCrowd(tb testing.TB, n uint32, percent uint8) *crowd {
	tb.Helper()
	return newCrowdOf(tb, n, percent, 0)
}

func newCrowdOf(tb testing.TB, n uint32, percent, overlap uint8) *crowd {
	tb.Helper()
	cfg := testConfig(n, overlap, 1000)
	cfg.VerificationPercent = percent
	if percent > 0 {
		cfg.VerifyMs, cfg.DisputeMs = 600_000, 300_000
	}
	c := &crowd{tb: tb, initial: cfg.ModelHash, env: coordinator.Env{NowMs: 1000, Seed: wire.Sum("test/crowd")}}
	limits := coordinator.Limits{Members: n, Witnesses: uint16(min(n, coordinator.WitnessesMax))}
	state, err := coordinator.New(limits, cfg, c.env)
	if err != nil {
		tb.Fatalf("%v: %v", err, cfg.Check(limits))
	}
	c.state = state
	for i := range n {
		var k key.Public
		copy(k[:], wire.AppendU32(nil, i+1))
		c.keys = append(c.keys, k)
		c.send(k, coordinator.Join{})
	}
	c.tick(500)
	for _, k := range c.keys {
		c.send(k, coordinator.Ready{Epoch: 1, Params: cfg.ModelHash})
	}
	c.tick(0)
	if c.state.Phase() != coordinator.RoundTrain {
		tb.Fatalf("the phase is %s", c.state.Phase())
	}
	return c
}

func (c *crowd) send(from key.Public, m coordinator.Message) {
	c.tb.Helper()
	c.env.Sender = from
	if err := c.state.Apply(c.env, m); err != nil {
		c.tb.Fatalf("%T: %v", m, err)
	}
}

func (c *crowd) tick(ms uint64) {
	c.env.NowMs += ms
	c.send(key.Public{}, coordinator.Tick{})
}

func (c *crowd) snapshot() StateChanged {
	s, err := coordinator.Open(append([]byte(nil), c.state.Bytes()...))
	if err != nil {
		c.tb.Fatal(err)
	}
	return StateChanged{State: s, TimeMs: c.env.NowMs}
}

// commitments returns what each member commits to in the open round, by member.
func (c *crowd) commitments(params wire.Hash) []dispute.Commitment {
	return c.commitmentsOf(c.state.Round(), params)
}

func (c *crowd) commitmentsOf(round coordinator.Round, params wire.Hash) []dispute.Commitment {
	r, _ := c.state.At(round)
	list := make([]dispute.Commitment, len(c.keys))
	r.Shares(func(i coordinator.Member, spans []batch.Span) {
		of := func(what string) wire.Hash {
			return wire.Sum(what, c.keys[i][:], wire.AppendU32(nil, uint32(r.Number())))
		}
		list[i] = dispute.Commitment{Run: c.state.ID(), Epoch: r.Epoch(), Round: r.Number(), Member: i, Share: batch.Hash(spans),
			Payload: of("payload"), PayloadBytes: 100, Prev: testFresh, State: of("state"), Params: params}
	})
	return list
}

// close sends the reports of all witnesses that have not reported, which hold everything.
func (c *crowd) close(params, prev wire.Hash, list []dispute.Commitment) {
	c.tb.Helper()
	r, _ := c.state.At(c.state.Round())
	number, witnesses, p := r.Number(), r.Witnesses(), r.Filter()
	var held []byte
	for i := range list {
		held = coordinator.SetHeld(held, coordinator.Member(i))
	}
	for _, i := range witnesses {
		if r, _ := c.state.At(number); r.Reported(i) {
			continue
		}
		filter := bloom.New(p)
		for k := range list {
			filter.Add(p, c.keys[i][:], list[k].ID())
		}
		c.send(c.keys[i], coordinator.Witness{Round: number, Complete: true, Params: params, Prev: prev, Held: held, Commitments: filter})
	}
}

// attendance is a member's machine in the crowd, and the time it has taken.
type attendance struct {
	*crowd
	machine *Machine
	self    coordinator.Member
	params  wire.Hash
	list    []dispute.Commitment // of the open round
	late    map[coordinator.Member]bool
	waiting []FetchPayload // of late payloads
	spent   time.Duration
	weighs  bool   // count
	bytes   uint64 // that the machine allocates
	events  int
	applied int
}

func (c *crowd) attend(self coordinator.Member) *attendance {
	a := &attendance{crowd: c, self: self, params: c.initial, machine: New(Config{Self: c.keys[self], PayloadMax: 1000})}
	a.list = c.commitments(a.params)
	a.step(c.snapshot())
	a.step(Loaded{Known: true, Params: c.initial})
	return a
}

// step gives the machine an event, and it all that follows from it.
func (a *attendance) step(ev Event) {
	for queue := []Event{ev}; len(queue) > 0; queue = queue[1:] {
		var before, after runtime.MemStats
		if a.weighs {
			runtime.ReadMemStats(&before)
		}
		start := cpuTime()
		actions := a.machine.Step(a.env.NowMs, queue[0])
		a.spent += cpuTime() - start
		if a.weighs {
			runtime.ReadMemStats(&after)
			a.bytes += after.TotalAlloc - before.TotalAlloc
		}
		a.events++
		for _, do := range actions {
			switch do := do.(type) {
			case Train:
				own := a.list[a.self]
				queue = append(queue, Trained{Round: do.Round, Payload: own.Payload, PayloadBytes: 100, Prev: do.Prev, State: own.State})
			case Commit:
				a.list[a.self] = do.Commitment
			case FetchPayload:
				if a.late[do.Member] {
					a.waiting = append(a.waiting, do)
					continue
				}
				queue = append(queue, PayloadFetched{Round: do.Round, Member: do.Member, ID: do.ID, OK: true})
			case Apply:
				a.applied++
				a.params = wire.Sum("params", a.params[:], wire.AppendU32(nil, uint32(do.To)))
				queue = append(queue, Applied{To: do.To, Params: a.params, OK: true})
			case Submit:
				if m, ok := do.Message.(coordinator.Witness); ok {
					a.send(a.keys[a.self], m)
				}
				queue = append(queue, Submitted{Message: do.Message})
			}
		}
	}
}

// arrivalMs is the time in which the commitments of a round come, however many there are.
const arrivalMs = 10_000

// round takes the machine through a round: all commitments come, evenly spread, with ticks between
// them; then the round closes; then come the payloads of one member in a hundred, which are late.
func (a *attendance) round() {
	prev := a.params
	if round := a.state.Round(); round > 1 {
		prev = a.previous()
	}
	now := a.params
	a.late = map[coordinator.Member]bool{}
	for i := range a.list {
		if i%100 == 99 && coordinator.Member(i) != a.self {
			a.late[coordinator.Member(i)] = true
		}
	}
	began, tick := a.env.NowMs, a.env.NowMs
	for i, c := range a.list {
		a.env.NowMs = began + arrivalMs*uint64(i+1)/uint64(len(a.list))
		for ; tick <= a.env.NowMs; tick += 200 {
			a.step(Tick{})
		}
		if coordinator.Member(i) != a.self {
			a.step(CommitmentReceived{Signed: &dispute.Signed{Commitment: c}, Signer: a.keys[i], ID: c.ID()})
		}
	}
	a.close(now, prev, a.list)
	a.step(a.snapshot())
	waiting := a.waiting
	a.waiting, a.late = nil, nil
	for _, f := range waiting {
		a.step(PayloadFetched{Round: f.Round, Member: f.Member, ID: f.ID, OK: true})
	}
	a.list = a.commitments(a.params)
}

func (a *attendance) previous() wire.Hash {
	h, _ := a.machine.model.at(a.state.Round() - 1)
	return h
}

// BenchmarkMember is what the decisions of one member cost in a round, by the number of members. The
// exponent is the slope of the logarithm of the cost over that of the members, from the size before.
// A round is repeated until it has taken measured in all: some kernels count the time of a thread in
// units of 10 ms.
func BenchmarkMember(b *testing.B) {
	for _, percent := range []uint8{0, 10} {
		for _, role := range []string{"member", "witness"} {
			before, members := 0.0, 0.0
			for _, n := range []uint32{64, 256, 1024, 4096, coordinator.MembersMax} {
				b.Run(fmt.Sprintf("checks=%d%%/%s/members=%d", percent, role, n), func(b *testing.B) {
					var spent time.Duration
					rounds := 0
					for rounds < b.N || spent < measured && rounds < b.N*1000 {
						spent += attended(b, n, percent, role == "witness")
						rounds++
					}
					cost := spent.Seconds() / float64(rounds)
					b.ReportMetric(cost*1e3, "ms/round")
					b.ReportMetric(0, "ns/op")
					if before > 0 {
						b.ReportMetric(math.Log(cost/before)/math.Log(float64(n)/members), "exponent")
					}
					before, members = cost, float64(n)
				})
			}
		}
	}
}

const measured = 500 * time.Millisecond

// attended returns the time that a member's machine takes for the second round of a run.
func attended(tb testing.TB, n uint32, percent uint8, witness bool) time.Duration {
	runtime.LockOSThread() // for cpuTime
	defer runtime.UnlockOSThread()
	c := newCrowd(tb, n, percent)
	r, _ := c.state.At(1)
	self := coordinator.Member(0)
	for r.Elected(self) != witness {
		self++
	}
	a := c.attend(self)
	a.round()
	if a.applied != 1 {
		tb.Fatalf("%d sets were applied, want 1", a.applied)
	}
	return a.spent
}

// Members that serve nothing hold up neither the fetches from others nor, with them, the round.
func TestSilentMembersHoldUpNoFetches(t *testing.T) {
	a := newCrowd(t, 128, 0).attend(0)
	a.late = map[coordinator.Member]bool{}
	for i := range coordinator.Member(fetchesMax + 4) {
		a.late[i+1] = true
	}
	for i, c := range a.list[1:] {
		a.step(CommitmentReceived{Signed: &dispute.Signed{Commitment: c}, Signer: a.keys[i+1], ID: c.ID()})
	}
	held := func() (n int) {
		a.machine.find(1).known.Each(func(list []candidate) {
			for _, c := range list {
				if c.held {
					n++
				}
				if len(a.late) > 0 && c.fetching != nil && !a.late[c.commitment.Member] {
					t.Errorf("the payload of member %d is still being fetched", c.commitment.Member)
				}
			}
		})
		return n
	}
	if n := held(); n > 64 {
		t.Fatalf("%d payloads are held while %d fetches hang: the test shows nothing", n, fetchesMax)
	}
	a.env.NowMs += slowMs
	a.step(Tick{})
	if n, want := held(), 128-len(a.late); n != want {
		t.Errorf("%d payloads are held, want %d", n, want)
	}
	for _, f := range a.waiting {
		if len(f.From) > fromMax {
			t.Errorf("a fetch names %d peers beside the author", len(f.From))
		}
	}
}

// counting counts what a machine asks about members and their results.
type counting struct {
	exchange
	Alone
	asked *int
}

func (c counting) admits(o *dispute.Commitment, id wire.Hash) bool {
	*c.asked++
	return c.exchange.admits(o, id)
}

func (c counting) awaited(r coordinator.RoundState, i coordinator.Member) bool {
	*c.asked++
	return c.exchange.awaited(r, i)
}

func (c counting) continues(step coordinator.Step, o *dispute.Commitment) bool {
	*c.asked++
	return c.exchange.continues(step, o)
}

func (c counting) Select(s coordinator.State, a coordinator.Round, i coordinator.Member, ids []wire.Hash) (int, bool) {
	*c.asked++
	return c.Alone.Select(s, a, i, ids)
}

// workOf is what a member's machine does in a round, whatever the processor: its questions about
// members and their results, and the bytes that it allocates, with those of the test.
func workOf(t *testing.T, n uint32, percent uint8, witness bool) (asked int, bytes uint64) {
	c := newCrowd(t, n, percent)
	r, _ := c.state.At(1)
	self := coordinator.Member(0)
	for r.Elected(self) != witness {
		self++
	}
	a := c.attend(self)
	count := counting{exchange: a.machine.exchange, asked: &asked}
	a.machine.exchange, a.machine.cfg.Common = count, count
	a.weighs = true
	a.round()
	held := 0
	a.machine.find(1).known.Each(func(list []candidate) { held += min(len(list), 1) })
	if held != int(n) || a.applied != 1 {
		t.Fatalf("of %d members %d are known, and %d sets were applied: the test shows nothing", n, held, a.applied)
	}
	return asked, a.bytes
}

// What a member does for a round grows with the members, not with their square: four times as many
// make at most 4^1.1 times the work.
func TestWorkGrowsWithTheMembers(t *testing.T) {
	const few = 256
	for _, c := range []struct {
		percent uint8
		witness bool
	}{{0, false}, {0, true}, {10, false}} {
		asked, bytes := workOf(t, few, c.percent, c.witness)
		askedMore, bytesMore := workOf(t, 4*few, c.percent, c.witness)
		if most := math.Pow(4, 1.1); float64(askedMore) > most*float64(asked) || float64(bytesMore) > most*float64(bytes) {
			t.Errorf("%+v: %d questions and %d bytes with %d members, %d and %d with %d", c, asked, bytes, few, askedMore, bytesMore, 4*few)
		}
		t.Logf("%+v: a member's part is %d questions and %d bytes, with four times the members %d and %d",
			c, asked/few, bytes/few, askedMore/(4*few), bytesMore/(4*few))
	}
}

// sharedWork is what a member's machine does for the results of a round of slices, whatever the
// processor: the events that it takes, and the bytes that it allocates, with those of the test.
type sharedWork struct{ events, bytes uint64 }

// sharedWorkOf takes a machine through the round that attests the results of the first, in groups of
// 16: it fetches its range of each, and a witness asks all others what they hold, and reports it.
func sharedWorkOf(t *testing.T, n uint32, witness bool) (w sharedWork) {
	c := newCrowdOf(t, n, 0, 1)
	c.close(c.initial, c.initial, nil)
	first := c.commitmentsOf(1, c.initial)
	r, _ := c.state.At(2)
	self := coordinator.Member(0)
	for r.Elected(self) != witness {
		self++
	}
	m := New(Config{Self: c.keys[self], PayloadMax: 100, Update: 10, UpdateMax: 20, Aggregators: 16, SlicesMax: n})
	queue := []Event{c.snapshot(), Loaded{Known: true, Params: c.initial}}
	ids := make([]wire.Hash, n)
	for i := range first {
		ids[i] = first[i].ID()
		queue = append(queue, CommitmentReceived{Signed: &dispute.Signed{Commitment: first[i]}, Signer: c.keys[i], ID: ids[i]})
	}
	tags := func(k key.Public) (list []byte) {
		for _, id := range ids {
			list = append(list, holders.Tag(id, k))
		}
		return list
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	ranges, asked, held := uint32(0), uint32(0), 0
	for range 20 {
		for ; len(queue) > 0; queue = queue[1:] {
			w.events++
			for _, do := range m.Step(c.env.NowMs, queue[0]) {
				switch do := do.(type) {
				case FetchPayload:
					ranges++
					queue = append(queue, PayloadFetched{Round: do.Round, Member: do.Member, ID: do.ID, OK: true})
				case AskHeld:
					for _, k := range do.To {
						asked++
						queue = append(queue, HeldShown{Round: do.Round, By: k, Tags: tags(k)})
					}
				}
			}
		}
		c.env.NowMs += 200
		queue = append(queue, Tick{})
	}
	runtime.ReadMemStats(&after)
	w.bytes = after.TotalAlloc - before.TotalAlloc
	rs := m.find(1)
	for i := range rs.members {
		if m.best(rs, i, true) != nil {
			held++
		}
	}
	if others := n - uint32(len(rs.sharing.groups[rs.sharing.own])); ranges != n || witness && (asked != others || held != int(n)) || !witness && asked+uint32(held) != 0 {
		t.Errorf("of %d results %d ranges were fetched and %d are held by all, of %d others %d were asked", n, ranges, held, others, asked)
	}
	return w
}

// What an aggregator does for a round grows with the members: four times as many make at most 4^1.1
// times the work. A witness's events grow too, because each has a byte for every member.
func TestSharedWorkGrowsWithTheMembers(t *testing.T) {
	const few = 256
	for _, witness := range []bool{false, true} {
		w, more := sharedWorkOf(t, few, witness), sharedWorkOf(t, 4*few, witness)
		if most := math.Pow(4, 1.1); float64(more.events) > most*float64(w.events) || !witness && float64(more.bytes) > most*float64(w.bytes) {
			t.Errorf("witness %v: %+v with %d members, %+v with %d", witness, w, few, more, 4*few)
		}
		t.Logf("witness %v: a member's part is %.1f events and %d bytes, with four times the members %.1f and %d",
			witness, float64(w.events)/few, w.bytes/few, float64(more.events)/(4*few), more.bytes/(4*few))
	}
}
