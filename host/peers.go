package host

import (
	"cmp"
	"slices"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// Peer is where a participant of a run can be reached.
type Peer struct {
	Key   key.Public `json:"key"`
	Addrs []string   `json:"addrs"` // multiaddresses, at most AddrsMax
}

// peers are the addresses announced for one run. Members keep theirs. Of other keys, only the
// last PendingPeersMax that announced are kept, so an outsider cannot displace a member.
type peers struct {
	list []peer // in order of keys
	hash wire.Hash
	kept bool // whether hash is that of list
	// shown is what show returned, nil since the list has changed.
	shown []Peer
}

// changed must be called after every change of the list.
func (p *peers) changed() { p.kept, p.shown = false, nil }

// sum returns the hash of the list.
func (p *peers) sum() wire.Hash {
	if !p.kept {
		p.hash, p.kept = wire.Sum("entrain/ledger/peers", p.append(nil)), true
	}
	return p.hash
}

type peer struct {
	Peer
	height uint64             // of the announcement
	place  coordinator.Member // at which the key was among the members last; a hint
}

func (p *peers) find(k key.Public) (int, bool) {
	return slices.BinarySearchFunc(p.list, k, func(e peer, k key.Public) int { return e.Key.Compare(k) })
}

// announce replaces the addresses of k; none removes it. It reports whether anything changed.
func (p *peers) announce(k key.Public, addrs []string, height uint64, s coordinator.State) bool {
	i, ok := p.find(k)
	switch {
	case !ok && len(addrs) == 0, ok && slices.Equal(p.list[i].Addrs, addrs):
		return false
	case len(addrs) == 0:
		p.list = slices.Delete(p.list, i, i+1)
		return true
	}
	e := peer{Peer: Peer{Key: k, Addrs: slices.Clone(addrs)}, height: height}
	if ok {
		p.list[i] = e
		return true
	}
	p.list = slices.Insert(p.list, i, e)
	p.evict(s)
	return true
}

// evict drops the announcements of keys that are not members, oldest first and then by key,
// beyond PendingPeersMax.
func (p *peers) evict(s coordinator.State) {
	if p.unplaced(s) <= PendingPeersMax {
		return
	}
	member, members := make([]bool, len(p.list)), 0
	for i := range s.Count() {
		if at, ok := p.find(s.Key(i)); ok {
			member[at], p.list[at].place = true, i
			members++
		}
	}
	if len(p.list)-members <= PendingPeersMax {
		return
	}
	pending := make([]peer, 0, len(p.list)-members)
	for at, e := range p.list {
		if !member[at] {
			pending = append(pending, e)
		}
	}
	slices.SortStableFunc(pending, func(a, b peer) int { return cmp.Compare(a.height, b.height) })
	for _, e := range pending[:len(pending)-PendingPeersMax] {
		i, _ := p.find(e.Key)
		p.list = slices.Delete(p.list, i, i+1)
	}
}

// unplaced returns how many announcements are not of the member whose place they name: those of
// keys that are not members, and of members whose place is not known yet. To look for all
// members at each announcement would take time in proportion to the square of the members.
func (p *peers) unplaced(s coordinator.State) (n int) {
	if len(p.list) <= PendingPeersMax {
		return len(p.list)
	}
	count := s.Count()
	for k := range p.list {
		if e := &p.list[k]; e.place >= count || s.Key(e.place) != e.Key {
			n++
		}
	}
	return n
}

func (p *peers) append(dst []byte) []byte {
	dst = wire.AppendU32(dst, uint32(len(p.list)))
	for _, e := range p.list {
		dst = append(dst, e.Key[:]...)
		dst = wire.AppendU64(dst, e.height)
		dst = wire.AppendU8(dst, uint8(len(e.Addrs)))
		for _, addr := range e.Addrs {
			dst = wire.AppendString(dst, addr)
		}
	}
	return dst
}

const peerBytesMin = 32 + 8 + 1 + 4 + 1 // a peer with one address of one byte

func parsePeers(r *wire.Reader) peers {
	n := r.U32()
	if uint64(n)*peerBytesMin > uint64(r.Len()) {
		r.Fail(wire.ErrTooLong)
		return peers{}
	}
	var p peers
	for range n {
		var e peer
		copy(e.Key[:], r.Bytes(len(e.Key)))
		e.height = r.U64()
		m := r.U8()
		if m == 0 || m > AddrsMax {
			r.Fail(wire.ErrOutOfRange)
		}
		for range m {
			addr := r.String(AddrBytesMax)
			if r.Err() != wire.OK {
				return peers{}
			}
			if !addrValid(addr) {
				r.Fail(wire.ErrNotCanonical)
			}
			e.Addrs = append(e.Addrs, addr)
		}
		if k := len(p.list); k > 0 && p.list[k-1].Key.Compare(e.Key) >= 0 {
			r.Fail(wire.ErrNotCanonical)
		}
		if r.Err() != wire.OK {
			return peers{}
		}
		p.list = append(p.list, e)
	}
	return p
}
