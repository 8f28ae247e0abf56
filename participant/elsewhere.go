package participant

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/node"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// probeFor bounds the search for another process with the key. One that runs answers at once; after
// a crash of this one nobody answers, and the search takes as long as that.
const probeFor = 2 * time.Second

// newInstance draws the number by which this process differs from others with its key.
func newInstance() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return binary.LittleEndian.Uint64(b[:])
}

// trial measures this machine's speed, and meanwhile looks for another process with the key.
func (p *Participant) trial(ctx context.Context) (tokensPerSecond uint32, err error) {
	elsewhere := p.lookElsewhere(ctx)
	tokensPerSecond, err = p.Trainer.Trial(ctx)
	return tokensPerSecond, errors.Join(err, elsewhere())
}

// lookElsewhere looks for another process with the key at the addresses that the chain has for it.
// Call it before this process listens. The function it returns waits for the outcome.
func (p *Participant) lookElsewhere(ctx context.Context) func() error {
	found := make(chan error, 1)
	ctx, cancel := context.WithTimeout(ctx, probeFor)
	self := p.Key.Public()
	p.Client.Peers(ctx, p.Target.Run, func(peers []host.Peer, err error) {
		for _, o := range peers {
			if o.Key != self {
				continue
			}
			go func() {
				var fault error
				if at, ok := lp2p.Probe(ctx, self, o.Addrs); ok {
					fault = &node.ElsewhereError{Key: self, Addrs: []string{at}}
				}
				found <- fault
			}()
			return
		}
		found <- nil
	})
	return func() error {
		defer cancel()
		select {
		case err := <-found:
			return err
		case <-ctx.Done():
			return nil // the node finds out through the chain
		}
	}
}

// failed ends this participant: its node cannot go on. Unless another process takes part with the
// key, it leaves the run.
func (p *Participant) failed(err error) {
	p.fault = err
	var elsewhere *node.ElsewhereError
	if errors.As(err, &elsewhere) {
		p.node.Abandon(p.end)
		return
	}
	p.node.Stop(stopPatience, p.end)
}
