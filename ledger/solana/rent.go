package solana

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/mr-tron/base58"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

var evidenceKind = coordinator.Append(nil, coordinator.Evidence{})[0]

const (
	// headBytes is how much of a message's begin names its buffer: its kind, and evidence's dispute.
	headBytes = 1 + 4
	// kindBytes is how much of an announcement's begin names its run.
	kindBytes = 32
)

// messageLabel labels the buffer of a message to a run. Evidence has one for each dispute, so that
// a process continues what one before it has written; other messages have one for each kind.
func messageLabel(run solana.Address, message []byte) string {
	head := message[:1]
	if head[0] == evidenceKind {
		head = message[:headBytes]
	}
	h := wire.Sum("entrain/solana/message", run[:], head)
	return "m-" + hex.EncodeToString(h[:15])
}

// workLabel labels the account for what of a judgement is computed.
func workLabel(message string) string { return "w" + message[1:] }

// announcementLabel labels the buffer of a key's addresses, which begins with kind.
func announcementLabel(kind solana.Address) string { return "peer-" + hex.EncodeToString(kind[:])[:27] }

// over reports whether nobody needs a buffer for a run any more: one of evidence, by its head, once
// the dispute is over, all others once the run is.
func (c *Client) over(ctx context.Context, run solana.Address, head []byte) (bool, error) {
	s, _, err := c.read(ctx, run)
	if errors.Is(err, ledger.ErrUnknownRun) {
		return true, nil // closed
	}
	if err != nil || s.State.Phase() == coordinator.Finished {
		return err == nil, err
	}
	if len(head) == 0 || head[0] != evidenceKind {
		return false, nil
	}
	r := wire.NewReader(head[1:])
	n := r.U32()
	_, open := s.State.Dispute(n)
	return !open && n <= s.State.DisputesTotal(), nil // an endpoint that lags may not know it yet
}

// box is a buffer of a key's that holds a message, or a part of it, or its addresses.
type box struct {
	lamports uint64 // with those of the account of its judgement
	close    []solana.Instruction
	over     bool // nobody needs it any more
	message  bool // no announcement
}

// boxesOf returns the buffers of a key that hold messages to runs and announcements.
func (c *Client) boxesOf(ctx context.Context, own solana.Address) ([]box, error) {
	prefix, header := solana.BufferedBy(own)
	var found []struct {
		Address solana.Address `json:"pubkey"`
		Account account        `json:"account"`
	}
	err := c.call(ctx, &found, "getProgramAccounts", solana.Address(c.program), map[string]any{
		"encoding": "base64", "commitment": commitment, "dataSlice": part{0, header + kindBytes},
		"filters": []any{map[string]any{"memcmp": map[string]any{"offset": 0, "bytes": base58.Encode(prefix)}}},
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	runs, err := c.named(ctx)
	if err != nil {
		return nil, err
	}
	var list []box
	for _, f := range found {
		_, head, ok := solana.Buffered(f.Account.Data)
		if !ok || len(head) < kindBytes {
			continue
		}
		for _, p := range runs {
			head := head // none of an announcement
			b := box{lamports: f.Account.Lamports, close: []solana.Instruction{c.program.Close(f.Address, own)}, message: true}
			label := messageLabel(p.run, head)
			if kind := announcement(p.run); kind == solana.Address(head) {
				label, head, b.message = announcementLabel(kind), nil, false
			}
			if c.program.BufferAt(own, label) != f.Address {
				continue // of another run, or a specification
			}
			if b.over, err = c.over(ctx, p.run, head); err != nil {
				return nil, err
			}
			work := c.program.BufferAt(own, workLabel(label))
			_, accounts, err := c.accounts(ctx, &part{}, work)
			if err != nil {
				return nil, err
			}
			if !absent(accounts[0]) {
				b.lamports += accounts[0].Lamports
				b.close = append(b.close, c.program.Close(work, own))
			}
			list = append(list, b)
		}
	}
	return list, nil
}

// takeBack returns the rent of messages that were cut off, as by a crash, once nobody will send
// them any more, and of announcements of runs that are over. It has no error: the next message
// tries again.
func (a *acting) takeBack(ctx context.Context) {
	if a.swept.Swap(true) {
		return
	}
	list, err := a.boxesOf(ctx, a.signer.Address())
	for _, b := range list {
		if !b.over {
			if b.message {
				a.swept.Store(false)
			}
			continue
		}
		if failed := a.send(ctx, b.close); failed != nil {
			err = failed
			continue
		}
		a.log.Info(fmt.Sprintf("took back %.3f SOL of rent", float64(b.lamports)/1e9))
	}
	if err != nil {
		a.swept.Store(false)
		a.log.Debug("taking back rent", "err", err)
	}
}
