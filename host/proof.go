package host

import (
	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

// A proof leads from a part of the state to the hash of the whole, Host.Hash. A reader that knows
// the hash, from replicas that signed it, need not trust the source of the part.

// ErrProof reports a malformed proof.
const ErrProof = Error("proof of a part of the ledger's state is malformed")

// Change is one of the states that a run's coordinator was in. The list of all of them is a
// Merkle tree, whose root is in the hash of the chain's state. So a few hashes prove each of them
// forever, whatever became of the blocks.
type Change struct {
	Height uint64    `json:"height"` // of the block that led to the state
	TimeMs uint64    `json:"time_ms"`
	Hash   wire.Hash `json:"hash"` // coordinator.State.Hash
}

// ChangeBytes is the size of an encoded Change.
const ChangeBytes = 8 + 8 + 32

// Append appends the change: U64 height | U64 time | 32 hash.
func (c Change) Append(dst []byte) []byte {
	return wire.AppendHash(wire.AppendU64(wire.AppendU64(dst, c.Height), c.TimeMs), c.Hash)
}

// ReadChange reads what Append wrote.
func ReadChange(r *wire.Reader) Change {
	return Change{Height: r.U64(), TimeMs: r.U64(), Hash: r.Hash()}
}

func (c Change) leaf() wire.Hash { return merkle.Leaf(c.Append(nil)) }

// CheckHistory checks that changes, with the numbers from before.Len() on, are those of the
// history that a RunProof names. It returns the tree over them and those before, so that a list
// can be checked piece by piece. It compares the root when the last change is among them.
func CheckHistory(before merkle.Tree, changes []Change, of RunProof) (merkle.Tree, error) {
	for _, c := range changes {
		before.Add(c.leaf())
	}
	switch n := before.Len(); {
	case n > of.Changes:
		return before, failed(n, " changes of a run that had ", of.Changes)
	case n == of.Changes && before.Root() != of.History:
		return before, failed("these are not the changes that the run went through")
	}
	return before, nil
}

// RunProof is everything of a run that enters the hash of the chain's state, and the path there.
type RunProof struct {
	Changed   uint64    // height of the block that changed the coordinator's state last
	ChangedMs uint64    // that block's time
	State     wire.Hash // of the coordinator
	Spec      wire.Hash // SpecHash
	Peers     wire.Hash
	Admission wire.Hash
	Changes   uint64    // number of states
	History   wire.Hash // Merkle root over them

	index, count uint64 // position among the runs
	way          []wire.Hash
	top          []wire.Hash
}

func (r *run) proof() RunProof {
	return RunProof{
		Changed: r.height, ChangedMs: r.changedMs, State: r.hash, Spec: SpecHash(r.spec), Peers: r.peers.sum(), Admission: r.admission.sum(),
		Changes: r.history.Len(), History: r.history.Root(),
	}
}

// leaf returns the run's leaf in the tree of runs.
func (p RunProof) leaf(name string) wire.Hash {
	return merkle.Leaf(p.body(wire.AppendString(nil, name)))
}

func (p RunProof) body(dst []byte) []byte {
	dst = wire.AppendHash(wire.AppendHash(wire.AppendU64(wire.AppendU64(dst, p.Changed), p.ChangedMs), p.State), p.Spec)
	dst = wire.AppendHash(wire.AppendHash(dst, p.Peers), p.Admission)
	return wire.AppendHash(wire.AppendU64(dst, p.Changes), p.History)
}

// ProveRuns returns the proofs of all runs, in order of names, as of the last commit.
func (h *Host) ProveRuns() []RunProof {
	_, leaves := h.roots()
	top := merkle.Prove(leaves, leafRuns)
	runs := h.runLeaves()
	list := make([]RunProof, len(runs))
	for i := range runs {
		list[i] = h.runs[i].proof()
		list[i].index, list[i].count, list[i].top = uint64(i), uint64(len(runs)), top
		list[i].way = merkle.Prove(runs, uint64(i))
	}
	return list
}

// ProveRun returns the proof of one run; false if there is no such run.
func (h *Host) ProveRun(name string) (RunProof, bool) {
	if _, ok := h.committed(name); !ok {
		return RunProof{}, false
	}
	i, _ := h.find(name)
	return h.ProveRuns()[i], true
}

// Root returns the hash of the chain's state to which the proof leads.
func (p RunProof) Root(name string) (wire.Hash, error) {
	runs, ok := merkle.Climb(p.leaf(name), p.index, p.count, p.way)
	if !ok {
		return wire.Hash{}, ErrProof
	}
	return climbTop(runs, leafRuns, p.top)
}

func climbTop(leaf wire.Hash, i uint64, way []wire.Hash) (wire.Hash, error) {
	root, ok := merkle.Climb(leaf, i, leafCount, way)
	if !ok {
		return wire.Hash{}, ErrProof
	}
	return root, nil
}

// Append appends the proof's bytes.
func (p RunProof) Append(dst []byte) []byte {
	dst = wire.AppendU8(wire.AppendU8(p.body(dst), uint8(p.index)), uint8(p.count))
	return appendWay(appendWay(dst, p.way), p.top)
}

// ReadRunProof reads what Append wrote.
func ReadRunProof(r *wire.Reader) RunProof {
	p := RunProof{Changed: r.U64(), ChangedMs: r.U64(), State: r.Hash(), Spec: r.Hash(), Peers: r.Hash(), Admission: r.Hash()}
	p.Changes, p.History = r.U64(), r.Hash()
	p.index, p.count = uint64(r.U8()), uint64(r.U8())
	p.way, p.top = readWay(r), readWay(r)
	return p
}

const wayMax = 8 // the height of the highest tree in the state: that of the purses

func appendWay(dst []byte, way []wire.Hash) []byte {
	dst = wire.AppendU8(dst, uint8(len(way)))
	for _, h := range way {
		dst = wire.AppendHash(dst, h)
	}
	return dst
}

func readWay(r *wire.Reader) []wire.Hash {
	n := r.U8()
	if n > wayMax {
		r.Fail(wire.ErrTooLong)
		return nil
	}
	var way []wire.Hash
	for range n {
		way = append(way, r.Hash())
	}
	return way
}

// PeersBytes returns the addresses announced for the run as they enter its proof; false if there
// is no such run.
func (h *Host) PeersBytes(name string) ([]byte, bool) {
	r, ok := h.committed(name)
	if !ok {
		return nil, false
	}
	return r.peers.append(nil), true
}

// OpenPeers reads what PeersBytes returned. The run's proof must have the hash that it returns.
func OpenPeers(b []byte) ([]Peer, wire.Hash, error) {
	r := wire.NewReader(b)
	p := parsePeers(&r)
	if err := r.Done().OrNil(); err != nil {
		return nil, wire.Hash{}, failed("addresses of participants: ", err)
	}
	return p.show(), p.sum(), nil
}

// AdmissionBytes returns the run's admission as it enters its proof; false if there is no such
// run.
func (h *Host) AdmissionBytes(name string) ([]byte, bool) {
	r, ok := h.committed(name)
	if !ok {
		return nil, false
	}
	return r.admission.append(nil), true
}

// OpenAdmission reads what AdmissionBytes returned. The run's proof must have the hash that it
// returns.
func OpenAdmission(b []byte) (Admission, wire.Hash, error) {
	r := wire.NewReader(b)
	a := parseAdmission(&r)
	if err := r.Done().OrNil(); err != nil {
		return Admission{}, wire.Hash{}, failed("who may take part: ", err)
	}
	return a.show(), a.sum(), nil
}

// ProvePurse returns the purse of a key, and the path to the hash of the chain's state.
func (h *Host) ProvePurse(k key.Public) []byte {
	_, leaves := h.roots()
	b := wire.AppendVar(nil, h.bank.bucket(k[0]))
	b = appendWay(b, merkle.Prove(h.bank.buckets[:], uint64(k[0])))
	return appendWay(b, merkle.Prove(leaves, leafPurses))
}

// OpenPurse reads what ProvePurse returned. It returns the tokens in the purse of k, perhaps
// none, and the hash of the chain's state that contains it.
func OpenPurse(b []byte, k key.Public) (tokens uint64, root wire.Hash, err error) {
	r := wire.NewReader(b)
	bucket := r.Var(PursesMax * purseBytes)
	way, top := readWay(&r), readWay(&r)
	if err := r.Done().OrNil(); err != nil {
		return 0, root, failed("purse: ", err)
	}
	purses, ok := merkle.Climb(merkle.Leaf(bucket), uint64(k[0]), bucketCount, way)
	if !ok || uint64(len(bucket))%purseBytes != 0 {
		return 0, root, ErrProof
	}
	for list := wire.NewReader(bucket); list.Len() > 0; {
		owner, n := key.Public(list.Hash()), list.U64()
		if owner == k {
			tokens = n
		}
	}
	root, err = climbTop(purses, leafPurses, top)
	return tokens, root, err
}

// ProveReplicas returns the replicas, and the path to the hash of the chain's state.
func (h *Host) ProveReplicas() []byte {
	_, leaves := h.roots()
	b := wire.AppendU64(wire.AppendVar(nil, h.replicas.append(nil)), h.bank.supply)
	return appendWay(b, merkle.Prove(leaves, leafReplicas))
}

// OpenReplicas reads what ProveReplicas returned, with the hash of the chain's state that
// contains them. The supply, from which their power is computed, is not proven.
func OpenReplicas(b []byte) ([]Replica, wire.Hash, error) {
	r := wire.NewReader(b)
	list := wire.NewReader(r.Var(ReplicasMax*(ReplicasMax*32+128) + SeatsMax*(clock.SightMax+4)*32))
	supply, way := r.U64(), readWay(&r)
	p := parseReplicas(&list)
	err := r.Done().OrNil()
	if err == nil {
		err = list.Done().OrNil()
	}
	if err != nil {
		return nil, wire.Hash{}, failed("replicas: ", err)
	}
	root, err := climbTop(p.sum(), leafReplicas, way)
	return p.show(supply), root, err
}

// ProvePools returns all pools, and the path to the hash of the chain's state.
func (h *Host) ProvePools() []byte {
	_, leaves := h.roots()
	return appendWay(wire.AppendVar(nil, h.bank.appendPools(nil)), merkle.Prove(leaves, leafPools))
}

const poolBytesMax = 1 << 16 // more than a pool with all workers and lenders takes

// OpenPools reads what ProvePools returned, with the hash of the chain's state that contains
// them.
func OpenPools(chain string, b []byte) ([]Pool, wire.Hash, error) {
	r := wire.NewReader(b)
	body := r.Var(PoolsMax * poolBytesMax)
	way := readWay(&r)
	list := wire.NewReader(body)
	bank := bank{supply: SupplyMax}
	bank.readPools(&list, chain)
	err := r.Done().OrNil()
	if err == nil {
		err = list.Done().OrNil()
	}
	if err != nil {
		return nil, wire.Hash{}, failed("pools: ", err)
	}
	pools := []Pool{}
	for _, p := range bank.pools {
		pools = append(pools, p.show())
	}
	root, err := climbTop(wire.Sum("entrain/ledger/pools", body), leafPools, way)
	return pools, root, err
}
