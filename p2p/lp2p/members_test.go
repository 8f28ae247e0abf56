package lp2p

import (
	"testing"

	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// In a run of any size a member and those that picked it fit its connections, or the connection
// manager would close what others dial again.
func TestNeighboursPickEachOther(t *testing.T) {
	const run = 600
	keys := make([]key.Public, run)
	for i := range keys {
		keys[i] = key.Public(wire.Sum("test/neighbour", wire.AppendU32(nil, uint32(i))))
	}
	conns := make([]map[key.Public]bool, run) // those that a member picked, or that picked it
	place := map[key.Public]int{}
	for i := range conns {
		conns[i], place[keys[i]] = map[key.Public]bool{}, i
	}
	for i, self := range keys {
		m := &members{self: self}
		var list []*member
		for _, k := range keys {
			if k != self {
				list = append(list, &member{key: k, rank: wire.Sum("test/rank", self[:], k[:])})
			}
		}
		m.sort(list)
		for k, c := range list[:connectedMax] {
			conns[i][c.key], conns[place[c.key]][self] = true, true
			if k > 0 && list[k-1].rank.Compare(c.rank) >= 0 {
				t.Fatal("those to dial are not in this member's own order")
			}
		}
	}
	most := 0
	for _, c := range conns {
		most = max(most, len(c))
	}
	if most > connsLow {
		t.Errorf("a member has %d connections, and the manager keeps %d", most, connsLow)
	}
}
