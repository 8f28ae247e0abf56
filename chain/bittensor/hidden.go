package bittensor

import (
	"context"
	"crypto/rand"
	"encoding/binary"

	"golang.org/x/crypto/blake2b"
)

// Hidden are weights to which a hotkey has committed, on a subnet that wants them hidden at first
// and whose chain does not show them by itself. They count once they are shown, which the subnet
// takes in one of its epochs only.
type Hidden struct {
	shown       []byte // arguments of the call that shows them
	from, until uint64 // blocks between which to try
}

// saltWords are the words of two bytes for which nobody can guess a row.
const saltWords = 8

// hide makes hidden weights of what row returns.
func hide(row, version []byte, salt [saltWords]uint16) Hidden {
	return Hidden{shown: append(appendU16s(row, salt[:]), version...)}
}

// hash is what the hotkey commits to.
func (h Hidden) hash(hotkey Account) [32]byte {
	return blake2b.Sum256(append(hotkey[:], h.shown...))
}

// Hide commits to weights, given as for SetWeights. What it returns is nowhere else: if it is lost
// before it is shown, the weights that were set before stay.
func (s Subnet) Hide(ctx context.Context, hotkey Key, scores map[uint16]float64) (h Hidden, err error) {
	call, err := s.Client.meta.call(module, "commit_weights")
	if err != nil {
		return h, err
	}
	row, version, err := s.row(ctx, scores)
	if err != nil {
		return h, err
	}
	tempo, err := s.Client.get(ctx, module, "Tempo", s.netuid())
	if err != nil {
		return h, err
	}
	period, err := s.Client.get(ctx, module, "RevealPeriodEpochs", s.netuid())
	if err != nil {
		return h, err
	}
	var salt [saltWords]uint16
	for i := range salt {
		var b [2]byte
		rand.Read(b[:])
		salt[i] = binary.LittleEndian.Uint16(b[:])
	}
	h = hide(row, version, salt)
	sum := h.hash(hotkey.Account())
	if err := s.Client.submit(ctx, hotkey, append(append(call, s.netuid()...), sum[:]...), s.Poll); err != nil {
		return h, err
	}
	height, _, err := s.Client.Block(ctx)
	// The subnet takes them in one epoch, which begins at most period epochs after this block and ends
	// after them. The first try is a little before that block, lest few blocks are left.
	epoch := uint64(tempo.u16()) + 1
	same := height + epoch*period.u64()
	h.from, h.until = same-epoch/8, same+epoch
	return h, err
}

// Show sets weights that were hidden, if it is time. It reports whether the matter is closed; the
// error is why they are not set, as yet or for good.
func (s Subnet) Show(ctx context.Context, hotkey Key, h Hidden) (closed bool, err error) {
	height, _, err := s.Client.Block(ctx)
	if err != nil || height < h.from {
		return false, err
	}
	call, err := s.Client.meta.call(module, "reveal_weights")
	if err == nil {
		err = s.Client.submit(ctx, hotkey, append(call, h.shown...), s.Poll)
	}
	return err == nil || height >= h.until, err
}
