package host

import (
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Transfer moves tokens from the sender to another key.
type Transfer struct {
	To     key.Public
	Amount uint64
}

// CreatePool makes the sender the operator of a pool, in which the tokens of lenders become stake
// for its machines. The terms never change. The sender pays a deposit (see Host.PoolDeposit),
// which it gets back when the pool is removed.
type CreatePool struct {
	Name string // as a run's, and unique among pools
	// The operator's share of income beyond what was lent; in basis points, at most 10,000.
	CommissionBP uint16
	// Least share of the loans that must be the operator's own; in basis points, at most 10,000.
	OwnBP uint16
	Least uint64 // least first loan of a lender
	// Keys that may stake from the pool besides the operator, in order; at most WorkersMax.
	Workers []key.Public
	// Names of the runs that the pool's tokens may be staked in, in order; 1 to PoolRunsMax, and
	// each exists. An operator could stake in a run of its own making, and take the stake through
	// that run's treasury: lenders see beforehand which runs these are.
	Runs []string
}

// Lend puts tokens of the sender into a pool that has not staked yet.
type Lend struct {
	Pool   string
	Amount uint64
}

// Collect pays the sender what a pool owes it: its share of the income, and the operator's
// commission. From a pool that has not staked yet, it returns the sender's loan.
type Collect struct {
	Pool string
}

// ClosePool ends a pool's staking. What was not staked is shared at once, the rest as it comes
// back. The operator may close a pool at any time, a lender once nothing was staked for
// PoolQuietMs. If the pool is closed, owes nothing, and no run owes it anything, ClosePool from
// the operator removes it.
type ClosePool struct {
	Pool string
}

// ClaimFor makes the claim of a run's member that is paid at a pool's address or at the sender's.
// So lenders get their income whatever becomes of the operator, and an owner is paid for a node
// whose key is lost.
type ClaimFor struct {
	Run    string
	Member key.Public
}

func (Transfer) kind() uint8   { return kindTransfer }
func (CreatePool) kind() uint8 { return kindCreatePool }
func (Lend) kind() uint8       { return kindLend }
func (Collect) kind() uint8    { return kindCollect }
func (ClosePool) kind() uint8  { return kindClosePool }
func (ClaimFor) kind() uint8   { return kindClaimFor }

func (t Transfer) append(dst []byte) []byte {
	return wire.AppendU64(append(dst, t.To[:]...), t.Amount)
}

func (c CreatePool) append(dst []byte) []byte {
	dst = wire.AppendString(dst, c.Name)
	dst = wire.AppendU16(dst, c.CommissionBP)
	dst = wire.AppendU16(dst, c.OwnBP)
	dst = wire.AppendU64(dst, c.Least)
	dst = wire.AppendU8(dst, uint8(len(c.Workers)))
	for _, w := range c.Workers {
		dst = append(dst, w[:]...)
	}
	dst = wire.AppendU8(dst, uint8(len(c.Runs)))
	for _, r := range c.Runs {
		dst = wire.AppendString(dst, r)
	}
	return dst
}

func (l Lend) append(dst []byte) []byte {
	return wire.AppendU64(wire.AppendString(dst, l.Pool), l.Amount)
}

func (c Collect) append(dst []byte) []byte   { return wire.AppendString(dst, c.Pool) }
func (c ClosePool) append(dst []byte) []byte { return wire.AppendString(dst, c.Pool) }

func (c ClaimFor) append(dst []byte) []byte {
	return append(wire.AppendString(dst, c.Run), c.Member[:]...)
}

func readCreatePool(r *wire.Reader) CreatePool {
	c := CreatePool{Name: r.String(RunNameBytesMax), CommissionBP: r.U16(), OwnBP: r.U16(), Least: r.U64()}
	n := r.U8()
	if n > WorkersMax {
		r.Fail(wire.ErrTooLong)
		return c
	}
	for range n {
		c.Workers = append(c.Workers, key.Public(r.Hash()))
	}
	if n = r.U8(); n > PoolRunsMax {
		r.Fail(wire.ErrTooLong)
		return c
	}
	for range n {
		c.Runs = append(c.Runs, r.String(RunNameBytesMax))
	}
	return c
}

// fault returns what is wrong with the terms of a pool.
func (c CreatePool) fault() error {
	switch {
	case !RunNameValid(c.Name):
		return refuse(CodeBadName, quote(c.Name), ": want 1 to ", RunNameBytesMax, " of a-z, 0-9 and inner '-'")
	case c.CommissionBP > wholeBP || c.OwnBP > wholeBP:
		return refuse(CodePoolTerms, "commission of ", c.CommissionBP, " and own part of ", c.OwnBP, " basis points: want at most ", wholeBP)
	}
	for i := 1; i < len(c.Workers); i++ {
		if c.Workers[i-1].Compare(c.Workers[i]) >= 0 {
			return refuse(CodePoolTerms, "workers are not in strictly increasing order at ", c.Workers[i])
		}
	}
	if len(c.Workers) > WorkersMax {
		return refuse(CodePoolTerms, len(c.Workers), " workers, at most ", WorkersMax)
	}
	if len(c.Runs) == 0 || len(c.Runs) > PoolRunsMax {
		return refuse(CodePoolTerms, len(c.Runs), " runs: want 1 to ", PoolRunsMax)
	}
	for i := 1; i < len(c.Runs); i++ {
		if c.Runs[i-1] >= c.Runs[i] {
			return refuse(CodePoolTerms, "runs are not in strictly increasing order at ", quote(c.Runs[i]))
		}
	}
	return nil
}
