package participant

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/node/gossip"
	"github.com/entrain-network/entrain/onchain"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/wire"
)

// Guest is a peer of a run's members that takes no part in the run, under a key of its own. Members
// let it in because the chain has its addresses.
type Guest struct {
	*gossip.Reader
	run  string
	key  key.Public
	own  ledger.Ledger
	stop context.CancelFunc

	mu     sync.Mutex   // guards what follows
	listed []key.Public // by the chain
}

// guestEvery is the interval at which a guest refreshes members' addresses, and its own.
const guestEvery = 2 * time.Second

// Visit makes a guest of the run with a name and an identity. With a Listener it hears the members'
// gossip. It must be closed.
func Visit(ctx context.Context, client ledger.Chain, run string, id wire.Hash, to gossip.Listener) (*Guest, error) {
	return visit(ctx, client, run, id, to, nil)
}

// visit is Visit; the guest also serves a gift, if that is not nil.
func visit(ctx context.Context, client ledger.Chain, run string, id wire.Hash, to gossip.Listener, given *gift) (*Guest, error) {
	var seed [32]byte
	_, _ = rand.Read(seed[:]) // never fails
	secret := key.FromSeed(seed)
	endpoints := client.Endpoints()
	o := lp2p.Options{Key: secret, Run: id, PublicOnly: !onchain.AllPrivate(endpoints), Log: slog.New(slog.DiscardHandler)}
	var blob []byte
	if given != nil {
		blob, o.Allot = given.model, given.allot
	}
	reader, err := gossip.NewReader(id, to, blob, func(h p2p.Handler) (_ p2p.Network, err error) {
		if o.Listen, err = lp2p.ListenAddrs(nil, onchain.AllLoopback(endpoints)); err != nil {
			return nil, err
		}
		o.Handler = h
		return lp2p.New(o)
	})
	if err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	g := &Guest{Reader: reader, run: run, key: secret.Public(), own: client.As(secret), stop: stop}
	if err := g.announce(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make oneself known to the members: %w", err), g.Close())
	}
	go g.keepPeers(watching)
	return g, nil
}

// addrs returns the addresses to announce.
func (g *Guest) addrs() []string {
	addrs := g.Addrs()
	return addrs[:min(len(addrs), host.AddrsMax)]
}

func (g *Guest) announce(ctx context.Context) error {
	return onchain.Submit(ctx, g.own, host.Announce{Run: g.run, Addrs: g.addrs()})
}

// keepPeers keeps the network informed of the members' addresses, and the chain of the guest's,
// which others' announcements push out, until ctx ends.
func (g *Guest) keepPeers(ctx context.Context) {
	timer := time.NewTicker(guestEvery)
	defer timer.Stop()
	for {
		g.own.Peers(ctx, g.run, func(found []host.Peer, err error) {
			if err != nil || ctx.Err() != nil {
				return
			}
			g.Connect(found)
			g.mu.Lock()
			g.listed = g.listed[:0:0]
			for _, p := range found {
				g.listed = append(g.listed, p.Key)
			}
			g.mu.Unlock()
			own := g.addrs()
			if !slices.ContainsFunc(found, func(p host.Peer) bool { return p.Key == g.key && slices.Equal(p.Addrs, own) }) {
				g.own.Submit(ctx, host.Announce{Run: g.run, Addrs: own}, func(error) {}) // again if it fails
			}
		})
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
}

// Close leaves the peers.
func (g *Guest) Close() error {
	g.stop()
	ctx, cancel := context.WithTimeout(context.Background(), farewell)
	defer cancel()
	// If not, others' announcements push it out in time.
	_ = onchain.Submit(ctx, g.own, host.Announce{Run: g.run})
	return g.Reader.Close()
}

// Ear hears what members of a run state about their training, and passes on each member's first
// commitment to a round: from gossip, or from their buckets. All of it is signed, none of it is
// proven: a member may state any loss.
type Ear struct {
	run    string
	client ledger.Chain
	tell   func(event.Committed)

	mu    sync.Mutex // guards what follows
	state *coordinator.State
	heard map[place]bool // of the newest rounds
	wake  chan struct{}
}

// place is a member's share in a round.
type place struct {
	round  coordinator.Round
	member coordinator.Member
}

// NewEar returns an ear that Run makes hear, once Observe has told it of the run.
func NewEar(client ledger.Chain, run string, tell func(event.Committed)) *Ear {
	return &Ear{run: run, client: client, tell: tell, heard: map[place]bool{}, wake: make(chan struct{}, 1)}
}

// Follow records what the log of a participant holds, if there is one, and then what happens on the
// chain and what members say of their losses, until ctx ends. Readers keep nothing of earlier
// rounds than those that they know, so the log comes first. note is told how far the reading is.
func Follow(ctx context.Context, client ledger.Chain, run string, log *runlog.Log, record func(runlog.Record), note func(string)) error {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	ear := NewEar(client, run, func(ev event.Committed) { record(runlog.Record{Time: time.Now(), Event: ev}) })
	watch := sync.OnceFunc(func() {
		client.Watch(watching, run, func(s ledger.Snapshot) {
			d := runlog.Digest(s)
			d.Chain = client.ChainID()
			record(runlog.Record{Time: time.Now(), Standing: d})
			ear.Observe(s)
		})
	})
	if log == nil {
		watch()
		if err := ear.Run(ctx); err != nil && ctx.Err() == nil {
			note(err.Error())
		}
		<-ctx.Done()
		return nil
	}
	return log.Follow(ctx, record, func(percent int) {
		if note(fmt.Sprintf("reading the log: %d %%", percent)); percent == 100 {
			note("")
			watch()
		}
	})
}

// Observe takes a state of the run.
func (e *Ear) Observe(s ledger.Snapshot) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.state = &s.State
	for p := range e.heard {
		if p.round+earRounds < s.State.Round() {
			delete(e.heard, p)
		}
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// earRounds is the number of rounds back that an ear takes commitments of; they come a round late
// at most.
const earRounds = 3

// Wants implements gossip.Listener.
func (e *Ear) Wants(author key.Public, c *dispute.Commitment) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.wants(author, c)
}

func (e *Ear) wants(author key.Public, c *dispute.Commitment) bool {
	s := e.state
	return s != nil && c.Run == s.ID() && c.Member < s.Count() && s.Key(c.Member) == author && s.Status(c.Member).Present() &&
		c.Round > 0 && c.Round <= s.Round()+1 && c.Round+earRounds >= s.Round() && !e.heard[place{c.Round, c.Member}]
}

// Heard implements gossip.Listener.
func (e *Ear) Heard(a gossip.Authored) {
	c := &a.Signed.Commitment
	e.mu.Lock()
	wanted := e.wants(a.Author, c)
	if wanted {
		e.heard[place{c.Round, c.Member}] = true
	}
	e.mu.Unlock()
	if wanted {
		e.tell(event.Committed{Epoch: c.Epoch, Round: c.Round, Member: c.Member, Loss: float32(c.Loss) / 1000, Bytes: uint64(c.PayloadBytes), Commitment: c.ID()})
	}
}

// next waits for a newer state, and returns it; nil when ctx has ended.
func (e *Ear) next(ctx context.Context) *coordinator.State {
	select {
	case <-ctx.Done():
		return nil
	case <-e.wake:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.state
}

// Run hears while the run trains, until ctx ends or the run has finished.
func (e *Ear) Run(ctx context.Context) (err error) {
	var guest *Guest
	defer func() {
		if guest != nil {
			err = errors.Join(err, guest.Close())
		}
	}()
	buckets := bucket.NewClient(bucket.S3Options{Public: !onchain.AllPrivate(e.client.Endpoints())})
	defer buckets.Close()
	reader := bucket.NewReader(buckets.Open, bucket.Options{})
	for {
		s := e.next(ctx)
		switch {
		case s == nil || s.Phase() == coordinator.Finished:
			return nil
		case s.Round() == 0: // nothing to hear
		case s.Config().Exchange == coordinator.Buckets:
			e.read(ctx, *s, reader)
		case guest == nil:
			if guest, err = Visit(ctx, e.client, e.run, s.ID(), e); err != nil {
				return err
			}
		}
	}
}

// read gets the commitments that the chain has and that were not heard yet from the members'
// buckets, in another order each time: those of buckets that do not answer would keep it from all
// that come after them.
func (e *Ear) read(ctx context.Context, s coordinator.State, from *bucket.Reader) {
	var wants []bucket.Want
	var peers map[key.Public]bucket.Location
	for round := s.Round() - min(s.Round()-1, 1); round <= s.Round(); round++ {
		r, ok := s.At(round)
		if !ok {
			continue
		}
		for i := range s.Count() {
			id, committed := r.Committed(i)
			e.mu.Lock()
			known := e.heard[place{round, i}]
			e.mu.Unlock()
			if !committed || known {
				continue
			}
			if peers == nil {
				asking, cancel := context.WithTimeout(ctx, readFor)
				found, _ := peersOf(asking, e.client, e.run) // else the next state is read
				cancel()
				peers = bucketsOf(found)
			}
			if at, ok := peers[s.Key(i)]; ok {
				name := bucket.Name{Run: s.ID(), Window: round, Kind: bucket.KindCommitment, Member: s.Key(i), Content: id}
				wants = append(wants, bucket.Want{Location: at, Name: name, Max: dispute.SignedBytes})
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, readFor)
	defer cancel()
	var seed wire.Hash
	_, _ = rand.Read(seed[:]) // never fails
	order := prng.New(seed, "ear")
	order.Shuffle(len(wants), func(i, j int) { wants[i], wants[j] = wants[j], wants[i] })
	from.Fetch(ctx, wants, func(i int, body []byte, err error) {
		author := wants[i].Name.Member
		if signed, fault := dispute.ParseSigned(body); err == nil && fault == nil && signed.Commitment.ID() == wants[i].Name.Content && signed.Verify(author) {
			e.Heard(gossip.Authored{Author: author, Signed: signed})
		}
	})
}

// readFor bounds reading the commitments of a window, or one of them.
const readFor = 5 * time.Second
