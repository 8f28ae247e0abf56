package solana

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/wire"
)

// acting is a ledger for one key, which also pays the fees of what it submits.
type acting struct {
	*Client
	signer solana.Signer
	boxes  sync.Map    // a mutex for each buffer of a message, by its label
	ruled  sync.Map    // the rules' account of each run, by the run's
	swept  atomic.Bool // takeBack has nothing to do
}

var _ ledger.Ledger = (*acting)(nil)

// As returns a ledger that acts for the key of k. Its account must have SOL for fees and rent.
func (c *Client) As(k key.Private) ledger.Ledger {
	return &acting{Client: c, signer: solana.NewSigner(k)}
}

// Patience is how long a body may take: it may be many transactions, each of which expires after a
// minute if no block takes it.
func (a *acting) Patience() time.Duration { return 10 * time.Minute }

// Submit implements ledger.Ledger. What only a chain of entrain's own does is refused with the
// reason.
func (a *acting) Submit(ctx context.Context, body host.Body, done func(error)) {
	a.start(ctx, func(ctx context.Context) {
		a.takeBack(ctx)
		err := a.insist(ctx, func() error {
			switch b := body.(type) {
			case host.CreateRun:
				return a.create(ctx, b)
			case host.RunMessage:
				return a.message(ctx, b)
			case host.Announce:
				return a.announce(ctx, b)
			case host.Transfer:
				return a.transfer(ctx, b)
			case host.CloseRun:
				return a.close(ctx, b)
			}
			return refuseKind(body)
		})
		if ctx.Err() == nil {
			done(err)
		}
	})
}

// refuse returns a refusal as other ledgers make it.
func refuse(code host.Code, text string) error { return &host.TxError{Code: code, Text: text} }

// refuseKind says why a body is not for Solana, and what to do.
func refuseKind(body host.Body) error {
	switch body.(type) {
	case host.CreatePool, host.Lend, host.Collect, host.ClosePool:
		return errPools
	case host.Admit, host.Delegate, host.Revoke, host.Require:
		return errors.New("a run on Solana has no list of who may join, and no delegations: keep strangers out by a stake, or put the run on a chain of entrain's own")
	case host.SetName:
		return errNames
	case host.ClaimFor:
		return errors.New("on Solana each member claims for itself: leave out --member, and use the member's key")
	}
	return errReplicas
}

var (
	errPools    = errors.New("there are no pools on Solana: stake your own tokens, which anybody can send you with entrain wallet send")
	errReplicas = errors.New("the blocks are made by Solana's own validators: entrain has no replicas there")
)

// transfer sends tokens to a key, whose account for them it makes if it is not there.
func (a *acting) transfer(ctx context.Context, b host.Transfer) error {
	if a.mint == (solana.Address{}) {
		return errNoToken
	}
	list, err := solana.Pay(a.signer.Address(), solana.Address(b.To), a.mint, b.Amount)
	if err != nil {
		return err
	}
	return a.send(ctx, list)
}

// close removes a finished run without tokens, and gives its owner the rent back.
func (a *acting) close(ctx context.Context, b host.CloseRun) error {
	p, err := a.find(ctx, b.Run)
	if errors.Is(err, ledger.ErrUnknownRun) {
		return refuse(host.CodeUnknownRun, b.Run)
	}
	if err != nil {
		return err
	}
	rules, err := a.rulesFor(ctx, b.Run, p.run)
	if err != nil {
		return err
	}
	return a.send(ctx, []solana.Instruction{a.program.CloseRun(p.run, a.signer.Address(), p.spec, rules)})
}

// message sends a message to a run. What does not fit a transaction goes through a buffer.
func (a *acting) message(ctx context.Context, b host.RunMessage) (err error) {
	m, err := coordinator.ParseMessage(b.Message)
	if err != nil {
		return refuse(host.CodeBadMessage, err.Error())
	}
	if b.From != "" {
		return errPools
	}
	p, err := a.find(ctx, b.Run)
	if errors.Is(err, ledger.ErrUnknownRun) {
		return refuse(host.CodeUnknownRun, b.Run)
	}
	if err != nil {
		return err
	}
	sending := solana.Sending{Run: p.run, Sender: a.signer.Address(), Message: m, Value: b.Value}
	if sending.Rules, err = a.rulesFor(ctx, b.Run, p.run); err != nil {
		return err
	}
	if err := a.affords(ctx, m); err != nil {
		return err
	}
	before, err := a.tokens(ctx, &sending)
	if err != nil {
		return err
	}
	var after []solana.Instruction
	_, evidence := m.(coordinator.Evidence)
	if len(b.Message) > solana.WritePart || evidence {
		label := messageLabel(p.run, b.Message)
		box, _ := a.boxes.LoadOrStore(label, new(sync.Mutex))
		box.(*sync.Mutex).Lock()
		defer box.(*sync.Mutex).Unlock()
		if evidence {
			if over, err := a.over(ctx, p.run, b.Message); over || err != nil {
				return cmp.Or(err, refuse(host.CodeCoordinator+host.Code(coordinator.ErrDispute), ""))
			}
		}
		defer func() {
			if err != nil {
				a.swept.Store(false)
				a.takeBack(ctx)
			}
		}()
		if sending.Buffer, err = a.write(ctx, label, b.Message, len(b.Message)); err != nil {
			return err
		}
		after = append(after, a.program.Close(sending.Buffer, a.signer.Address()))
		if evidence {
			closing, err := a.judge(ctx, &sending, workLabel(label))
			if err != nil {
				return err
			}
			after = append(after, closing...)
		}
	}
	apply, err := a.program.Apply(sending)
	if err != nil {
		return err
	}
	err = a.open(ctx, sending, slices.Concat(before, []solana.Instruction{apply}, after))
	if _, claims := m.(coordinator.Claim); claims && err == nil {
		a.swept.Store(false) // it may be the key's last message
		a.takeBack(ctx)
	}
	return err
}

// ticksMost bounds the ticks that a sender of a message pays to end a closing first: an endpoint
// could name one forever.
const ticksMost = 32

// open sends the instructions of a message to a run. While a closing is under way,
// the run takes none; open gives others a moment to end it, and then ends it itself.
func (a *acting) open(ctx context.Context, s solana.Sending, list []solana.Instruction) error {
	tick, err := a.program.Apply(solana.Sending{Run: s.Run, Sender: s.Sender, Rules: s.Rules, Message: coordinator.Tick{}})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		err := a.send(ctx, list)
		var refused *host.TxError
		if !errors.As(err, &refused) || refused.Code != host.CodeCoordinator+host.Code(coordinator.ErrClosing) || n > ticksMost {
			return err
		}
		if n == 0 {
			err = retry.Wait(ctx, tickStep*a.poll)
		} else {
			err = a.send(ctx, []solana.Instruction{tick})
		}
		if err != nil {
			return err
		}
	}
}

// tokens names the accounts between which a message's tokens move, and returns the instruction that
// makes the receiver's.
func (a *acting) tokens(ctx context.Context, s *solana.Sending) ([]solana.Instruction, error) {
	if _, may := s.Message.(coordinator.Tick); may {
		return nil, nil
	}
	now, data, err := a.read(ctx, s.Run)
	if err != nil {
		return nil, err
	}
	env := coordinator.Env{NowMs: now.TimeMs, Height: now.Height, Sender: key.Public(s.Sender), Value: s.Value}
	payee, paid := now.State.WillPay(env, s.Message)
	if s.Value == 0 && paid == 0 {
		return nil, nil
	}
	if s.Vault = solana.Vault(data); s.Vault == (solana.Address{}) {
		return nil, refuse(host.CodeFunds, "the run has no tokens")
	}
	_, vault, err := a.accounts(ctx, nil, s.Vault)
	if err != nil {
		return nil, err
	}
	if vault[0] == nil || len(vault[0].Data) < 32 {
		return nil, fmt.Errorf("the run's vault %v is gone", s.Vault)
	}
	mint := solana.Address(vault[0].Data)
	if s.Value > 0 {
		if s.From, err = solana.Purse(s.Sender, mint); err != nil {
			return nil, err
		}
	}
	if paid == 0 {
		return nil, nil
	}
	if s.To, err = solana.Purse(solana.Address(payee), mint); err != nil {
		return nil, err
	}
	purse, err := solana.NewPurse(s.Sender, solana.Address(payee), mint)
	return []solana.Instruction{purse}, err
}

// absent reports whether an account is still to be made: a stranger may have sent lamports there.
func absent(a *account) bool { return a == nil || a.Owner == solana.SystemProgram }

// write puts bytes into a buffer for most bytes, which it makes if it is not there. What the buffer
// has already is not sent again.
func (a *acting) write(ctx context.Context, label string, b []byte, most int) (solana.Address, error) {
	own := a.signer.Address()
	at := a.program.BufferAt(own, label)
	_, list, err := a.accounts(ctx, nil, at)
	if err != nil {
		return at, err
	}
	var old []byte
	if !absent(list[0]) {
		if _, old, _ = solana.Buffered(list[0].Data); uint64(len(list[0].Data)) != solana.BufferBytes(most) {
			if err := a.send(ctx, []solana.Instruction{a.program.Close(at, own)}); err != nil {
				return at, err
			}
			list[0], old = nil, nil
		}
	}
	var first []solana.Instruction
	if absent(list[0]) {
		rent, err := a.rent(ctx, solana.BufferBytes(most))
		if err != nil {
			return at, err
		}
		first = a.program.NewBuffer(own, label, rent, most)
	}
	write := func(from int) error {
		part := b[from:min(from+solana.WritePart, len(b))]
		if len(old) >= from+len(part) && bytes.Equal(old[from:from+len(part)], part) {
			return nil
		}
		return a.send(ctx, append(first, a.program.Write(at, own, from, part)))
	}
	if err := write(0); err != nil { // it makes the account
		return at, err
	}
	first = nil
	var group sync.WaitGroup
	errs := make([]error, writers)
	for i := range writers {
		group.Go(func() {
			for from := solana.WritePart * (1 + i); from < len(b) && errs[i] == nil; from += solana.WritePart * writers {
				errs[i] = a.insist(ctx, func() error { return write(from) })
			}
		})
	}
	group.Wait()
	return at, errors.Join(errs...)
}

// writers is how many parts of a buffer are on their way at the same time: evidence has a deadline.
const writers = 16

func (a *acting) rent(ctx context.Context, size uint64) (lamports uint64, err error) {
	err = a.call(ctx, &lamports, "getMinimumBalanceForRentExemption", size)
	return lamports, err
}

// create publishes a run's specification and makes the run.
func (a *acting) create(ctx context.Context, b host.CreateRun) error {
	own := a.signer.Address()
	if b.Config.Owner != key.Public(own) {
		return refuse(host.CodeNotOwner, b.Config.Owner.String())
	}
	if faults := b.Config.Check(b.Limits); b.Limits.Check() != nil || len(faults) > 0 {
		return refuse(host.CodeBadConfig, fmt.Sprint(faults))
	}
	if host.SpecHash(b.Spec) != b.Config.SpecHash {
		return refuse(host.CodeBadSpec, "")
	}
	if b.Config.Clock > 0 {
		return refuse(host.CodeClock, "exchange.clock = \"bittensor\" needs a chain of entrain's own, whose replicas follow Bittensor")
	}
	switch _, err := a.find(ctx, b.Config.Name); {
	case err == nil:
		return refuse(host.CodeRunExists, b.Config.Name)
	case !errors.Is(err, ledger.ErrUnknownRun):
		return err
	}
	spec, err := a.write(ctx, "spec-"+hex.EncodeToString(b.Config.SpecHash[:])[:27], b.Spec, len(b.Spec))
	if err != nil {
		return err
	}
	n := solana.Creation{Sender: own, Spec: spec, Limits: b.Limits, Config: b.Config}
	if b.Config.VerificationPercent > 0 {
		if n.Rules, err = a.writeRules(ctx, b); err != nil {
			return err
		}
	}
	var seed [32]byte
	rand.Read(seed[:])
	run := solana.NewSigner(key.FromSeed(seed)) // signs once; the account is the program's then
	size := solana.RunBytes(b.Limits)
	rent, err := a.rent(ctx, size)
	if err != nil {
		return err
	}
	n.Run = run.Address()
	if a.mint != (solana.Address{}) {
		authority, err := a.program.Authority(run.Address())
		if err != nil {
			return err
		}
		if n.Vault, err = solana.Purse(authority, a.mint); err != nil {
			return err
		}
		purse, err := solana.NewPurse(own, authority, a.mint)
		if err != nil {
			return err
		}
		if err := a.send(ctx, []solana.Instruction{purse}); err != nil {
			return err
		}
	}
	create, err := a.program.Create(n)
	if err != nil {
		return err
	}
	err = a.send(ctx, []solana.Instruction{solana.NewAccount(own, run.Address(), solana.Address(a.program), rent, size), create}, run)
	if isRefusal(err) {
		a.discard(ctx, n.Spec, n.Rules)
	}
	return err
}

// discard closes buffers that nobody needs any more, for their rent.
func (a *acting) discard(ctx context.Context, buffers ...solana.Address) {
	for _, at := range buffers {
		if at == (solana.Address{}) {
			continue
		}
		if err := a.send(ctx, []solana.Instruction{a.program.Close(at, a.signer.Address())}); err != nil {
			a.log.Debug("taking back rent", "err", err)
		}
	}
}

// announcement is what begins the buffers with the addresses of a run's participants.
func announcement(run solana.Address) solana.Address {
	return solana.Address(wire.Sum("entrain/solana/announcement", run[:]))
}

// announcementMax holds as many addresses as a participant may announce. All buffers of them are
// that long: one that had to be replaced by a longer one would be gone for a moment, which looks as
// if another process had the key.
const announcementMax = kindBytes + 1 + host.AddrsMax*(4+host.AddrBytesMax)

// announce writes the participant's addresses into a buffer of its own.
func (a *acting) announce(ctx context.Context, b host.Announce) error {
	p, err := a.find(ctx, b.Run)
	if errors.Is(err, ledger.ErrUnknownRun) {
		return refuse(host.CodeUnknownRun, b.Run)
	}
	if err != nil {
		return err
	}
	kind := announcement(p.run)
	text := wire.AppendU8(slices.Clone(kind[:]), uint8(len(b.Addrs)))
	for _, addr := range b.Addrs {
		text = wire.AppendString(text, addr)
	}
	if len(text) > announcementMax {
		return refuse(host.CodeMalformed, fmt.Sprintf("%d addresses are too many or too long", len(b.Addrs)))
	}
	_, err = a.write(ctx, announcementLabel(kind), text, announcementMax)
	return err
}

// readAddrs reads the addresses of an announcement. What follows them is of older ones.
func readAddrs(b []byte) ([]string, error) {
	r := wire.NewReader(b)
	n := r.U8()
	if n > host.AddrsMax {
		return nil, wire.ErrTooLong
	}
	var addrs []string
	for range n {
		addrs = append(addrs, r.String(host.AddrBytesMax))
	}
	return addrs, r.Err().OrNil()
}
