package main

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/merkle"
	"github.com/entrain-network/entrain/model"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/retry"
	"github.com/entrain-network/entrain/tensor"
	"github.com/entrain-network/entrain/wire"
)

// beset has strangers announce themselves beside the owner that serves a run's first model. Greedy ones take it with ever new keys until they
// get no more; liars say that they have it, and send other bytes. It returns how often liars were asked for these.
func beset(t *testing.T, s *shell, run string, m model.Model) (asked func() int64) {
	t.Helper()
	client, err := onchain.Dial(t.Context(), []string{s.console.env("ENTRAIN_CHAIN")}, onchain.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	on, err := onchain.GetRun(t.Context(), client, run)
	if err != nil {
		t.Fatal(err)
	}
	id, blob := on.Snapshot.State.ID(), tensor.Bytes(m.Params)
	// 2 for each of the 3 members that the run needs, and 8
	if taken := takeAll(t, client, run, id, p2p.Ref{Root: m.Hash(), Size: uint64(len(blob))}); taken < 12 || taken > 14 {
		t.Errorf("strangers took the model %d times, want 14", taken)
	}
	lies := &liar{leaves: merkle.BlobLeaves(blob), size: uint64(len(blob))}
	for i := range 6 {
		k := liarsKey(byte(i))
		reader, err := gossip.NewReader(id, nil, nil, func(h p2p.Handler) (p2p.Network, error) {
			return lp2p.New(lp2p.Options{Key: k, Run: id, Handler: liarsPeer{h, lies}, Listen: []string{"/ip4/127.0.0.1/tcp/0"}})
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { reader.Close() })
		own := client.As(k)
		if err := onchain.Submit(t.Context(), own, host.Announce{Run: run, Addrs: reader.Addrs()}); err != nil {
			t.Fatal(err)
		}
		go func() {
			for t.Context().Err() == nil {
				own.Peers(t.Context(), run, func(found []host.Peer, err error) {
					if err == nil {
						reader.Connect(found)
					}
				})
				_ = retry.Wait(t.Context(), 100*time.Millisecond)
			}
		}()
	}
	return lies.asked.Load
}

// liarsKey returns a key that comes before nearly all others: members ask in the order of keys.
func liarsKey(i byte) key.Private {
	for seed := uint32(0); ; seed++ {
		b := [32]byte{9, i}
		binary.LittleEndian.PutUint32(b[2:], seed)
		if k := key.FromSeed(b); k.Public()[0] == 0 {
			return k
		}
	}
}

// takeAll fetches a blob from the only one that serves it with one key after the other, until the last gets nothing.
func takeAll(t *testing.T, client ledger.Chain, run string, id wire.Hash, ref p2p.Ref) (taken int) {
	t.Helper()
	var guests []*participant.Guest
	for range 7 {
		guest, err := participant.Visit(t.Context(), client, run, id, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer guest.Close()
		guests = append(guests, guest)
	}
	for _, guest := range guests {
		for taken <= 50 {
			_, err := guest.Fetch(t.Context(), p2p.Fetch{Ref: ref, From: listed(t, client, run)})
			if errors.Is(err, p2p.ErrRefused) {
				break
			}
			if err == nil {
				taken++
			} else if err := retry.Wait(t.Context(), 50*time.Millisecond); err != nil { // not connected yet
				t.Fatal(err)
			}
		}
	}
	return taken
}

// listed returns who has announced addresses.
func listed(t *testing.T, client ledger.Chain, run string) (keys []key.Public) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	client.Peers(ctx, run, func(found []host.Peer, err error) {
		if err != nil {
			t.Error(err)
		}
		for _, p := range found {
			keys = append(keys, p.Key)
		}
		cancel()
	})
	<-ctx.Done()
	return keys
}

// liar serves other bytes in place of a blob.
type liar struct {
	leaves []wire.Hash
	size   uint64
	asked  atomic.Int64
}

// liarsPeer is a peer that serves them.
type liarsPeer struct {
	p2p.Handler
	*liar
}

func (l liarsPeer) Leaves(wire.Hash) ([]wire.Hash, bool) { return l.leaves, true }

func (l liarsPeer) Chunk(_ wire.Hash, i uint32) ([]byte, bool) {
	l.asked.Add(1)
	from, to := merkle.Chunk(l.size, uint64(i))
	return make([]byte, to-from), true
}
