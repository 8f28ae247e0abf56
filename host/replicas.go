package host

import (
	"slices"

	"github.com/entrain-network/entrain/host/clock"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// replicas are the keys that vote on blocks, each with tokens that it loses if it votes twice,
// and the candidates.
//
// Anyone can put tokens behind a key, which makes it a candidate. The seated replicas decide by
// votes, weighted like their votes on blocks, whether a candidate gets a seat and whether a
// replica loses its own. The stake behind a replica that leaves stays locked for UnbondMs, in
// which evidence of earlier double votes can still appear.
type replicas struct {
	list  []*replica // in order of keys
	clock clock.Clock
	hash  wire.Hash // if not dirty
	dirty bool
}

type replica struct {
	key      key.Public // of its votes
	chance   key.Public // of its random values
	operator key.Public // acts for it
	stake    uint64
	seat     seat
	freeMs   uint64       // of a replica that has left: when the operator can have its stake back
	votes    []key.Public // operators, in order, that want its seat changed
}

type seat uint8

const (
	seatNone   seat = 0 // a candidate
	seatTaken  seat = 1 // votes on blocks
	seatLeft   seat = 2 // no longer votes
	seatBanned seat = 3 // has voted twice
)

func (s seat) String() string {
	return [...]string{"candidate", "seated", "left", "banned"}[s]
}

// newReplicas seats the replicas of the genesis.
func newReplicas(g Genesis) replicas {
	r := replicas{dirty: true}
	for _, f := range g.Replicas {
		r.list = append(r.list, &replica{key: f.Key, chance: f.Chance, operator: f.Operator, stake: f.Stake, seat: seatTaken})
	}
	return r
}

func (r *replicas) find(k key.Public) (int, bool) {
	return slices.BinarySearchFunc(r.list, k, func(e *replica, k key.Public) int { return e.key.Compare(k) })
}

// tokens returns the sum of all stakes.
func (r *replicas) tokens() uint64 {
	sum := uint64(0)
	for _, e := range r.list {
		sum += e.stake
	}
	return sum
}

// power returns the weight of a seated replica's votes: one, plus one for each 2^40th of the
// supply behind it. So sums fit the consensus engine's integers, and on a chain without tokens
// all replicas have the same weight.
func (e *replica) power(supply uint64) uint64 {
	if e.seat != seatTaken {
		return 0
	}
	return 1 + e.stake/max(1, supply>>40)
}

// seats reports whether an operator has a replica with a seat.
func (r *replicas) seats(operator key.Public) bool {
	return slices.ContainsFunc(r.list, func(e *replica) bool { return e.operator == operator && e.seat == seatTaken })
}

func (r *replicas) seated() int {
	n := 0
	for _, e := range r.list {
		if e.seat == seatTaken {
			n++
		}
	}
	return n
}

// ReplicaStake returns the least stake of a candidate, which makes filling the table costly.
func (h *Host) ReplicaStake() uint64 { return max(h.bank.floor(), h.bank.supply>>12) }

// stake puts tokens behind a replica. The sender is, or becomes, its operator.
func (h *Host) stake(sender key.Public, s Stake) error {
	i, known := h.replicas.find(s.Replica)
	if known {
		e := h.replicas.list[i]
		switch {
		case e.operator != sender:
			return refuse(CodeNotOperator, "the operator of replica ", e.key, " is ", e.operator)
		case e.seat != seatNone && e.seat != seatTaken:
			return refuse(CodeSeat, "replica ", e.key, " is ", e.seat)
		case s.Amount == 0:
			return refuse(CodeAmount, "no tokens for the replica")
		}
	} else if err := h.mayStand(sender, s); err != nil {
		return err
	}
	if err := h.bank.mayPay(sender, s.Amount); err != nil {
		return err
	}
	if !known {
		h.replicas.list = slices.Insert(h.replicas.list, i, &replica{key: s.Replica, chance: s.Chance, operator: sender})
	}
	h.bank.pay(sender, s.Amount)
	h.replicas.list[i].stake += s.Amount
	h.replicas.dirty = true
	return nil
}

// mayStand returns nil if a new candidate can be taken, or a *TxError.
func (h *Host) mayStand(sender key.Public, s Stake) error {
	switch {
	case s.Replica.IsZero() || s.Replica == s.Chance || !h.rules.chanceKey(s.Chance):
		return refuse(CodeReplicaKey, "replica ", s.Replica, " with chance ", s.Chance)
	case !key.Verify(s.Replica, replicaDomain, replicaText(h.genesis.Chain, sender, s.Chance), s.Consent):
		return refuse(CodeReplicaKey, "replica ", s.Replica, " has not consented to operator ", sender)
	case len(h.replicas.list) >= ReplicasMax:
		return refuse(CodeReplicasFull, len(h.replicas.list), " of ", ReplicasMax)
	case s.Amount < h.ReplicaStake():
		return refuse(CodeAmount, s.Amount, " behind a candidate, at least ", h.ReplicaStake())
	}
	return nil
}

// vote counts the vote of the sender's replicas on a seat.
func (h *Host) vote(sender key.Public, v Vote) error {
	i, ok := h.replicas.find(v.Replica)
	if !ok {
		return refuse(CodeUnknownReplica, v.Replica)
	}
	e := h.replicas.list[i]
	if !h.replicas.seats(sender) {
		return refuse(CodeNotOperator, sender, " has no replica with a seat")
	}
	if e.seat != seatNone && e.seat != seatTaken {
		return refuse(CodeSeat, "replica ", e.key, " is ", e.seat)
	}
	// Even if the vote changes nothing: votes of operators without a seat are dropped.
	h.replicas.dirty = true
	e.votes = slices.DeleteFunc(e.votes, func(k key.Public) bool { return !h.replicas.seats(k) })
	change := v.Seated != (e.seat == seatTaken)
	j, voted := slices.BinarySearchFunc(e.votes, sender, key.Public.Compare)
	switch {
	case change == voted:
		return nil // already so
	case change:
		e.votes = slices.Insert(e.votes, j, sender)
	default:
		e.votes = slices.Delete(e.votes, j, j+1)
	}
	h.tally(e)
	return nil
}

// tally changes a replica's seat if more than two thirds of the seated power want that. There are
// never more than SeatsMax seats, and never none.
func (h *Host) tally(e *replica) {
	want, all := uint64(0), uint64(0)
	for _, o := range h.replicas.list {
		p := o.power(h.bank.supply)
		all += p
		if _, ok := slices.BinarySearchFunc(e.votes, o.operator, key.Public.Compare); ok {
			want += p
		}
	}
	seated := h.replicas.seated()
	switch {
	case want*3 <= all*2:
	case e.seat == seatNone && seated < SeatsMax:
		e.seat, e.votes = seatTaken, nil
	case e.seat == seatTaken && seated > 1:
		h.unseat(e)
	}
}

func (h *Host) unseat(e *replica) {
	e.seat, e.freeMs, e.votes = seatLeft, h.timeMs+UnbondMs, nil
	h.replicas.dirty = true
}

// leave gives up a seat, or returns the stake behind a replica that has none.
func (h *Host) leave(sender key.Public, l Leave) error {
	i, ok := h.replicas.find(l.Replica)
	if !ok {
		return refuse(CodeUnknownReplica, l.Replica)
	}
	e := h.replicas.list[i]
	switch {
	case e.operator != sender:
		return refuse(CodeNotOperator, "the operator of replica ", e.key, " is ", e.operator)
	case e.seat == seatTaken && h.replicas.seated() == 1:
		return refuse(CodeSeat, "replica ", e.key, " is the last one with a seat")
	case e.seat == seatTaken:
		h.unseat(e)
		return nil
	case h.timeMs < e.freeMs:
		return refuse(CodeSeat, "replica ", e.key, " is ", e.seat, "; its stake is free at ", e.freeMs, " (milliseconds since 1970)")
	}
	if err := h.bank.mayReceive(sender, e.stake); err != nil {
		return err
	}
	h.bank.receive(sender, e.stake)
	h.replicas.list = slices.Delete(h.replicas.list, i, i+1)
	h.replicas.dirty = true
	return nil
}

// punish takes the seat and the whole stake of a replica that was shown to have voted twice, and
// divides the stake among the seated replicas. Its key cannot stand again while the entry is
// kept, which is until its signatures no longer count as evidence.
func (h *Host) punish(k key.Public) {
	i, ok := h.replicas.find(k)
	if !ok || h.replicas.list[i].seat == seatBanned {
		return
	}
	e := h.replicas.list[i]
	if e.seat != seatTaken || h.replicas.seated() > 1 {
		e.seat, e.freeMs, e.votes = seatBanned, h.timeMs+UnbondMs, nil
	}
	var honest []*replica
	for _, o := range h.replicas.list {
		if o.seat == seatTaken && o != e {
			honest = append(honest, o)
		}
	}
	h.replicas.dirty = true
	if len(honest) == 0 {
		return // there is no receiver
	}
	n := uint64(len(honest))
	for j, o := range honest {
		o.stake += e.stake / n
		if uint64(j) < e.stake%n {
			o.stake++
		}
	}
	e.stake = 0
}

func (r *replicas) sum() wire.Hash {
	if r.dirty {
		r.hash, r.dirty = wire.Sum("entrain/ledger/replicas", r.append(nil)), false
	}
	return r.hash
}

func (r *replicas) append(dst []byte) []byte {
	head := uint16(len(r.list))
	if r.clock.Votes() > 0 {
		head |= withClock
	}
	dst = wire.AppendU16(dst, head)
	for _, e := range r.list {
		dst = append(append(append(dst, e.key[:]...), e.chance[:]...), e.operator[:]...)
		dst = wire.AppendU8(wire.AppendU64(dst, e.stake), uint8(e.seat))
		dst = appendKeys(wire.AppendU64(dst, e.freeMs), e.votes)
	}
	if head&withClock != 0 {
		dst = r.clock.Append(dst)
	}
	return dst
}

// withClock marks replicas that follow another chain: its blocks are behind them.
const withClock = 1 << 15

// parseReplicas reads what append wrote. Its caller checks that the stakes are part of the
// supply.
func parseReplicas(r *wire.Reader) replicas {
	head := r.U16()
	n := head &^ withClock
	if n > ReplicasMax {
		r.Fail(wire.ErrTooLong)
		return replicas{}
	}
	p := replicas{dirty: true}
	for range n {
		e := &replica{key: key.Public(r.Hash()), chance: key.Public(r.Hash()), operator: key.Public(r.Hash()), stake: r.U64()}
		e.seat, e.freeMs, e.votes = seat(r.U8()), r.U64(), readKeys(r, ReplicasMax)
		if e.seat > seatBanned || e.stake > SupplyMax {
			r.Fail(wire.ErrOutOfRange)
		}
		if k := len(p.list); k > 0 && p.list[k-1].key.Compare(e.key) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return replicas{}
		}
		p.list = append(p.list, e)
	}
	if head&withClock != 0 {
		p.clock = clock.Parse(r, SeatsMax)
	}
	return p
}

// Replica is a replica of the chain, or a candidate.
type Replica struct {
	Key      key.Public `json:"key"`      // of its votes on blocks
	Chance   key.Public `json:"chance"`   // of its random values
	Operator key.Public `json:"operator"` // who acts for it
	Stake    uint64     `json:"stake"`    // tokens it loses if it votes twice
	Seat     string     `json:"seat"`     // candidate, seated, left or banned
	Power    uint64     `json:"power"`    // weight of its votes
	// When the operator of a replica that has left can have its stake back.
	FreeMs uint64       `json:"free_ms"`
	Votes  []key.Public `json:"votes"` // operators that want its seat changed
}

// Replicas returns all replicas and candidates, in order of keys.
func (h *Host) Replicas() []Replica { return h.replicas.show(h.bank.supply) }

func (r *replicas) show(supply uint64) []Replica {
	list := []Replica{}
	for _, e := range r.list {
		list = append(list, Replica{
			Key: e.key, Chance: e.chance, Operator: e.operator, Stake: e.stake, Seat: e.seat.String(), Power: e.power(supply),
			FreeMs: e.freeMs, Votes: append([]key.Public{}, e.votes...),
		})
	}
	return list
}
