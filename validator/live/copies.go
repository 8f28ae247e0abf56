package live

import (
	"errors"
	"slices"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/validator"
	"github.com/entrain-network/entrain/wire"
)

// writeFor bounds writing to the validator's bucket.
const writeFor = 20 * time.Second

// writes reports whether the validator has a bucket of its own. One that is also a miner leaves
// the announcement, and the list of what it lacks, to the miner.
func (v *Validator) writes() bool {
	if v.cfg.Registered == "" || !v.known {
		return false
	}
	_, member := v.state.Find(v.self)
	return !member
}

// announce has the ledger say where the validator's bucket is, until it does. A miner's
// announcement has more addresses, and stays.
func (v *Validator) announce(found []host.Peer) {
	if !v.writes() { // also before the run's state is known
		return
	}
	if _, seated := v.state.Validator(v.self); !seated {
		return
	}
	own := []string{v.cfg.Registered}
	for _, p := range found {
		if p.Key == v.self && (len(p.Addrs) > 1 || slices.Equal(p.Addrs, own)) {
			return
		}
	}
	v.cfg.Ledger.Submit(v.ctx, host.Announce{Run: v.cfg.Run, Addrs: own}, func(error) {})
}

// lack says which results the validator could not get.
func (v *Validator) lack(a validator.Lack) {
	if !v.writes() {
		return
	}
	v.told = true
	v.cfg.Exchange.Put(v.cfg.Exchange.Name(v.cfg.ID, a.Window, bucket.KindLack, wire.Hash{}), a.Members, v.within(writeFor, 8), func(err error) {
		if err != nil && !v.ended {
			v.note("saying which results of window %d this validator lacks: %v", a.Window, err)
		}
	})
}

// tidy removes what was said about earlier windows.
func (v *Validator) tidy(before coordinator.Round) {
	if !v.told {
		return
	}
	v.told = false
	v.cfg.Exchange.DeleteBefore(v.cfg.ID, before, nil, writeFor, func(_ int, err error) {
		if err != nil && !v.ended {
			v.note("removing old lists from the bucket: %v", err)
		}
	})
}

// findCopy looks for a witness's copy of a result, and then in its author's bucket.
func (v *Validator) findCopy(a validator.Fetch) {
	if len(a.From) == 0 || v.ended {
		v.fetch(a)
		return
	}
	from := a.From[0]
	a.From = a.From[1:]
	at, ok := v.where[from]
	if !ok {
		v.findCopy(a)
		return
	}
	var r Result
	want := bucket.Want{
		Location: at, Max: dispute.SignedBytes + v.slicer.RevealLen(),
		// the reader compares the commitment with the ID on the chain
		Name: bucket.Name{Run: v.cfg.ID, Window: a.Window, Kind: bucket.KindCopy, Member: from, Content: a.Commitment},
		Check: func(body []byte) error {
			signed, reveal, err := bucket.ParseCopy(body)
			if err != nil {
				return err
			}
			r = Result{Commitment: signed.Commitment, Reveal: reveal}
			return v.opens(reveal, r.Commitment.Payload, a.Seed)
		},
	}
	v.cfg.Exchange.Get(want, v.within(lookFor, 8), func(_ []byte, err error) {
		if v.ended {
			return
		}
		if err == nil {
			v.keep(a, r)
			return
		}
		if !errors.Is(err, bucket.ErrMissing) {
			v.note("copy of a result of member %d in window %d: %v", a.Member, a.Window, err)
		}
		v.findCopy(a)
	})
}
