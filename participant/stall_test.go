package participant

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/entrain-network/entrain/batch"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// stalling is a run by buckets, the first of whose members have buckets that never answer. It is
// its own chain, and the buckets of the others.
type stalling struct {
	ledger.Chain
	bucket.Store
	state   coordinator.State
	peers   []host.Peer
	objects map[string][]byte
}

func (s *stalling) Peers(_ context.Context, _ string, done func([]host.Peer, error)) {
	done(s.peers, nil)
}

func (s *stalling) Get(ctx context.Context, path string, _, _ int64) ([]byte, bucket.Object, error) {
	b, ok := s.objects[path]
	if !ok {
		<-ctx.Done()
	}
	if ctx.Err() != nil {
		return nil, bucket.Object{}, ctx.Err()
	}
	return b, bucket.Object{Key: path, Bytes: int64(len(b))}, nil
}

func (s *stalling) open(bucket.Location) (bucket.Store, error) { return s, nil }

func newStalling(t *testing.T, stalled, members int) *stalling {
	t.Helper()
	n := uint32(members)
	config := coordinator.Config{
		Name: "r", MinMembers: n, StartMembers: n, WarmupMs: 1000, RoundTrainMs: 1000, RoundWitnessMs: 1000, CooldownMs: 1000, EpochMs: 60_000, TotalSteps: 9,
		BatchStart: n, BatchEnd: n, SequenceTokens: 1, MissedMax: 1, ModelHash: wire.Sum("m"), SpecHash: wire.Sum("s"), Owner: key.Public{1},
		Exchange: coordinator.Buckets, WindowBlocks: 100, Overlap: 1,
	}
	state, err := coordinator.New(coordinator.Limits{Members: n, Witnesses: 2, Buckets: true}, config, coordinator.Env{NowMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	s := &stalling{state: state, objects: map[string][]byte{}}
	keys := make([]key.Private, members)
	apply := func(m func(i int) coordinator.Message) {
		for i, k := range keys {
			if err := state.Apply(coordinator.Env{NowMs: 2, Height: 2, Sender: k.Public()}, m(i)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range keys {
		keys[i] = key.FromSeed([32]byte{1, byte(i)})
		at := fmt.Sprintf("s3://key:secret@host.example:9000/bucket-%d", i)
		s.peers = append(s.peers, host.Peer{Key: keys[i].Public(), Addrs: []string{at}})
	}
	apply(func(int) coordinator.Message { return coordinator.Join{} })
	apply(func(int) coordinator.Message { return coordinator.Ready{Epoch: 1, Params: config.ModelHash} })
	r, _ := state.At(1)
	apply(func(i int) coordinator.Message {
		member := coordinator.Member(i)
		signed := dispute.Commitment{Run: state.ID(), Epoch: 1, Round: 1, Member: member, Share: batch.Hash(r.Share(member))}.Sign(keys[i])
		if i >= stalled {
			name := bucket.Name{Run: state.ID(), Window: 1, Kind: bucket.KindCommitment, Member: keys[i].Public(), Content: signed.Commitment.ID()}
			s.objects[name.Path()] = bucket.Seal(keys[i], name, signed.Append(nil))
		}
		return coordinator.Commit{Signed: signed}
	})
	return s
}

// Members whose buckets do not answer have nobody miss the losses of the others.
func TestAnEarHearsOthersThanThoseThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stalled, members = 20, 60
		s := newStalling(t, stalled, members)
		heard := map[coordinator.Member]bool{}
		e := NewEar(s, "r", func(ev event.Committed) { heard[ev.Member] = true })
		e.Observe(ledger.Snapshot{State: s.state})
		for range 20 {
			e.read(t.Context(), s.state, bucket.NewReader(s.open, bucket.Options{}))
		}
		if len(heard) != members-stalled {
			t.Errorf("heard %d of %d losses", len(heard), members-stalled)
		}
	})
}

// An auditor gives buckets that do not answer a moment, and the same one: those of a gang must not
// keep it from the others until these have deleted what it needs.
func TestAGuestLeavesBucketsThatStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const stalled, members = 60, 180
		s := newStalling(t, stalled, members)
		g := &BucketGuest{client: s, run: "r", reader: bucket.NewReader(s.open, bucket.Options{})}
		r, _ := s.state.At(1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var all []coordinator.Member
		for i := range coordinator.Member(members) {
			all = append(all, i)
		}
		began, found, missed := time.Now(), 0, 0
		g.Commitments(ctx, s.state, r, all, func(m coordinator.Member, c dispute.Signed, err error) {
			switch {
			case m < stalled && err != nil:
				missed++
			case err == nil && c.Commitment.Member == m:
				found++
			}
		})
		if missed != stalled || found != members-stalled || time.Since(began) > readFor {
			t.Errorf("%d of %d commitments found, %d missed, after %v", found, members-stalled, missed, time.Since(began))
		}
	})
}
