package headers

import (
	"errors"
	"testing"
	"time"

	"github.com/cometbft/cometbft/crypto/tmhash"
	cmtproto "github.com/cometbft/cometbft/proto/tendermint/types"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/wire"
)

// replicaSet is replicas that sign
type replicaSet struct {
	keys []cmttypes.PrivValidator
	set  *cmttypes.ValidatorSet
}

func newReplicaSet(n int) (s replicaSet) {
	s.set, s.keys = cmttypes.RandValidatorSet(n, 10)
	return s
}

// header returns a header with their signatures.
func (s replicaSet) header(t *testing.T, height int64, at time.Time) []byte {
	t.Helper()
	some := func(what string) []byte { h := wire.Sum(what, wire.AppendU64(nil, uint64(height))); return h[:] }
	h := &cmttypes.Header{
		ChainID: "test-chain", Height: height, Time: at.UTC(), LastCommitHash: some("last"), DataHash: some("data"), ValidatorsHash: s.set.Hash(),
		NextValidatorsHash: s.set.Hash(), ConsensusHash: some("rules"), AppHash: some("state"), LastResultsHash: some("results"),
		EvidenceHash: some("evidence"), ProposerAddress: s.set.Validators[0].Address,
		LastBlockID: cmttypes.BlockID{Hash: some("block"), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: tmhash.Sum(nil)}},
	}
	h.Version.Block = 11
	id := cmttypes.BlockID{Hash: h.Hash(), PartSetHeader: cmttypes.PartSetHeader{Total: 1, Hash: tmhash.Sum(nil)}}
	votes := cmttypes.NewVoteSet("test-chain", height, 0, cmtproto.PrecommitType, s.set)
	commit, err := cmttypes.MakeExtCommit(id, height, 0, votes, s.keys, at, false)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Encode(&cmttypes.LightBlock{SignedHeader: &cmttypes.SignedHeader{Header: h, Commit: commit.ToCommit()}, ValidatorSet: s.set})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A client believes a header from before all that it knows if the same replicas have signed it not
// long before the newest one. Older ones would let a replica undo what a client remembers, step by
// step if each could be a little older than the one before.
func TestEarlierHeaders(t *testing.T) {
	ours, others := newReplicaSet(4), newReplicaSet(4)
	now := time.Now()
	at := func(s replicaSet, ago time.Duration) []byte {
		return s.header(t, 1000-int64(ago/time.Second), now.Add(-ago))
	}
	tr := New("test-chain")
	learn := func(b []byte) error { return tr.Learn(b, now) }
	if err := learn(at(ours, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	for ago, ok := range map[time.Duration]bool{
		time.Minute: true, earlierMax: true, earlierMax + 11*time.Second: false,
	} {
		if err := learn(at(ours, ago)); (err == nil) != ok || !ok && !errors.Is(err, ErrLied) {
			t.Errorf("of %v ago: %v", ago, err)
		}
	}
	if err := learn(at(others, 2*time.Minute)); !errors.Is(err, ErrLied) {
		t.Errorf("of other replicas: %v", err)
	}
	newest := tr.Newest()
	for ago := 11 * time.Second; ago <= earlierMax; ago += 5 * time.Second {
		if err := learn(at(ours, ago)); err != nil {
			t.Fatalf("of %v ago: %v", ago, err)
		}
	}
	if len(tr.known) > keptMax || tr.Newest() != newest {
		t.Errorf("%d headers up to %d are known, want at most %d up to %d", len(tr.known), tr.Newest(), keptMax, newest)
	}
	if err := learn(at(ours, earlierMax+11*time.Second)); !errors.Is(err, ErrLied) {
		t.Errorf("older than allowed, after others: %v", err)
	}
}
