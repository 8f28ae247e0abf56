package comet

import (
	"fmt"
	"testing"

	"github.com/entrain-network/entrain/bloom"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// TestAWatcherFollowsARoundOfALargeRun plays a whole round of 256 members and 32 witnesses, and
// measures what a client receives. A client must not be sent the whole state (some 100 KB) at every
// report.
func TestAWatcherFollowsARoundOfALargeRun(t *testing.T) {
	const members = 256
	w := newWorld(t, members)
	p := new(replica)
	names := map[key.Public]string{}
	each := func(m func(name string) coordinator.Message) (txs [][]byte) {
		for i := range members {
			name := fmt.Sprint("member ", i)
			names[privateKey(name).Public()] = name
			txs = append(txs, w.tx(name, host.RunMessage{Run: "demo", Message: coordinator.Append(nil, m(name))}))
		}
		return txs
	}
	plain := 0
	follow := func() int {
		plain += len(w.frame(p.height))
		return w.follow(p)
	}
	w.block(each(func(string) coordinator.Message { return coordinator.Join{} })...)
	first := follow()
	params, _ := w.state().Params()
	w.block(each(func(string) coordinator.Message {
		return coordinator.Ready{Epoch: w.state().Epoch(), Params: params}
	})...)
	ready := follow()

	s := w.state()
	r, ok := s.At(s.Round())
	if !ok || s.Phase() != coordinator.RoundTrain {
		t.Fatalf("phase %v, round %d, want RoundTrain", s.Phase(), s.Round())
	}
	var held []byte
	var ids []wire.Hash
	for i := range s.Count() {
		if r.Expected(i) {
			held = coordinator.SetHeld(held, i)
			ids = append(ids, wire.Sum("entrain/test/commitment", wire.AppendU32(nil, uint32(i))))
		}
	}
	reports, report, largest := 0, 0, 0
	plain = 0
	for _, member := range r.Witnesses() {
		if s := w.state(); s.Round() != r.Number() || s.Phase() != coordinator.RoundTrain {
			break // a quorum holds everything
		}
		who := s.Key(member)
		filter := bloom.New(r.Filter())
		for _, id := range ids {
			filter.Add(r.Filter(), who[:], id)
		}
		tx := w.tx(names[who], host.RunMessage{Run: "demo", Message: coordinator.Append(nil, coordinator.Witness{
			Round: r.Number(), Complete: true, Held: held, Commitments: filter, Params: params, Prev: params,
		})})
		w.block(tx)
		n := follow()
		reports, report, largest = reports+1, report+n, max(largest, n)
	}
	if s := w.state(); s.Phase() == coordinator.RoundTrain && s.Round() == r.Number() {
		t.Fatalf("after %d complete reports the round goes on", reports)
	}
	t.Logf("%d members: state %d bytes; first frame %d; all ready %d; report %d on average, at most %d, %d of them in a round, in %d bytes, and %d if they were not packed",
		members, len(p.state), first, ready, report/reports, largest, reports, report, plain)
	if report/reports*10 > len(p.state) {
		t.Errorf("a report is sent in %d bytes on average, the whole state has %d", report/reports, len(p.state))
	}
}

// follow takes p to the present state and returns the length of the frame it took.
func (w *world) follow(p *replica) int {
	w.t.Helper()
	frame := w.packed(p.height)
	if frame == nil {
		return 0
	}
	if _, err := p.apply(frame[4:]); err != nil {
		w.t.Fatal(err)
	}
	return len(frame)
}
