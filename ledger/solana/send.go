package solana

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mr-tron/base58"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/retry"
)

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
	return a.settle(ctx, signers, units, price, list)
}

// settle is send for that many compute units at a price.
func (a *acting) settle(ctx context.Context, signers []solana.Signer, units uint32, price uint64, list []solana.Instruction) error {
	for ; ; price = min(2*price+priceStep, priceMax) {
		budget := solana.Budget(units, price)
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
		settled, err := a.await(ctx, tx, latest.Value.Last, slices.Concat(budget, list))
		if settled || err != nil {
			return err
		}
		a.log.Debug("a transaction has expired and is signed again, for more", "price", price)
	}
}

// await sends a transaction of instructions until a block has it, or until none can have it any
// more.
func (a *acting) await(ctx context.Context, tx []byte, last uint64, list []solana.Instruction) (settled bool, err error) {
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
		now, statuses, err := a.outcome(ctx, signature)
		if err != nil {
			return false, err
		}
		if len(statuses.Value) == 1 && statuses.Value[0] != nil {
			if s := statuses.Value[0]; s.Status != "processed" {
				return true, a.told(ctx, s.Err, list)
			}
		} else if now.Height > last && statuses.Context.Slot >= now.Slot {
			return false, nil // of a node that lags behind the first one it would say nothing
		}
		if err := retry.Wait(ctx, min(a.poll, resend)/2); err != nil {
			return false, err
		}
	}
}

// epochInfo says where the chain is.
type epochInfo struct {
	Slot   uint64 `json:"absoluteSlot"`
	Height uint64 `json:"blockHeight"`
}

// statuses are what became of transactions, as of a slot.
type statuses struct {
	Context struct {
		Slot uint64 `json:"slot"`
	} `json:"context"`
	Value []*struct {
		Err    json.RawMessage `json:"err"`
		Status string          `json:"confirmationStatus"`
	} `json:"value"`
}

// outcome asks where the chain is and then what became of a transaction. It retries
// until it knows: signing another transaction before that could pay twice.
func (a *acting) outcome(ctx context.Context, signature string) (now epochInfo, s statuses, err error) {
	err = a.insist(ctx, func() error {
		if err := a.call(ctx, &now, "getEpochInfo", map[string]any{"commitment": commitment}); err != nil {
			return err
		}
		return a.call(ctx, &s, "getSignatureStatuses", []string{signature}, map[string]any{"searchTransactionHistory": true})
	})
	return now, s, err
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
	return solana.Asked(r.Value.Units), a.told(ctx, r.Value.Err, slices.Concat(budget, list))
}

// priceMax bounds what is paid for a compute unit, in millionths of a lamport: 0.0014 SOL for the
// largest message.
const priceMax = 1_000_000

// priceStep is the least by which the price rises when no block took a transaction in time.
const priceStep = 10_000

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

// refusal returns what a transaction of instructions failed with: an errShort for want of SOL.
func refusal(program solana.Program, text json.RawMessage, list []solana.Instruction) error {
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
		if bytes.Contains(text, []byte("InsufficientFundsFor")) || string(text) == `"AccountNotFound"` {
			return errShort("fees and rent")
		}
		return fmt.Errorf("solana refuses the transaction: %s", text)
	}
	n := *inner.Custom
	if n == 1012 {
		return errors.New("the run is not finished, or still holds tokens: its members claim theirs, and entrain run close --refund takes back the treasury")
	}
	code, known := codes[n]
	if at < 0 || at >= len(list) {
		return fmt.Errorf("solana refuses the transaction: %s", text)
	}
	switch {
	case n == 1 && list[at].Program != solana.TokenProgram && list[at].Program != solana.Address(program):
		return errShort("rent")
	case n == 1: // in the words of the token program
		return refuse(host.CodeFunds, "the key has too few of the run's token, or too little SOL for rent: entrain wallet show says what it has")
	case known:
		return refuse(code, "")
	case n < 1000:
		return refuse(host.CodeCoordinator+host.Code(n), "")
	}
	return fmt.Errorf("the program refuses the transaction with code %d", n)
}

// errShort says for what the key has too little SOL.
type errShort string

func (e errShort) Error() string { return "the key has too little SOL for " + string(e) }

// told returns what a transaction of instructions failed with, and says what the key has of what it
// lacks.
func (a *acting) told(ctx context.Context, text json.RawMessage, list []solana.Instruction) error {
	err := refusal(a.program, text, list)
	what, short := err.(errShort)
	if !short {
		return err
	}
	_, own, err := a.accounts(ctx, nil, a.signer.Address())
	if err != nil {
		return err
	}
	return a.short(own[0], string(what))
}

// short returns the refusal of what takes more SOL than the key's account has.
func (a *acting) short(own *account, what string) error {
	has := uint64(0)
	if own != nil {
		has = own.Lamports
	}
	return refuse(host.CodeFunds, fmt.Sprintf("%v, the key's account, has %s SOL, too little for %s: send it some", a.signer.Address(), inSOL(has), what))
}

// inSOL shows lamports as SOL.
func inSOL(lamports uint64) string { return fmt.Sprintf("%.3f", float64(lamports)/1e9) }
