package solana

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mr-tron/base58"

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
	boxes  atomic.Uint64 // buffers made
}

var _ ledger.Ledger = (*acting)(nil)

// As returns a ledger that acts for the key of k. Its account must have SOL for fees and rent.
func (c *Client) As(k key.Private) ledger.Ledger {
	return &acting{Client: c, signer: solana.NewSigner(k)}
}

// Submit implements ledger.Ledger, for host.CreateRun, host.RunMessage and host.Announce. What else
// a chain of entrain's own does, Solana's programs and wallets do.
func (a *acting) Submit(ctx context.Context, body host.Body, done func(error)) {
	a.start(ctx, func(ctx context.Context) {
		err := a.insist(ctx, func() error {
			switch b := body.(type) {
			case host.CreateRun:
				return a.create(ctx, b)
			case host.RunMessage:
				return a.message(ctx, b)
			case host.Announce:
				return a.announce(ctx, b)
			}
			return fmt.Errorf("%T is not for Solana: use its own programs and wallets", body)
		})
		if ctx.Err() == nil {
			done(err)
		}
	})
}

// refuse returns a refusal as other ledgers make it.
func refuse(code host.Code, text string) error { return &host.TxError{Code: code, Text: text} }

// message sends a message to a run. What does not fit a transaction goes through a buffer.
func (a *acting) message(ctx context.Context, b host.RunMessage) error {
	m, err := coordinator.ParseMessage(b.Message)
	if err != nil {
		return refuse(host.CodeBadMessage, err.Error())
	}
	if b.From != "" {
		return refuse(host.CodeUnknownPool, "Solana has no pools")
	}
	p, err := a.find(ctx, b.Run)
	if errors.Is(err, ledger.ErrUnknownRun) {
		return refuse(host.CodeUnknownRun, b.Run)
	}
	if err != nil {
		return err
	}
	sending := solana.Sending{Run: p.run, Sender: a.signer.Address(), Message: m, Value: b.Value}
	before, err := a.tokens(ctx, &sending)
	if err != nil {
		return err
	}
	var after []solana.Instruction
	if len(b.Message) > solana.WritePart {
		label := fmt.Sprintf("message-%d-%d", a.boxes.Add(1), time.Now().UnixMilli())
		if sending.Buffer, err = a.write(ctx, label, b.Message, len(b.Message)); err != nil {
			return err
		}
		after = append(after, a.program.Close(sending.Buffer, a.signer.Address()))
	}
	apply, err := a.program.Apply(sending)
	if err != nil {
		return err
	}
	return a.send(ctx, slices.Concat(before, []solana.Instruction{apply}, after))
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

// write puts bytes into a buffer for most bytes, which it makes if it is not there.
func (a *acting) write(ctx context.Context, label string, b []byte, most int) (solana.Address, error) {
	own := a.signer.Address()
	at := a.program.BufferAt(own, label)
	_, list, err := a.accounts(ctx, nil, at)
	if err != nil {
		return at, err
	}
	var first []solana.Instruction
	if list[0] == nil {
		rent, err := a.rent(ctx, solana.BufferBytes(most))
		if err != nil {
			return at, err
		}
		first = append(first, a.program.NewBuffer(own, label, rent, most))
	}
	for from := 0; from < len(b); from += solana.WritePart {
		part := b[from:min(from+solana.WritePart, len(b))]
		if err := a.send(ctx, append(first, a.program.Write(at, own, from, part))); err != nil {
			return at, err
		}
		first = nil
	}
	return at, nil
}

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
	var seed [32]byte
	rand.Read(seed[:])
	run := solana.NewSigner(key.FromSeed(seed)) // signs once; the account is the program's then
	size := solana.RunBytes(b.Limits)
	rent, err := a.rent(ctx, size)
	if err != nil {
		return err
	}
	var vault solana.Address
	var list []solana.Instruction
	if a.mint != (solana.Address{}) {
		authority, err := a.program.Authority(run.Address())
		if err != nil {
			return err
		}
		if vault, err = solana.Purse(authority, a.mint); err != nil {
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
	create, err := a.program.Create(run.Address(), own, spec, vault, b.Limits, b.Config)
	if err != nil {
		return err
	}
	list = append(list, solana.NewAccount(own, run.Address(), solana.Address(a.program), rent, size), create)
	return a.send(ctx, list, run)
}

// announcement is what begins the buffers with the addresses of a run's participants.
func announcement(run solana.Address) solana.Address {
	return solana.Address(wire.Sum("entrain/solana/announcement", run[:]))
}

// announcementMax holds as many addresses as a participant may announce.
const announcementMax = 32 + 1 + host.AddrsMax*(4+host.AddrBytesMax)

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
	_, err = a.write(ctx, "peer-"+hex.EncodeToString(kind[:])[:27], text, announcementMax)
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

// resend is how often a transaction is sent that no block has: leaders drop them.
const resend = 2 * time.Second

// send carries out instructions in one transaction, and waits until a block has it. A transaction
// whose blockhash has expired, and that is in no block, is signed again: whatever it says again,
// the program refuses or takes as the same.
func (a *acting) send(ctx context.Context, list []solana.Instruction, more ...solana.Signer) error {
	signers := append([]solana.Signer{a.signer}, more...)
	units, err := a.simulate(ctx, signers, list)
	if err != nil {
		return err
	}
	price, err := a.price(ctx, list)
	if err != nil {
		return err
	}
	budget := solana.Budget(units, price)
	for {
		var latest struct {
			Value struct {
				Blockhash solana.Address `json:"blockhash"`
				Last      uint64         `json:"lastValidBlockHeight"`
			} `json:"value"`
		}
		if err := a.call(ctx, &latest, "getLatestBlockhash", map[string]any{"commitment": commitment}); err != nil {
			return err
		}
		tx, err := solana.Transaction(latest.Value.Blockhash, signers, slices.Concat(budget, list)...)
		if err != nil {
			return err
		}
		settled, err := a.await(ctx, tx, latest.Value.Last, len(budget))
		if settled || err != nil {
			return err
		}
		a.log.Debug("a transaction has expired and is signed again")
	}
}

// await sends a transaction until a block has it, or until none can have it any more.
func (a *acting) await(ctx context.Context, tx []byte, last uint64, before int) (settled bool, err error) {
	signature := base58.Encode(tx[1:65])
	text := base64.StdEncoding.EncodeToString(tx)
	var sent time.Time
	for {
		if time.Since(sent) >= resend {
			var ignored string
			// Its failure says nothing: the block may have the transaction already.
			if err := a.call(ctx, &ignored, "sendTransaction", text, map[string]any{"encoding": "base64", "skipPreflight": true}); err != nil {
				a.log.Debug("sending a transaction", "err", err)
			}
			sent = time.Now()
		}
		var height uint64 // before the statuses: a block between the two has no time to hide
		if err := a.call(ctx, &height, "getBlockHeight", map[string]any{"commitment": commitment}); err != nil {
			return false, err
		}
		var statuses struct {
			Value []*struct {
				Err    json.RawMessage `json:"err"`
				Status string          `json:"confirmationStatus"`
			} `json:"value"`
		}
		if err := a.call(ctx, &statuses, "getSignatureStatuses", []string{signature}, map[string]any{"searchTransactionHistory": true}); err != nil {
			return false, err
		}
		if len(statuses.Value) == 1 && statuses.Value[0] != nil {
			if s := statuses.Value[0]; s.Status != "processed" {
				return true, refusal(s.Err, before)
			}
		} else if height > last {
			return false, nil
		}
		if err := retry.Wait(ctx, min(a.poll, resend)/2); err != nil {
			return false, err
		}
	}
}

// simulate has an endpoint try a transaction, and returns the compute units to ask for.
func (a *acting) simulate(ctx context.Context, signers []solana.Signer, list []solana.Instruction) (uint32, error) {
	budget := solana.Budget(solana.UnitsMax, 0)
	tx, err := solana.Transaction([32]byte{}, signers, slices.Concat(budget, list)...)
	if err != nil {
		return 0, err
	}
	var r struct {
		Value struct {
			Err   json.RawMessage `json:"err"`
			Units uint64          `json:"unitsConsumed"`
		} `json:"value"`
	}
	err = a.call(ctx, &r, "simulateTransaction", base64.StdEncoding.EncodeToString(tx),
		map[string]any{"encoding": "base64", "sigVerify": false, "replaceRecentBlockhash": true, "commitment": commitment})
	if err != nil {
		return 0, err
	}
	// A message costs more if another one comes before it, which joins or ends a phase.
	return uint32(min(solana.UnitsMax, 2*r.Value.Units+100_000)), refusal(r.Value.Err, len(budget))
}

// priceMax bounds what is paid for a compute unit, in millionths of a lamport: 0.0014 SOL for the
// largest message.
const priceMax = 1_000_000

// price returns the median of what was paid of late for the accounts that the instructions write.
func (a *acting) price(ctx context.Context, list []solana.Instruction) (uint64, error) {
	var writable []solana.Address
	for _, in := range list {
		for _, r := range in.Accounts {
			if r.Writable && !slices.Contains(writable, r.Address) {
				writable = append(writable, r.Address)
			}
		}
	}
	var fees []struct {
		Price uint64 `json:"prioritizationFee"`
	}
	if err := a.call(ctx, &fees, "getRecentPrioritizationFees", writable); err != nil || len(fees) == 0 {
		return 0, err
	}
	paid := make([]uint64, len(fees))
	for i, f := range fees {
		paid[i] = f.Price
	}
	slices.Sort(paid)
	return min(paid[len(paid)/2], priceMax), nil
}

// The program's reasons for refusing that other ledgers have codes for (chain/solana/program).
var codes = map[uint32]host.Code{1008: host.CodeFunds, 1010: host.CodeNoReferee, 1013: host.CodeRunExists, 1014: host.CodeBadSpec}

// refusal returns what a transaction failed with. Its first instructions, before in number, only
// ask for resources.
func refusal(text json.RawMessage, before int) error {
	if len(text) == 0 || string(text) == "null" {
		return nil
	}
	var failed struct {
		InstructionError []json.RawMessage
	}
	var at int
	var inner struct{ Custom *uint32 }
	if json.Unmarshal(text, &failed) != nil || len(failed.InstructionError) != 2 ||
		json.Unmarshal(failed.InstructionError[0], &at) != nil || json.Unmarshal(failed.InstructionError[1], &inner) != nil || inner.Custom == nil {
		if name := string(text); name == `"AccountNotFound"` || name == `"InsufficientFundsForFee"` {
			return refuse(host.CodeFunds, "the key's account has no SOL for fees")
		}
		return fmt.Errorf("solana refuses the transaction: %s", text)
	}
	n := *inner.Custom
	code, known := codes[n]
	switch {
	case n == 1 && at >= before: // in the words of the system program and the token program
		return refuse(host.CodeFunds, "of SOL or of the run's token")
	case known:
		return refuse(code, "")
	case n < 1000:
		return refuse(host.CodeCoordinator+host.Code(n), "")
	}
	return fmt.Errorf("the program refuses the transaction with code %d", n)
}
