package host

import (
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// delegationDomain is the domain of signatures on delegations. Its number is the format's.
const delegationDomain = "entrain/delegation/1"

// Admit changes who may take part in a run. Only the run's owner may send it. Members that may no
// longer take part are withdrawn at once, as if by themselves: they keep what they have earned,
// and their stake.
type Admit struct {
	Run    string
	Listed bool         // true admits listed keys only; false admits everyone, and keeps the list
	Add    []key.Public // in order, at most AdmitKeysMax
	Remove []key.Public // in order, at most AdmitKeysMax, none of them in Add
}

// Delegate makes the sender, a node's key, work for an owner for a limited time: it may take part
// if the owner may, and its earnings are paid to the owner. The certificate is signed by the
// owner and brought to the chain by the node, so both have agreed.
type Delegate struct {
	Run         string
	Certificate Certificate
}

// Revoke ends a delegation early. Only the owner that signed it may send it. The node is
// withdrawn from the run, and the certificate no longer counts.
type Revoke struct {
	Run  string
	Node key.Public
}

// Require names the oldest release of the program that may join a run from now on, such as
// "v1.2.0"; "" asks for no more than the specification does. Only the run's owner may send it.
// Programs check it themselves when they join: it stops outdated programs, not cheats. It does
// not affect current members.
type Require struct {
	Run     string
	Program string // printable ASCII
}

// Certificate is an owner's statement that a node's key works for it in a run of a chain, until
// some time. An owner signs it offline, so its secret key need not be on a connected machine.
type Certificate struct {
	Owner     key.Public
	ExpiresMs uint64 // in milliseconds since 1970
	Signature key.Signature
}

// NewCertificate signs a certificate for a node.
func NewCertificate(owner key.Private, chain, run string, node key.Public, expiresMs uint64) Certificate {
	c := Certificate{Owner: owner.Public(), ExpiresMs: expiresMs}
	c.Signature = owner.Sign(delegationDomain, c.text(chain, run, node))
	return c
}

// Valid reports whether the owner has signed the certificate for a node. It ignores the time.
func (c Certificate) Valid(chain, run string, node key.Public) bool {
	return !c.Owner.IsZero() && c.Owner != node && key.Verify(c.Owner, delegationDomain, c.text(chain, run, node), c.Signature)
}

// text returns the signed bytes.
func (c Certificate) text(chain, run string, node key.Public) []byte {
	b := wire.AppendString(wire.AppendString(nil, chain), run)
	return wire.AppendU64(append(append(b, c.Owner[:]...), node[:]...), c.ExpiresMs)
}

// Append appends the certificate's bytes: 32 owner | U64 expires | 64 signature.
func (c Certificate) Append(dst []byte) []byte {
	dst = wire.AppendU64(append(dst, c.Owner[:]...), c.ExpiresMs)
	return append(dst, c.Signature[:]...)
}

// ReadCertificate reads what Append wrote.
func ReadCertificate(r *wire.Reader) Certificate {
	c := Certificate{Owner: key.Public(r.Hash()), ExpiresMs: r.U64()}
	copy(c.Signature[:], r.Bytes(len(c.Signature)))
	return c
}

func (Admit) kind() uint8    { return kindAdmit }
func (Delegate) kind() uint8 { return kindDelegate }
func (Revoke) kind() uint8   { return kindRevoke }
func (Require) kind() uint8  { return kindRequire }

func (q Require) append(dst []byte) []byte {
	return wire.AppendString(wire.AppendString(dst, q.Run), q.Program)
}

func (a Admit) append(dst []byte) []byte {
	dst = wire.AppendBool(wire.AppendString(dst, a.Run), a.Listed)
	return appendKeys(appendKeys(dst, a.Add), a.Remove)
}

func (d Delegate) append(dst []byte) []byte {
	return d.Certificate.Append(wire.AppendString(dst, d.Run))
}

func (v Revoke) append(dst []byte) []byte {
	return append(wire.AppendString(dst, v.Run), v.Node[:]...)
}

func appendKeys(dst []byte, keys []key.Public) []byte {
	dst = wire.AppendU16(dst, uint16(len(keys)))
	for _, k := range keys {
		dst = append(dst, k[:]...)
	}
	return dst
}

// readKeys reads at most limit keys, which must be nonzero and in strictly increasing order.
func readKeys(r *wire.Reader, limit int) []key.Public {
	n := int(r.U16())
	if n > limit || n*len(key.Public{}) > r.Len() {
		r.Fail(wire.ErrTooLong)
		return nil
	}
	var keys []key.Public
	for i := range n {
		k := key.Public(r.Hash())
		if k.IsZero() || i > 0 && keys[i-1].Compare(k) >= 0 {
			r.Fail(wire.ErrNotCanonical)
			return nil
		}
		keys = append(keys, k)
	}
	return keys
}

// admission is who may take part in one run.
type admission struct {
	listed      bool
	allowed     []key.Public // in order
	delegations []Delegation // in order of nodes
	program     string       // the oldest release that may take part; "" for any
	hash        wire.Hash    // of all fields above, if not dirty
	dirty       bool
}

// Delegation is a node's key that works for an owner.
type Delegation struct {
	Node      key.Public `json:"node"`
	Owner     key.Public `json:"owner"`
	ExpiresMs uint64     `json:"expires_ms"` // in milliseconds since 1970
	// Kept until it expires, so that the certificate cannot be brought again.
	Revoked bool `json:"revoked"`
}

// Admission is who may take part in a run.
type Admission struct {
	// Only allowed keys may, and nodes that work for them; false: everyone.
	Listed      bool         `json:"listed"`
	Allowed     []key.Public `json:"allowed"`
	Delegations []Delegation `json:"delegations"`
	// The oldest release that may join; "" for what the specification says.
	Program string `json:"program"`
}

// Admission returns who may take part in a run, as of the last transaction; false if there is no
// such run.
func (h *Host) Admission(name string) (Admission, bool) {
	r, ok := h.committed(name)
	if !ok {
		return Admission{}, false
	}
	return r.admission.show(), true
}

func (a *admission) show() Admission {
	return Admission{Listed: a.listed, Allowed: append([]key.Public{}, a.allowed...), Delegations: append([]Delegation{}, a.delegations...), Program: a.program}
}

// Owner returns the key that a node works for at a time: another's, or its own.
func (a Admission) Owner(node key.Public, nowMs uint64) key.Public {
	return ownerOf(a.Delegations, node, nowMs)
}

// Allows reports whether a key may take part at a time.
func (a Admission) Allows(k key.Public, nowMs uint64) bool {
	return allows(a.Listed, a.Allowed, a.Delegations, k, nowMs)
}

func ownerOf(delegations []Delegation, node key.Public, nowMs uint64) key.Public {
	if i, ok := findDelegation(delegations, node); ok && !delegations[i].Revoked && nowMs < delegations[i].ExpiresMs {
		return delegations[i].Owner
	}
	return node
}

// allows reports whether k may take part. A revoked node may not, even by itself: it would join
// with the stake that it put up for its owner.
func allows(listed bool, allowed []key.Public, delegations []Delegation, k key.Public, nowMs uint64) bool {
	if i, ok := findDelegation(delegations, k); ok && delegations[i].Revoked && nowMs < delegations[i].ExpiresMs {
		return false
	}
	if !listed {
		return true
	}
	if _, ok := slices.BinarySearchFunc(allowed, k, key.Public.Compare); ok {
		return true
	}
	_, ok := slices.BinarySearchFunc(allowed, ownerOf(delegations, k, nowMs), key.Public.Compare)
	return ok
}

func findDelegation(list []Delegation, node key.Public) (int, bool) {
	return slices.BinarySearchFunc(list, node, func(d Delegation, k key.Public) int { return d.Node.Compare(k) })
}

// admitted returns the message m as the run's coordinator gets it, with the owner of a node that
// joins as its payee. It returns a *TxError if the sender may not send m.
func (h *Host) admitted(r *run, sender key.Public, m coordinator.Message) (coordinator.Message, error) {
	a := &r.admission
	owner := ownerOf(a.delegations, sender, h.timeMs)
	switch join := m.(type) {
	case coordinator.Join:
		if owner != sender {
			join.Payee = owner
			m = join
		}
	case coordinator.RegisterValidator:
		if owner != sender {
			join.Payee = owner
			m = join
		}
	case coordinator.Ready:
	default:
		return m, nil
	}
	if !a.allows(sender, h.timeMs) {
		return nil, refuse(CodeNotAdmitted, sender, "; the owner of run ", quote(r.name), " can add it: entrain run allow ", r.name, " ", sender)
	}
	return m, nil
}

func (h *Host) require(sender key.Public, q Require) error {
	r, err := h.open(q.Run)
	if err != nil {
		return err
	}
	if owner := r.state.Config().Owner; owner != sender {
		return refuse(CodeNotOwner, "the owner of run ", quote(r.name), " is ", owner)
	}
	if q.Program != "" && !addrValid(q.Program) {
		return refuse(CodeMalformed, "release ", quote(q.Program), " is not printable")
	}
	r.admission.program, r.admission.dirty = q.Program, true
	return nil
}

func (h *Host) admitKeys(sender key.Public, m Admit) error {
	r, err := h.open(m.Run)
	if err != nil {
		return err
	}
	if owner := r.state.Config().Owner; owner != sender {
		return refuse(CodeNotOwner, "the owner of run ", quote(r.name), " is ", owner)
	}
	list := slices.Concat(r.admission.allowed, m.Add)
	slices.SortFunc(list, key.Public.Compare)
	list = slices.DeleteFunc(slices.Compact(list), func(k key.Public) bool {
		_, ok := slices.BinarySearchFunc(m.Remove, k, key.Public.Compare)
		return ok
	})
	if len(list) > AllowedMax {
		return refuse(CodeListFull, len(list), " keys, at most ", AllowedMax)
	}
	r.admission.allowed, r.admission.listed, r.admission.dirty = list, m.Listed, true
	for i := range r.state.Count() {
		if m := r.state.Member(i); m.Status.Present() && !r.admission.allows(m.Key, h.timeMs) {
			h.withdraw(r, m.Key)
		}
	}
	return nil
}

func (a *admission) allows(k key.Public, nowMs uint64) bool {
	return allows(a.listed, a.allowed, a.delegations, k, nowMs)
}

// withdraw removes k from the run, as if by itself: as a member, unless the run has finished, and
// as a validator, which scores what was done while it had the seat.
func (h *Host) withdraw(r *run, k key.Public) {
	env := h.env(r, k)
	_ = r.state.Apply(env, coordinator.Withdraw{})
	m := coordinator.RetireValidator{}
	if h.mayPayOut(r, env, m) == nil && r.state.Apply(env, m) == nil {
		h.payOut(r)
	}
}

func (h *Host) delegate(node key.Public, d Delegate) error {
	r, err := h.open(d.Run)
	if err != nil {
		return err
	}
	a, c := &r.admission, d.Certificate
	i, known := findDelegation(a.delegations, node)
	switch {
	case !c.Valid(h.genesis.Chain, r.name, node):
		return refuse(CodeDelegation, "it is not signed by ", c.Owner, " for node ", node, " in run ", quote(r.name), " of chain ", quote(h.genesis.Chain))
	case c.ExpiresMs <= h.timeMs:
		return refuse(CodeDelegation, "it has expired")
	case c.ExpiresMs > h.timeMs+DelegationMsMax:
		return refuse(CodeDelegation, "it lasts longer than ", DelegationMsMax/(24*3600*1000), " days")
	case known && a.delegations[i].Revoked: // else another's certificate would revive it
		return refuse(CodeDelegation, a.delegations[i].Owner, " has revoked the node; it needs a new key")
	case known && a.delegations[i].Owner != c.Owner: // so no thief puts it out of its owner's reach
		return refuse(CodeDelegation, "the node works for ", a.delegations[i].Owner, " until ", a.delegations[i].ExpiresMs, " (milliseconds since 1970), unless revoked")
	case a.listed && !slices.Contains(a.allowed, c.Owner):
		return refuse(CodeNotAdmitted, c.Owner, ", for whom the node works")
	}
	e := Delegation{Node: node, Owner: c.Owner, ExpiresMs: c.ExpiresMs}
	if known {
		e.ExpiresMs = max(e.ExpiresMs, a.delegations[i].ExpiresMs)
		a.delegations[i] = e
	} else {
		if err := h.roomFor(r, c.Owner); err != nil {
			return err
		}
		i, _ = findDelegation(a.delegations, node)
		a.delegations = slices.Insert(a.delegations, i, e)
	}
	a.dirty = true
	return nil
}

// roomFor makes room for one more delegation of an owner. If the table is full, it drops the
// delegation that ends first among those whose node has no place in the run: one with a place may
// have a stake, and be revoked.
func (h *Host) roomFor(r *run, owner key.Public) error {
	a := &r.admission
	own := 0
	idle := -1
	for i, d := range a.delegations {
		if d.Owner == owner {
			own++
		}
		if _, ok := r.state.Find(d.Node); ok {
			continue
		}
		if idle < 0 || d.ExpiresMs < a.delegations[idle].ExpiresMs {
			idle = i
		}
	}
	switch {
	case own >= DelegationsPerOwner:
		return refuse(CodeListFull, owner, " has ", own, " nodes that work for it, at most ", DelegationsPerOwner)
	case len(a.delegations) < DelegationsMax:
		return nil
	case idle < 0:
		return refuse(CodeListFull, len(a.delegations), " delegations, at most ", DelegationsMax)
	}
	a.delegations = slices.Delete(a.delegations, idle, idle+1)
	return nil
}

func (h *Host) revoke(owner key.Public, v Revoke) error {
	r, err := h.open(v.Run)
	if err != nil {
		return err
	}
	a := &r.admission
	i, ok := findDelegation(a.delegations, v.Node)
	if !ok || a.delegations[i].Owner != owner || a.delegations[i].Revoked {
		return refuse(CodeDelegation, "node ", v.Node, " does not work for ", owner, " in run ", quote(r.name))
	}
	a.delegations[i].Revoked, a.dirty = true, true
	h.withdraw(r, v.Node)
	return nil
}

// expire drops the delegations whose time is over, and withdraws their nodes. It withdraws
// validators that are not allowed, too, of which some had to wait for their seats.
func (h *Host) expire(r *run) {
	a := &r.admission
	kept := a.delegations[:0]
	for _, d := range a.delegations {
		if h.timeMs < d.ExpiresMs {
			kept = append(kept, d)
			continue
		}
		if !d.Revoked {
			h.withdraw(r, d.Node)
		}
	}
	if len(kept) < len(a.delegations) {
		clear(a.delegations[len(kept):])
		a.delegations, a.dirty = kept, true
	}
	for _, v := range r.state.Validators() {
		if v.Until == 0 && !a.allows(v.Key, h.timeMs) {
			h.withdraw(r, v.Key)
		}
	}
}

// sum returns the hash of a. An empty admission has a hash too.
func (a *admission) sum() wire.Hash {
	if a.dirty || a.hash.IsZero() {
		a.hash, a.dirty = wire.Sum("entrain/ledger/admission", a.append(nil)), false
	}
	return a.hash
}

func (a *admission) append(dst []byte) []byte {
	dst = wire.AppendBool(dst, a.listed)
	dst = appendKeys(dst, a.allowed)
	dst = wire.AppendU16(dst, uint16(len(a.delegations)))
	for _, d := range a.delegations {
		dst = append(append(dst, d.Node[:]...), d.Owner[:]...)
		dst = wire.AppendBool(wire.AppendU64(dst, d.ExpiresMs), d.Revoked)
	}
	return wire.AppendString(dst, a.program)
}

const delegationBytes = 32 + 32 + 8 + 1

func parseAdmission(r *wire.Reader) admission {
	a := admission{listed: r.Bool(), allowed: readKeys(r, AllowedMax)}
	n := int(r.U16())
	if n > DelegationsMax || n*delegationBytes > r.Len() {
		r.Fail(wire.ErrTooLong)
		return admission{}
	}
	for i := range n {
		d := Delegation{Node: key.Public(r.Hash()), Owner: key.Public(r.Hash()), ExpiresMs: r.U64(), Revoked: r.Bool()}
		if i > 0 && a.delegations[i-1].Node.Compare(d.Node) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return admission{}
		}
		a.delegations = append(a.delegations, d)
	}
	a.program = r.String(ProgramBytesMax)
	return a
}

// expires reports whether a delegation of the run ends by the given time.
func (r *run) expires(nowMs uint64) bool {
	return slices.ContainsFunc(r.admission.delegations, func(d Delegation) bool { return d.ExpiresMs <= nowMs })
}
