package host

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Stake puts tokens of the sender behind a replica of the chain. The first sender becomes its
// operator, and the replica a candidate, to which the seated replicas can give a seat.
type Stake struct {
	Replica key.Public
	Amount  uint64
	Chance  key.Public // of the replica's random values; used the first time
	// Of the replica's key to operator and chance, see Consent; used the first time.
	Consent key.Signature
}

// Vote asks for all seated replicas of the sender that a replica have a seat, or have none. It
// stands until the operator changes it. It takes effect once replicas with more than two thirds
// of the power agree.
type Vote struct {
	Replica key.Public
	Seated  bool
}

// Leave gives up a replica's seat. Sent again UnbondMs later, it returns the stake to the sender,
// its operator. A candidate's stake is returned at once.
type Leave struct {
	Replica key.Public
}

// replicaDomain is the domain of a replica's consent. Its number is the format's.
const replicaDomain = "entrain/replica/1"

func replicaText(chain string, operator, chance key.Public) []byte {
	return append(append(wire.AppendString(nil, chain), operator[:]...), chance[:]...)
}

// Consent signs, with a replica's key, that an operator acts for the replica. It proves that the
// key which would vote exists.
func Consent(replica key.Private, chain string, operator, chance key.Public) key.Signature {
	return replica.Sign(replicaDomain, replicaText(chain, operator, chance))
}

func (Stake) kind() uint8 { return kindStake }
func (Vote) kind() uint8  { return kindVote }
func (Leave) kind() uint8 { return kindLeave }

func (s Stake) append(dst []byte) []byte {
	dst = wire.AppendU64(append(dst, s.Replica[:]...), s.Amount)
	return append(append(dst, s.Chance[:]...), s.Consent[:]...)
}

func (v Vote) append(dst []byte) []byte {
	return wire.AppendBool(append(dst, v.Replica[:]...), v.Seated)
}

func (l Leave) append(dst []byte) []byte { return append(dst, l.Replica[:]...) }
