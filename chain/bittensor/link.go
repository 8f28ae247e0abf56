package bittensor

import (
	"context"
	"fmt"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// A hotkey's commitment on its subnet binds it to a key of runs, signed both ways: the hotkey signs
// the transaction, and the commitment has the other key's signature. Its bytes are
//
//	"entrain" | U8 1 | public key | signature | address of a bucket, UTF-8
//
// and the signature is of the chain's genesis, the subnet and the hotkey.
const (
	linkMagic  = "entrain\x01"
	linkDomain = "entrain/bittensor"
	linkFixed  = len(linkMagic) + 32 + 64

	rawMax = 128 // bytes of a commitment of the first kind
	bigMax = 512 // and of the second
)

// whereMax is the most bytes that a commitment has for a bucket's address.
const whereMax = bigMax - linkFixed

func (s Subnet) linkMessage(hotkey Account) []byte {
	sum := wire.Sum(linkDomain, s.Client.genesis, s.netuid(), hotkey[:])
	return sum[:]
}

// Commit binds a hotkey to a member's key, and to the address of its bucket if it has one. It takes
// both keys.
func (s Subnet) Commit(ctx context.Context, hotkey Key, member key.Private, where string) error {
	call, err := s.Client.meta.call("Commitments", "set_commitment")
	if err != nil {
		return err
	}
	if len(where) > whereMax {
		return fmt.Errorf("the bucket's address has %d bytes; a commitment holds %d", len(where), whereMax)
	}
	pub := member.Public()
	sig := member.Sign(linkDomain, s.linkMessage(hotkey.Account()))
	link := append([]byte(linkMagic), pub[:]...)
	link = append(append(link, sig[:]...), where...)
	call = append(call, s.netuid()...)
	call = append(call, 1<<2) // one field
	return s.Client.submit(ctx, hotkey, appendData(call, link), s.Poll)
}

// appendData encodes pallet_commitments' Data, whose first byte tells the length too.
func appendData(dst, b []byte) []byte {
	if len(b) <= rawMax {
		return append(append(dst, byte(len(b)+1)), b...)
	}
	return appendBytes(append(dst, 136), b)
}

// link returns what a hotkey has committed. It is zero for a hotkey that has committed to something
// else, or without the other key's signature.
func (s Subnet) link(ctx context.Context, hotkey Account) (member key.Public, where string, err error) {
	if s.Client.meta.pallets["Commitments"] == nil {
		return member, "", nil
	}
	r, err := s.Client.get(ctx, "Commitments", "CommitmentOf", s.netuid(), hotkey[:])
	if err != nil {
		return member, "", err
	}
	r.u64() // the deposit
	r.u32() // the block
	for range r.count() {
		b := r.data()
		if len(b) < linkFixed || string(b[:len(linkMagic)]) != linkMagic {
			continue
		}
		b = b[len(linkMagic):]
		var sig key.Signature
		copy(member[:], b)
		copy(sig[:], b[len(member):])
		if r.err == nil && key.Verify(member, linkDomain, s.linkMessage(hotkey), sig) {
			return member, string(b[len(member)+len(sig):]), nil
		}
	}
	return key.Public{}, "", nil
}

// data reads pallet_commitments' Data, and returns its bytes if they stand there plainly.
func (r *reader) data() []byte {
	switch n := r.u8(); {
	case n == 0, n == 135: // nothing, and a flag
	case n <= rawMax+1:
		return r.take(int(n) - 1)
	case n < 134: // hashes
		r.take(32)
	case n == 134: // encrypted for a time
		r.bytes()
		r.u64()
	case n == 136:
		return r.bytes()
	default:
		r.err = errShort
	}
	return nil
}
