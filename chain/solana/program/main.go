//go:build sbf

// Command program is the Solana program of runs. Each run is one account that the program owns: the
// coordinator's state, byte for byte, and behind it 64 bytes of the program's own (see tail). The
// key that signs a transaction is the sender of its message: a participant's key is a Solana
// address.
//
// An instruction's data begin with a U8 that says what to do:
//
//	0 create  limits, config       a run in an account of zeros, which signs; its name is then taken
//	1 apply   U8 flags, U64 value, message
//	2 write   U32 offset, bytes    into a buffer, for messages too long for a transaction
//	3 close                        a buffer, or a finished run without tokens, for its rent
//	4 judge   U32 results          computes so much of the judgement that evidence asks for
//
// Their accounts, in this order (w: writable, s: signs):
//
//	create  run ws, sender ws, name w, specification w, system program, [rules w], [vault]
//	apply   run w, sender s, then by flags
//	        1: buffer;  8: rules;  16: work;
//	        2 or 4: vault w, authority, token program;  2: from w;  4: to w
//	write   buffer w, author s
//	close   buffer or work w, author ws
//	        run w, owner ws, its specification w, [its rules w]
//	judge   run, author s, rules, buffer, work w
//
// The name's account is the program's address for the seeds "run" and the run's name; it tells
// where the run and its specification are. The specification is a buffer of the sender's, which
// create seals. A new buffer is its first author's, so one transaction makes the account and writes
// into it.
//
// The vault is a token account of the SPL token program whose owner is the authority, the program's
// address for the seeds "vault" and the run's address. With flag 2 the value moves from the account
// from, with flag 4 what the message pays out goes to the account to, which must belong to the key
// that is paid. A refused instruction changes nothing.
//
// A run that verifies results has rules, which every apply to it must name: a Tick, too, may need
// the referee. Evidence that takes more units than a transaction has is judged before, in parts,
// into a work account, which the evidence then names.
//
// No account is believed: each is checked for its owner, its length, its magic number, its
// signature, and that it stands in the list once.
package main

import (
	"unsafe"

	"github.com/entrain-network/entrain/chain/solana/units"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Operations.
const (
	opCreate = 0
	opApply  = 1
	opWrite  = 2
	opClose  = 3
	opJudge  = 4
)

// fault is a reason of the program's own for refusing an instruction. Errors of the coordinator are
// below 1000, those of package wire from wireFaults on.
type fault uint32

const (
	errAccounts fault = 1000 // too few or too many accounts, or one of them twice
	errOwner    fault = 1001 // an account belongs to another program than it must
	errSigner   fault = 1002 // an account that must sign does not
	errWritable fault = 1003 // an account that must be writable is not
	errData     fault = 1004 // the instruction's data are malformed
	errKind     fault = 1005 // the account is of another kind, or not new
	errLength   fault = 1006 // the account is not as long as it must be
	errVault    fault = 1007 // the vault is not this run's, or somebody else has power over it
	errTokens   fault = 1008 // tokens move, but the accounts for them are not given
	errPayee    fault = 1009 // the account that is paid belongs to another key
	errReferee  fault = 1010 // a run that verifies results needs its rules, another one none
	errAuthor   fault = 1011 // the buffer or the run belongs to another key
	errLive     fault = 1012 // the run is not finished, or still holds tokens
	errName     fault = 1013 // the account is not the name's, or the name is taken
	errSpec     fault = 1014 // the specification is not the one that the configuration names
	wireFaults        = 2000
)

// Error implements error. The machine passes on the number alone.
func (f fault) Error() string { return "refused" }

//export entrypoint
func entrypoint(in unsafe.Pointer) uint64 {
	var c call
	if err := c.parse(in); err != nil {
		return code(err)
	}
	return code(c.run())
}

func code(err error) uint64 {
	switch e := err.(type) {
	case nil:
		return 0
	case coordinator.Error:
		return uint64(e)
	case wire.Error:
		return wireFaults + uint64(e)
	case fault:
		return uint64(e)
	}
	return uint64(errData)
}

func (c *call) run() error {
	r := wire.NewReader(c.data)
	op := r.U8()
	if r.Err() != wire.OK {
		return errData
	}
	switch op {
	case opCreate:
		return c.create(&r)
	case opApply:
		return c.apply(&r)
	case opWrite:
		return c.write(&r)
	case opClose:
		return c.close(&r)
	case opJudge:
		return c.judge(&r)
	}
	return c.test(op, &r)
}

func (c *call) create(r *wire.Reader) error {
	if c.n < 5 || c.n > 7 {
		return errAccounts
	}
	run, sender := c.list[0], c.list[1]
	if err := c.own(run); err != nil {
		return err
	}
	if run.signer == 0 || sender.signer == 0 {
		return errSigner
	}
	l, config := coordinator.ReadLimits(r), coordinator.ReadConfig(r)
	if e := r.Done(); e != wire.OK {
		return e
	}
	vault := 5
	if config.VerificationPercent > 0 {
		if c.n < 6 {
			return errReferee
		}
		if err := c.sealRules(c.list[5], run, sender); err != nil {
			return err
		}
		vault = 6
	}
	if config.Clock > 0 { // no replicas follow another chain here
		return coordinator.ErrUnsupported
	}
	state, t, err := split(run, coordinator.Size(l))
	if err != nil {
		return err
	}
	if magic(run) != 0 {
		return errKind
	}
	if c.n > vault {
		if c.n > vault+1 {
			return errAccounts
		}
		if err := c.openVault(run, c.list[vault], t); err != nil {
			return err
		}
	}
	if _, err = coordinator.Create(state, l, config, now(sender)); err != nil {
		return err
	}
	if err := c.seal(c.list[3], sender, config.SpecHash); err != nil {
		return err
	}
	return c.register(config.Name)
}

// Flags of apply.
const (
	flagBuffer = 1 // the message is in a buffer
	flagValue  = 2 // tokens come in
	flagPayout = 4 // tokens go out
	flagRules  = 8 // the run verifies results
	flagWork   = 16
)

func (c *call) apply(r *wire.Reader) error {
	flags, value := r.U8(), r.U64()
	message := r.Rest()
	if r.Err() != wire.OK || flags > flagBuffer|flagValue|flagPayout|flagRules|flagWork {
		return errData
	}
	var b book
	if err := c.take(flags, &b); err != nil {
		return err
	}
	if err := c.own(b.run); err != nil {
		return err
	}
	if b.sender.signer == 0 {
		return errSigner
	}
	if b.buffer != nil {
		if len(message) > 0 {
			return errData
		}
		if err := c.owns(b.buffer); err != nil {
			return err
		}
		if magic(b.buffer) != bufferMagic {
			return errKind
		}
		message = b.buffer.data()[bufferHeader:]
	}
	s, t, err := attach(b.run)
	if err != nil {
		return err
	}
	env := now(b.sender)
	env.Value = value
	if (s.Config().VerificationPercent > 0) != (b.rules != nil) || b.rules == nil && b.work != nil {
		return errReferee
	}
	if b.rules != nil {
		if env.Referee, err = c.arbiter(&b); err != nil {
			return err
		}
	}
	m, err := coordinator.ParseMessage(message)
	if err != nil {
		return err
	}
	env.Work = units.Work(uint64(s.Limits().Members), m)
	if err := s.Apply(env, m); err != nil {
		return err
	}
	t.count(s)
	return c.settle(s, &b, t, value)
}

// tail is what the program keeps behind a run's state.
//
//	vault, 32 bytes: the token account of the run's tokens; zero: the run has none
//	bump, U8: of the authority's address
//	U8: 1 while a closing goes on
//	6 zeros
//	U64: how many messages were applied, so that a reader of these 64 bytes sees every change
//	zeros
type tail []byte

const (
	tailBytes    = 64
	tailBump     = 32
	tailClosing  = 33
	tailMessages = 40
)

func (t tail) vault() *[32]byte { return (*[32]byte)(unsafe.Pointer(&t[0])) }

// count notes that a message was applied, which left the state s.
func (t tail) count(s coordinator.State) {
	*(*uint64)(unsafe.Pointer(&t[tailMessages]))++
	t[tailClosing] = 0
	if s.Closing() {
		t[tailClosing] = 1
	}
}

// attach returns the state in a run's account, and the program's tail.
func attach(run *account) (s coordinator.State, t tail, err error) {
	b := run.data()
	if len(b) < tailBytes {
		return s, nil, errLength
	}
	n := len(b) - tailBytes
	s, err = coordinator.Attach(b[:n])
	return s, tail(b[n:]), err
}

// split returns the places of the state and the tail in an account that is to become a run.
func split(run *account, size int) ([]byte, tail, error) {
	b := run.data()
	if len(b) != size+tailBytes {
		return nil, nil, errLength
	}
	return b[:size], tail(b[size:]), nil
}

// close gives an account's rent to whom it belongs, and leaves zeros.
func (c *call) close(r *wire.Reader) error {
	if r.Done() != wire.OK {
		return errData
	}
	if c.n < 2 {
		return errAccounts
	}
	a, author := c.list[0], c.list[1]
	if err := c.own(a); err != nil {
		return err
	}
	if author.signer == 0 {
		return errSigner
	}
	if author.writable == 0 {
		return errWritable
	}
	switch magic(a) {
	case bufferMagic, workMagic:
		if c.n != 2 {
			return errAccounts
		}
		if bufferAuthor(a) != author.key {
			return errAuthor
		}
	default:
		if err := c.closeRun(); err != nil {
			return err
		}
	}
	empty(a, author)
	return nil
}

// closeRun gives the rent of a finished run's specification and rules to its owner.
func (c *call) closeRun() error {
	run, owner := c.list[0], c.list[1]
	s, _, err := attach(run)
	if err != nil {
		return err
	}
	config := s.Config()
	if config.Owner != key.Public(owner.key) {
		return errAuthor
	}
	if s.Phase() != coordinator.Finished || s.Escrow() > 0 {
		return errLive
	}
	if c.n != 3 && c.n != 4 {
		return errAccounts
	}
	if (config.VerificationPercent > 0) != (c.n == 4) {
		return errReferee
	}
	spec := c.list[2]
	if err := c.own(spec); err != nil {
		return err
	}
	if magic(spec) != specMagic {
		return errKind
	}
	if bufferAuthor(spec) != owner.key {
		return errAuthor
	}
	if specHash(spec) != config.SpecHash {
		return errSpec
	}
	if c.n == 4 {
		if err := c.ownRules(c.list[3], run); err != nil {
			return err
		}
		empty(c.list[3], owner)
	}
	empty(spec, owner)
	return nil
}

// empty gives the rent of an account away and leaves zeros.
func empty(a, to *account) {
	clear(a.data())
	to.lamports += a.lamports
	a.lamports = 0
}

func main() {}
