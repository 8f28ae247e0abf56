package host

import (
	"fmt"
	"slices"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// TestBytesStayTheSame executes drawn transactions of every kind. The outcomes, the state's hash
// and its bytes after every block are part of consensus: they must never change.
func TestBytesStayTheSame(t *testing.T) {
	const want = "01a45f26d22be880d9ab32c44f0f088c13035e69ec78b63091bfc93067231481"
	c := newSeats(t, 1<<24, "a", "b", "c")
	g := golden{prng.New(wire.Sum("entrain/test/golden"), "transactions"), c}
	hash := wire.Sum("entrain/test/golden")
	seen := map[Code]int{}
	for range 600 {
		var txs [][]byte
		for range g.n(6) {
			who := g.name()
			tx := Tx{Chain: testChain, Nonce: c.nonce, ExpiresMs: c.host.TimeMs() + 60_000, Body: g.body(who)}
			if g.n(20) > 0 {
				c.nonce++
			}
			b, err := tx.Sign(privateKey(who))
			if err != nil {
				continue
			}
			if g.n(40) == 0 {
				b[g.n(uint64(len(b)))] ^= 1
			}
			txs = append(txs, b)
		}
		ms := uint64(blockMs)
		if g.n(90) == 0 {
			ms = PoolQuietMs / 2
		}
		codes := c.blockAfter(ms, txs...)
		var b []byte
		for _, code := range codes {
			seen[code]++
			b = wire.AppendU16(b, uint16(code))
		}
		commit := c.host.Hash()
		b = append(append(b, commit[:]...), c.host.Append(nil)...)
		hash = wire.Sum("entrain/test/golden", hash[:], b)
	}
	t.Logf("outcomes: %v", seen)
	if hash.String() != want {
		t.Errorf("got %v, want %s", hash, want)
	}
}

// golden draws transactions.
type golden struct {
	random prng.Source
	c      *chain
}

func (g *golden) n(n uint64) uint64 { return g.random.Uint64n(n) }

func (g *golden) name() string {
	return []string{"op-a", "op-b", "op-c", "op-a", "op-b", "ann", "bob", "eve"}[g.n(8)]
}

func (g *golden) run() string  { return []string{g.one(), "two", g.one(), "two", "none"}[g.n(5)] }
func (g *golden) pool() string { return []string{"p", "q", "p", "none"}[g.n(4)] }

// one is a name that changes: the chain closes a run in which nothing changes.
func (g *golden) one() string { return fmt.Sprint("one", g.c.host.Height()/150) }

func (g *golden) replica() key.Public {
	return public([]string{"a", "b", "c", "d", "e"}[g.n(5)])
}

func (g *golden) amount() uint64 {
	return []uint64{0, 1, 300, 1 << 12, 1 << 22, 1 << 24, 1 << 29, 1 << 40}[g.n(8)]
}

func (g *golden) keys() []key.Public {
	var list []key.Public
	for range g.n(3) {
		list = append(list, public(g.name()))
	}
	slices.SortFunc(list, key.Public.Compare)
	return slices.Compact(list)
}

func (g *golden) message() coordinator.Message {
	switch g.n(9) {
	case 0, 1:
		return coordinator.Join{}
	case 2:
		return coordinator.Ready{}
	case 3:
		return coordinator.Withdraw{}
	case 4:
		return coordinator.Deposit{Member: public(g.name())}
	case 5:
		return coordinator.Fund{}
	case 6:
		return coordinator.Claim{}
	case 7:
		return coordinator.End{}
	}
	return coordinator.Pause{}
}

func (g *golden) body(who string) Body {
	switch g.n(22) {
	case 0, 19:
		run := createRun(g.run(), who, 8)
		run.Config.Stake, run.Config.WarmupMs = 256, 60_000
		return run
	case 1:
		return Announce{Run: g.run(), Addrs: []string{"/ip4/1.2.3.4", "/ip4/5.6.7.8"}[:g.n(3)]}
	case 2, 3, 4, 5:
		m := RunMessage{Run: g.run(), Value: g.amount(), Message: coordinator.Append(nil, g.message())}
		if g.n(3) == 0 {
			m.From = g.pool()
		}
		if g.n(20) == 0 {
			m.Message = m.Message[1:]
		}
		return m
	case 6, 7:
		return Transfer{To: public(g.name()), Amount: g.amount()}
	case 8:
		return CreatePool{Runs: []string{g.one()}, Name: g.pool(), CommissionBP: 500, OwnBP: uint16(g.n(20_000)), Least: g.n(400), Workers: g.keys()}
	case 9, 10:
		return Lend{Pool: g.pool(), Amount: g.amount()}
	case 11:
		return Collect{Pool: g.pool()}
	case 12:
		return ClosePool{Pool: g.pool()}
	case 13:
		return ClaimFor{Run: g.run(), Member: public(g.name())}
	case 14:
		return Admit{Run: g.run(), Listed: g.n(3) == 0, Add: g.keys()}
	case 15:
		run := g.run()
		owner := privateKey(g.name())
		return Delegate{Run: run, Certificate: NewCertificate(owner, testChain, run, public(who), g.c.host.TimeMs()+g.n(DelegationMsMax))}
	case 16:
		if g.n(2) == 0 {
			return Require{Run: g.run(), Program: "v1.2.3"}
		}
		return Revoke{Run: g.run(), Node: public(g.name())}
	case 17:
		name := []string{"a", "d", "e"}[g.n(3)]
		return stakeOf(g.c.t, name, who, g.amount())
	case 20:
		return CloseRun{Run: g.run()}
	case 21:
		return SetName{Run: g.run(), Name: []string{"", who, "ann", "b0b", "op-a"}[g.n(5)], Team: []string{"", "", "reds", "red5"}[g.n(4)]}
	case 18:
		return Vote{Replica: g.replica(), Seated: g.n(2) == 0}
	}
	return Leave{Replica: g.replica()}
}
