package comet

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	abci "github.com/cometbft/cometbft/abci/types"
	cmted25519 "github.com/cometbft/cometbft/crypto/ed25519"
	cmttypes "github.com/cometbft/cometbft/types"

	"github.com/entrain-network/entrain/chance"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// beacon is a block's first transaction. It holds the proposer's time and random value for this
// block. The proposer can publish or withhold that value, but not choose it.
//
//	beacon = U64 time | 80 proof
type beacon struct {
	timeMs uint64
	proof  chance.Proof
}

const beaconBytes = 8 + chance.ProofBytes

// clockAhead is the most that a proposer's clock may be ahead of another replica's before that
// replica refuses the block.
const clockAhead = 2 * time.Second

func (b beacon) append(dst []byte) []byte {
	return append(wire.AppendU64(dst, b.timeMs), b.proof[:]...)
}

// readBeacon reads the beacon of a block.
func readBeacon(txs [][]byte) (b beacon, ok bool) {
	if len(txs) == 0 || len(txs[0]) != beaconBytes {
		return b, false
	}
	r := wire.NewReader(txs[0])
	b.timeMs = r.U64()
	copy(b.proof[:], r.Bytes(chance.ProofBytes))
	return b, r.Done() == wire.OK
}

// question returns the input of the proposer's random function for a block. It depends on the
// values of all blocks before.
func question(seed wire.Hash, height uint64) wire.Hash {
	return wire.Sum("entrain/ledger/comet/question", seed[:], wire.AppendU64(nil, height))
}

// nextSeed returns a block's seed.
func nextSeed(before, value wire.Hash) wire.Hash {
	return wire.Sum("entrain/ledger/comet/seed", before[:], value[:])
}

// address returns CometBFT's address of a replica.
func address(k key.Public) string { return string(cmted25519.PubKey(k[:]).Address()) }

// replicaAt returns the replica with an address, whether or not it has a seat.
func replicaAt(list []host.Replica, addr []byte) (host.Replica, bool) {
	for _, r := range list {
		if address(r.Key) == string(addr) {
			return r, true
		}
	}
	return host.Replica{}, false
}

// value checks a beacon by the proposer's key in the ledger's state, which was there before the
// proposer had a seat.
func (a *app) value(b beacon, height uint64, proposer []byte) (wire.Hash, error) {
	r, ok := replicaAt(a.host.Replicas(), proposer)
	if !ok {
		return wire.Hash{}, fmt.Errorf("block %d is proposed by %X, which is not a replica", height, proposer)
	}
	return chance.Verify(r.Chance, question(a.host.Seed(), height), b.proof)
}

// PrepareProposal puts the beacon before as many transactions as fit.
func (a *app) PrepareProposal(_ context.Context, req *abci.RequestPrepareProposal) (*abci.ResponsePrepareProposal, error) {
	a.hostMu.RLock()
	defer a.hostMu.RUnlock()
	_, proof, err := a.secret.Prove(question(a.host.Seed(), uint64(req.Height)))
	if err != nil {
		return nil, err
	}
	b := beacon{timeMs: uint64(max(time.Now().UnixMilli(), req.Time.UnixMilli())), proof: proof}
	txs := [][]byte{b.append(nil)}
	room := req.MaxTxBytes - size(txs[0])
	for _, tx := range req.Txs {
		if isWake(tx) {
			continue
		}
		if room -= size(tx); room < 0 {
			break
		}
		txs = append(txs, tx)
	}
	return &abci.ResponsePrepareProposal{Txs: txs}, nil
}

// size returns the size of a transaction in a block.
func size(tx []byte) int64 { return cmttypes.ComputeProtoSizeForTxs([]cmttypes.Tx{tx}) }

// ProcessProposal refuses a block that no honest proposer makes: one with a wrong random value,
// from the future, or with transactions that CheckTx always refuses. Checks that depend on the
// state are left to FinalizeBlock. A block is not refused for being old, because replicas that have
// voted for it may have been stopped for long.
func (a *app) ProcessProposal(_ context.Context, req *abci.RequestProcessProposal) (*abci.ResponseProcessProposal, error) {
	a.hostMu.RLock()
	defer a.hostMu.RUnlock()
	reject := &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_REJECT}
	b, ok := readBeacon(req.Txs)
	if !ok || b.timeMs > uint64(time.Now().Add(clockAhead).UnixMilli()) {
		return reject, nil
	}
	if _, err := a.value(b, uint64(req.Height), req.ProposerAddress); err != nil {
		return reject, nil
	}
	for _, tx := range req.Txs[1:] {
		if _, err := a.parse(tx); err != nil {
			return reject, nil
		}
	}
	return &abci.ResponseProcessProposal{Status: abci.ResponseProcessProposal_ACCEPT}, nil
}

// begin opens a block of the ledger. Two thirds of the replicas have checked the beacon before.
func (a *app) begin(req *abci.RequestFinalizeBlock) {
	height := uint64(req.Height)
	block := host.Block{Height: height, TimeMs: uint64(max(0, req.Time.UnixMilli()))}
	b, ok := readBeacon(req.Txs)
	var value wire.Hash
	err := chance.ErrProof
	if ok {
		value, err = a.value(b, height, req.ProposerAddress)
	}
	if err != nil {
		panic(fmt.Sprintf("comet: block %d was decided with a wrong beacon: %v", height, err))
	}
	block.TimeMs = max(block.TimeMs, b.timeMs)
	block.Seed = nextSeed(a.host.Seed(), value)
	for _, m := range req.Misbehavior {
		if r, ok := replicaAt(a.host.Replicas(), m.Validator.Address); ok {
			block.Guilty = append(block.Guilty, r.Key)
		}
	}
	a.host.Begin(block)
}

// powers returns the voting power of every replica that has any.
func powers(list []host.Replica) map[key.Public]uint64 {
	m := map[key.Public]uint64{}
	for _, r := range list {
		if r.Power > 0 {
			m[r.Key] = r.Power
		}
	}
	return m
}

// updates returns the changes of voting power for CometBFT, in order of keys.
func updates(before map[key.Public]uint64, after []host.Replica) []abci.ValidatorUpdate {
	var list []abci.ValidatorUpdate
	for _, r := range after {
		if was := before[r.Key]; was != r.Power {
			list = append(list, abci.Ed25519ValidatorUpdate(r.Key[:], int64(r.Power)))
		}
	}
	return list
}

// chanceKey is the file that holds a replica's key of random values.
type chanceKey struct {
	Public key.Public `json:"public"`
	Secret string     `json:"secret"` // 64 hexadecimal digits
}

func newChanceKey(s chance.Secret) chanceKey {
	seed := s.Seed()
	return chanceKey{Public: s.Public(), Secret: string(wire.AppendHex(nil, seed[:]))}
}

func parseChanceKey(b []byte) (chance.Secret, error) {
	var k chanceKey
	if err := json.Unmarshal(b, &k); err != nil {
		return chance.Secret{}, err
	}
	var seed [32]byte
	if err := wire.DecodeHex(seed[:], k.Secret); err != nil {
		return chance.Secret{}, fmt.Errorf("secret: %w", err)
	}
	s, err := chance.NewSecret(seed)
	if err == nil && s.Public() != k.Public {
		err = fmt.Errorf("the secret is not that of %v", k.Public)
	}
	return s, err
}
