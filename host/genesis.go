package host

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Genesis is what the replicas of a chain agree on before its first block.
type Genesis struct {
	Chain string `json:"chain"`
	// The chain's time before the first block, in milliseconds since 1970.
	TimeMs uint64 `json:"time_ms"`
	// Keys that may create runs, in order; if empty, everyone may.
	Creators []key.Public `json:"creators"`
	// All of the chain's tokens, in order of keys, but for those behind replicas.
	Accounts []Allocation `json:"accounts,omitempty"`
	Replicas []Founder    `json:"replicas,omitempty"` // replicas with a seat, in order of keys
}

// Founder is a replica that has a seat before the first block.
type Founder struct {
	Key      key.Public `json:"key"`      // of its votes on blocks
	Chance   key.Public `json:"chance"`   // of its random values, see package chance
	Operator key.Public `json:"operator"` // acts for it; zero for nobody
	// Tokens that it loses if it votes twice, in addition to those of Accounts.
	Stake uint64 `json:"stake"`
}

// Allocation is what a key has of the chain's tokens before the first block.
type Allocation struct {
	Key    key.Public `json:"key"`
	Amount uint64     `json:"amount"`
}

// check returns what is wrong with g under any rules.
func (g Genesis) check() error {
	if !ChainIDValid(g.Chain) {
		return failed("chain id ", quote(g.Chain), ": want 1 to ", ChainIDBytesMax, " of a-z, 0-9 and inner '-'")
	}
	if len(g.Creators) > CreatorsMax {
		return failed(len(g.Creators), " creators of runs, at most ", CreatorsMax)
	}
	for i := 1; i < len(g.Creators); i++ {
		if g.Creators[i-1].Compare(g.Creators[i]) >= 0 {
			return failed("creators of runs are not in strictly increasing order at ", g.Creators[i])
		}
	}
	return g.checkAccounts()
}

func (g Genesis) checkAccounts() error {
	if len(g.Accounts) > AllocationsMax {
		return failed("tokens for ", len(g.Accounts), " accounts, at most ", AllocationsMax)
	}
	supply := uint64(0)
	for i, a := range g.Accounts {
		switch {
		case i > 0 && g.Accounts[i-1].Key.Compare(a.Key) >= 0:
			return failed("accounts are not in strictly increasing order at ", a.Key)
		case a.Key.IsZero():
			return failed("tokens for the zero key, which has no owner")
		case a.Amount == 0:
			return failed("account ", a.Key, " has no tokens: leave it out")
		case a.Amount > SupplyMax-supply:
			return failed("more than ", uint64(SupplyMax), " tokens in all")
		}
		supply += a.Amount
	}
	return g.checkReplicas(supply)
}

// supply returns the number of tokens.
func (g Genesis) supply() uint64 {
	n := uint64(0)
	for _, a := range g.Accounts {
		n += a.Amount
	}
	for _, r := range g.Replicas {
		n += r.Stake
	}
	return n
}

// checkReplicas returns what is wrong with the replicas of a genesis.
func (g Genesis) checkReplicas(supply uint64) error {
	if len(g.Replicas) > SeatsMax {
		return failed(len(g.Replicas), " replicas, at most ", SeatsMax)
	}
	for i, r := range g.Replicas {
		switch {
		case i > 0 && g.Replicas[i-1].Key.Compare(r.Key) >= 0:
			return failed("replicas are not in strictly increasing order at ", r.Key)
		case r.Stake > SupplyMax-supply:
			return failed("more than ", uint64(SupplyMax), " tokens in all")
		}
		supply += r.Stake
	}
	return nil
}

func appendGenesis(dst []byte, g Genesis) []byte {
	dst = wire.AppendString(dst, g.Chain)
	dst = wire.AppendU64(dst, g.TimeMs)
	dst = wire.AppendU16(dst, uint16(len(g.Creators)))
	for _, k := range g.Creators {
		dst = append(dst, k[:]...)
	}
	dst = wire.AppendU16(dst, uint16(len(g.Accounts)))
	for _, a := range g.Accounts {
		dst = wire.AppendU64(append(dst, a.Key[:]...), a.Amount)
	}
	dst = wire.AppendU16(dst, uint16(len(g.Replicas)))
	for _, f := range g.Replicas {
		dst = append(append(append(dst, f.Key[:]...), f.Chance[:]...), f.Operator[:]...)
		dst = wire.AppendU64(dst, f.Stake)
	}
	return dst
}

func parseGenesis(r *wire.Reader) Genesis {
	g := Genesis{Chain: r.String(ChainIDBytesMax), TimeMs: r.U64()}
	n := r.U16()
	if n > CreatorsMax {
		r.Fail(wire.ErrTooLong)
		return g
	}
	for range n {
		var k key.Public
		copy(k[:], r.Bytes(len(k)))
		g.Creators = append(g.Creators, k)
	}
	if n = r.U16(); n > AllocationsMax {
		r.Fail(wire.ErrTooLong)
		return g
	}
	for range n {
		g.Accounts = append(g.Accounts, Allocation{Key: key.Public(r.Hash()), Amount: r.U64()})
	}
	if n = r.U16(); n > SeatsMax {
		r.Fail(wire.ErrTooLong)
		return g
	}
	for range n {
		f := Founder{Key: key.Public(r.Hash()), Chance: key.Public(r.Hash()), Operator: key.Public(r.Hash())}
		f.Stake = r.U64()
		g.Replicas = append(g.Replicas, f)
	}
	return g
}
