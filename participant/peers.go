package participant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/p2p"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// peersFile is the file in a state directory that lists the participant's peers.
const peersFile = "peers.json"

// peersWritten is the interval at which the file is written. peersFileMax is its largest size, for
// ten thousand peers.
const (
	peersWritten = 5 * time.Second
	peersFileMax = 8 << 20
)

// PeersReport is the content of that file.
type PeersReport struct {
	Time  time.Time        `json:"time"`
	Addrs []string         `json:"addrs"` // of this participant
	Peers []p2p.PeerStatus `json:"peers"`
}

// ReadPeers reads what a participant wrote last about its peers into its state directory.
func ReadPeers(dir string) (r PeersReport, err error) {
	b, err := atomicfile.ReadBounded(filepath.Join(dir, peersFile), peersFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("%q is not the state directory of a participant that has met peers; entrain join says where it is", dir)
	}
	if err != nil {
		return r, fmt.Errorf("peers: %w", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("peers: %s is damaged: %w", filepath.Join(dir, peersFile), err)
	}
	return r, nil
}

// Peers returns the state of the connections to peers; nil before there is a network.
func (p *Participant) Peers() []p2p.PeerStatus {
	if n := p.network.Load(); n != nil {
		return n.Peers()
	}
	return nil
}

// tellPeers writes the peers' states to a file every few seconds, until ctx ends.
func (p *Participant) tellPeers(ctx context.Context) {
	tick := time.NewTicker(peersWritten)
	defer tick.Stop()
	failed := false // last time, which was logged
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n := p.network.Load(); n != nil {
			err := p.writePeers(n)
			if err != nil && !failed {
				p.Log.Warn("what is known of the peers was not written", "error", err)
			}
			failed = err != nil
		}
	}
}

func (p *Participant) writePeers(n *lp2p.Network) error {
	b, err := json.Marshal(PeersReport{Time: time.Now().UTC(), Addrs: n.Addrs(), Peers: n.Peers()})
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(p.State, peersFile), 0o644, append(b, '\n'))
}
