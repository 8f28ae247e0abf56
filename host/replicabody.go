package host

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Stake puts tokens of the sender behind a replica of the chain. The first who does becomes its operator; then it is a
// candidate, which those who are seated may give a seat.
type Stake struct {
	Replica key.Public
	Amount  uint64
	Chance  key.Public    // of the replica's random values; counts the first time
	Consent key.Signature // of the replica's key to operator and chance, see Consent; counts the first time
}

// Vote is the wish of all replicas with a seat whose operator is the sender that a candidate be seated or not, or that a
// replica keep its seat or not. It stands until it is changed, and is carried out once replicas with more than two thirds of
// the weight have the same one.
type Vote struct {
	Replica key.Public
	Seated  bool
}

// Leave gives up a replica's seat. Sent again UnbondMs later, it gives the sender, its operator, back what is behind it; a
// candidate's comes back at once.
type Leave struct {
	Replica key.Public
}

// replicaDomain is of a replica's consent; the number is the format's.
const replicaDomain = "entrain/replica/1"

func replicaText(chain string, operator, chance key.Public) []byte {
	return append(append(wire.AppendString(nil, chain), operator[:]...), chance[:]...)
}

// Consent is a replica's signature that lets an operator act for it: it shows that who stands for a seat has the key that
// would vote.
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
