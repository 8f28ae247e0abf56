package ledger

import (
	"bytes"
	"fmt"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

const hostVersion = 5 // of Append's format

// Append appends the whole state as of the last commit, from which ParseHost makes an equal host. It must not be called
// between Begin and Commit.
func (h *Host) Append(dst []byte) []byte {
	dst = wire.AppendU8(dst, hostVersion)
	dst = appendGenesis(dst, h.genesis)
	dst = wire.AppendU64(dst, h.height)
	dst = wire.AppendU64(dst, h.timeMs)
	dst = wire.AppendHash(dst, h.seed)
	dst = h.mark.append(dst)
	dst = h.accounts.append(dst)
	dst = h.bank.append(dst)
	dst = h.replicas.append(dst)
	dst = wire.AppendU8(dst, uint8(len(h.runs)))
	for _, r := range h.runs {
		if !bytes.Equal(r.live, r.frozen) {
			panic("ledger: append of a host within a block")
		}
		dst = wire.AppendString(dst, r.name)
		dst = wire.AppendU64(dst, r.height)
		dst = wire.AppendVar(dst, r.spec)
		dst = wire.AppendVar(dst, r.frozen)
		dst = r.peers.append(dst)
		dst = r.admission.append(dst)
		dst = r.history.Append(dst)
	}
	return dst
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

// ParseHost reads what Append wrote. It is strict: what it accepts has no other encoding. The host keeps no part of b.
func ParseHost(b []byte, referees Referees) (*Host, error) {
	r := wire.NewReader(b)
	if v := r.U8(); r.Err() == wire.OK && v != hostVersion {
		return nil, fmt.Errorf("ledger state of version %d, want %d", v, hostVersion)
	}
	h := &Host{genesis: parseGenesis(&r), referees: referees, height: r.U64(), timeMs: r.U64(), seed: r.Hash()}
	h.mark = readMark(&r)
	h.accounts = parseAccounts(&r)
	if r.Err() == wire.OK {
		if err := h.genesis.Check(); err != nil {
			return nil, fmt.Errorf("ledger state: %w", err)
		}
	}
	h.bank = parseBank(&r, h.genesis)
	h.replicas = parseReplicas(&r)
	n := r.U8()
	if n > RunsMax {
		r.Fail(wire.ErrTooLong)
	}
	for range n {
		if r.Err() != wire.OK {
			break
		}
		e, err := parseRun(&r, referees)
		if err != nil {
			return nil, fmt.Errorf("ledger state: run %q: %w", e.name, err)
		}
		if k := len(h.runs); k > 0 && h.runs[k-1].name >= e.name || e.height > h.height {
			r.Fail(wire.ErrNotCanonical)
		}
		h.runs = append(h.runs, e)
	}
	if err := r.Done().OrNil(); err != nil {
		return nil, fmt.Errorf("ledger state: %w", err)
	}
	if err := h.checkSupply(); err != nil {
		return nil, fmt.Errorf("ledger state: %w", err)
	}
	if h.timeMs < h.genesis.TimeMs || h.stateBytes() > StateBytesMax {
		return nil, fmt.Errorf("ledger state: %w", wire.ErrOutOfRange)
	}
	for _, e := range h.runs {
		e.freeze()
	}
	h.rest, _ = h.roots()
	return h, nil
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

func parseRun(r *wire.Reader, referees Referees) (*run, error) {
	e := &run{name: r.String(RunNameBytesMax), height: r.U64()}
	e.spec = bytes.Clone(r.Var(SpecBytesMax))
	e.live = bytes.Clone(r.Var(StateBytesMax))
	e.peers = parsePeers(r)
	e.admission = parseAdmission(r)
	e.history = merkle.ReadTree(r)
	if err := r.Err().OrNil(); err != nil {
		return e, err
	}
	if !RunNameValid(e.name) {
		return e, refuse(CodeBadName, "%q", e.name)
	}
	var err error
	if e.state, err = coordinator.Open(e.live); err != nil {
		return e, fmt.Errorf("coordinator: %w", err)
	}
	config := e.state.Config()
	if config.Name != e.name || config.SpecHash != SpecHash(e.spec) {
		return e, fmt.Errorf("the coordinator's configuration is of run %q with spec %v", config.Name, config.SpecHash)
	}
	if err := e.appoint(config, referees); err != nil {
		return e, fmt.Errorf("referee: %w", err)
	}
	e.escrow = e.state.Escrow()
	return e, nil
}

// RestoreHost reads what Append wrote as it was right after the last block that changed anything: all of that is in the
// state's hash, so who knows the hash need not believe who showed the state.
func RestoreHost(b []byte, referees Referees) (*Host, error) {
	h, err := ParseHost(b, referees)
	if err != nil {
		return nil, err
	}
	if h.mark.height > h.height || h.mark.timeMs > h.timeMs {
		return nil, fmt.Errorf("ledger state: %w", wire.ErrOutOfRange)
	}
	for _, r := range h.runs {
		if r.height > h.mark.height {
			return nil, fmt.Errorf("ledger state: run %q: %w", r.name, wire.ErrOutOfRange)
		}
	}
	h.height, h.timeMs, h.seed = h.mark.height, h.mark.timeMs, h.mark.seed
	return h, nil
}

// Genesis returns what the chain began with.
func (h *Host) Genesis() Genesis { return h.genesis }
