package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/wire"
)

const hostVersion = 8 // of Append's format

// Append appends the whole state as of the last commit, from which ParseHost makes an equal host.
// It must not be called between Begin and Commit.
func (h *Host) Append(dst []byte) []byte {
	dst = wire.AppendU8(dst, hostVersion)
	dst = appendGenesis(dst, h.genesis)
	dst = wire.AppendU64(dst, h.height)
	dst = wire.AppendU64(dst, h.timeMs)
	dst = wire.AppendHash(dst, h.seed)
	dst = h.mark.append(dst)
	dst = h.accounts.append(dst)
	dst = h.names.append(dst)
	dst = h.bank.append(dst)
	dst = h.replicas.append(dst)
	dst = wire.AppendU8(dst, uint8(len(h.runs)))
	for _, r := range h.runs {
		if !same(r.live, r.frozen) {
			panic("host: append of a host within a block")
		}
		dst = wire.AppendString(dst, r.name)
		dst = wire.AppendU64(wire.AppendU64(dst, r.height), r.changedMs)
		dst = wire.AppendVar(dst, r.spec)
		dst = wire.AppendVar(dst, r.frozen)
		dst = r.peers.append(dst)
		dst = r.admission.append(dst)
		dst = r.history.Append(dst)
	}
	return h.archive.append(dst)
}

// ParseHost reads what Append wrote. It is strict: what it accepts has no other encoding. The
// host keeps no part of b.
func ParseHost(b []byte, rules Rules) (*Host, error) {
	r := wire.NewReader(b)
	if v := r.U8(); r.Err() == wire.OK && v != hostVersion {
		return nil, failed("ledger state of version ", v, ", want ", hostVersion)
	}
	h := &Host{genesis: parseGenesis(&r), rules: rules, height: r.U64(), timeMs: r.U64(), seed: r.Hash()}
	h.mark = readMark(&r)
	h.accounts = parseAccounts(&r)
	h.names = parseNames(&r)
	if r.Err() == wire.OK {
		if err := rules.Check(h.genesis); err != nil {
			return nil, failed("ledger state: ", err)
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
		e, err := parseRun(&r, rules)
		if err != nil {
			return nil, failed("ledger state: run ", quote(e.name), ": ", err)
		}
		if k := len(h.runs); k > 0 && h.runs[k-1].name >= e.name || e.height > h.height || e.changedMs > h.timeMs {
			r.Fail(wire.ErrNotCanonical)
		}
		h.runs = append(h.runs, e)
	}
	h.archive = parseArchive(&r)
	if err := r.Done().OrNil(); err != nil {
		return nil, failed("ledger state: ", err)
	}
	if err := h.checkSupply(); err != nil {
		return nil, failed("ledger state: ", err)
	}
	if h.timeMs < h.genesis.TimeMs || h.stateBytes() > StateBytesMax {
		return nil, failed("ledger state: ", wire.ErrOutOfRange)
	}
	for _, e := range h.runs {
		e.freeze()
	}
	h.rest, _ = h.roots()
	return h, nil
}

func parseRun(r *wire.Reader, rules Rules) (*run, error) {
	e := &run{name: r.String(RunNameBytesMax), height: r.U64(), changedMs: r.U64()}
	e.spec = slices.Clone(r.Var(SpecBytesMax))
	e.live = slices.Clone(r.Var(StateBytesMax))
	e.peers = parsePeers(r)
	e.admission = parseAdmission(r)
	e.history = merkle.ReadTree(r)
	if err := r.Err().OrNil(); err != nil {
		return e, err
	}
	if !RunNameValid(e.name) {
		return e, refuse(CodeBadName, quote(e.name))
	}
	var err error
	if e.state, err = coordinator.Open(e.live); err != nil {
		return e, failed("coordinator: ", err)
	}
	config := e.state.Config()
	if config.Name != e.name || config.SpecHash != SpecHash(e.spec) {
		return e, failed("the coordinator is that of run ", quote(config.Name), " with spec ", config.SpecHash)
	}
	if err := e.appoint(config, rules); err != nil {
		return e, failed("referee: ", err)
	}
	e.escrow, e.clocked = e.state.Escrow(), config.Clock > 0
	return e, nil
}

// RestoreHost is ParseHost for the state right after the last block that changed anything. All of
// that is in the state's hash, so a reader that knows the hash need not trust the source.
func RestoreHost(b []byte, rules Rules) (*Host, error) {
	h, err := ParseHost(b, rules)
	if err != nil {
		return nil, err
	}
	if h.mark.height > h.height || h.mark.timeMs > h.timeMs {
		return nil, failed("ledger state: ", wire.ErrOutOfRange)
	}
	for _, r := range h.runs {
		if r.height > h.mark.height {
			return nil, failed("ledger state: run ", quote(r.name), ": ", wire.ErrOutOfRange)
		}
	}
	h.height, h.timeMs, h.seed = h.mark.height, h.mark.timeMs, h.mark.seed
	return h, nil
}

// Genesis returns the chain's genesis.
func (h *Host) Genesis() Genesis { return h.genesis }
