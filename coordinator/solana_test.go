package coordinator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/chain/solana"
	"github.com/entrain-network/entrain/chain/solana/svm"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/wire"
)

// replay applies the messages of tests on Solana's machine as well.
type replay struct {
	m          *svm.Machine
	program    solana.Program
	run, box   solana.Address
	payer      solana.Signer
	last       string // SHA-256 of the state that the machine has
	steps, bad int
}

func newReplay(t testing.TB) *replay {
	r := &replay{program: solana.Program{1}, run: solana.Address{2}, box: solana.Address{3}, payer: solana.NewSigner(key.FromSeed([32]byte{4}))}
	r.m = svm.Start(t, "replay", r.program)
	r.m.Unsigned()
	r.m.Put(r.payer.Address(), solana.SystemProgram, 1<<50, nil)
	return r
}

// environment encodes what the program for tests is told.
func environment(e coordinator.Env, answers []byte) []byte {
	b := wire.AppendU64(wire.AppendU64(nil, e.NowMs), e.Height)
	b = wire.AppendHash(wire.AppendHash(b, e.Seed), wire.Hash(e.Sender))
	b = wire.AppendBool(wire.AppendU64(b, e.Value), e.Referee != nil)
	return wire.AppendVar(b, answers)
}

// apply applies one message and returns the code of the refusal and the compute units.
func (r *replay) apply(t testing.TB, s coordinator.Applied) svm.Result {
	if sum(s.Before) != r.last {
		r.m.Put(r.run, solana.Address(r.program), 1<<50, s.Before)
	}
	message := coordinator.Append(nil, s.Message)
	data := append([]byte{101}, environment(s.Env, s.Answers)...)
	accounts := []solana.AccountRef{{Address: r.run, Writable: true}, {Address: r.payer.Address()}}
	if len(message) > 500 {
		r.m.Put(r.box, solana.Address(r.program), 1<<50, message)
		accounts = append(accounts, solana.AccountRef{Address: r.box})
	} else {
		data = append(data, message...)
	}
	call := solana.Instruction{Program: solana.Address(r.program), Accounts: accounts, Data: data}
	tx, err := solana.Transaction([32]byte{}, []solana.Signer{r.payer}, append(solana.Budget(solana.UnitsMax, 0), call)...)
	if err != nil {
		t.Fatal(err)
	}
	result := r.m.Send(tx)
	r.last = r.m.Get(r.run).Sum
	return result
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// refusal returns the code with which the program refuses what Go refuses with err.
func refusal(err error) uint32 {
	var e coordinator.Error
	var bytes wire.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return uint32(e)
	case errors.As(err, &bytes):
		return 2000 + uint32(bytes)
	}
	return 0xffffffff
}

// compare applies a message and reports whether Solana does what Go did.
func (r *replay) compare(t testing.TB, s coordinator.Applied) svm.Result {
	t.Helper()
	got, want := r.apply(t, s), s.Err
	if _, err := coordinator.ParseMessage(coordinator.Append(nil, s.Message)); err != nil {
		want = err // Go was given what no message can bring
	}
	r.steps++
	if got.Code != refusal(want) || (got.Error == "") != (want == nil) || r.last != sum(s.After) {
		if r.bad++; r.bad <= 5 {
			t.Errorf("message %d, %s: Go says %v, Solana %q (code %d); the states are the same: %v; %q",
				r.steps, coordinator.Name(s.Message), want, got.Error, got.Code, r.last == sum(s.After), got.Logs)
		}
	}
	return got
}

// TestMessagesOnSolana applies every message of every scenario, and those of random runs, on Solana's machine, too: the same code, and
// the same bytes.
func TestMessagesOnSolana(t *testing.T) {
	r := newReplay(t)
	coordinator.Mirrored(t, 10, func(s coordinator.Applied) { r.compare(t, s) })
	t.Logf("%d messages, %d of them with another result on Solana", r.steps, r.bad)
	if r.steps < 5000 {
		t.Errorf("only %d messages were applied", r.steps)
	}
}

// TestCostsOnSolana prints what the messages of a run cost on Solana, by its members: the table of docs/chains.md.
func TestCostsOnSolana(t *testing.T) {
	sizes := []uint32{4, 64, 256, 1024}
	if v := os.Getenv("ENTRAIN_SOLANA_MEMBERS"); v != "" {
		sizes = nil
		for _, word := range strings.Fields(v) {
			n, err := strconv.ParseUint(word, 10, 32)
			if err != nil {
				t.Fatal(err)
			}
			sizes = append(sizes, uint32(n))
		}
	}
	r := newReplay(t)
	r.m.Unlimited()
	const settles = "tick that opens a window and settles a period of 8 validators"
	rows := []string{settles}
	units := map[string][]uint64{settles: make([]uint64, len(sizes))}
	for k, n := range sizes {
		if uint64(n) <= solana.PlacesMax(8, false) {
			coordinator.Settle(t, n, func(s coordinator.Applied) { units[settles][k] = r.compare(t, s).Units })
		}
		for _, percent := range []uint8{0, 10} {
			coordinator.Life(t, n, percent, func(what string, s coordinator.Applied) {
				if percent > 0 && strings.Contains(what, "round") {
					what += ", verifying 10 %"
				}
				if units[what] == nil {
					rows = append(rows, what)
					units[what] = make([]uint64, len(sizes))
				}
				got := r.compare(t, s)
				units[what][k] = max(units[what][k], got.Units)
			})
		}
	}
	slices.Sort(rows)
	var b strings.Builder
	fmt.Fprintf(&b, "| message |")
	for _, n := range sizes {
		fmt.Fprintf(&b, " %d |", n)
	}
	for _, what := range rows {
		fmt.Fprintf(&b, "\n| %s |", what)
		for _, u := range units[what] {
			fmt.Fprintf(&b, " %d |", (u+999)/1000)
		}
	}
	t.Logf("thousands of compute units by members:\n%s", b.String())
	for k, n := range sizes {
		if units[settles][k] > solana.SettleUnits(uint64(n), 8) {
			t.Errorf("settling costs %d units with %d members, and the estimate is %d", units[settles][k], n, solana.SettleUnits(uint64(n), 8))
		}
	}
	for _, what := range rows {
		for k, n := range sizes {
			bound, estimated := map[string]func(uint64) uint64{
				"report": solana.ReportUnits, "report that closes a round and opens the next": solana.CloseUnits,
			}[what]
			if used := units[what][k]; estimated && (used > bound(uint64(n)) || used < bound(uint64(n))/3) {
				t.Errorf("%s costs %d units with %d members, and the estimate is %d", what, used, n, bound(uint64(n)))
			}
			fits := uint64(n) <= solana.PlacesMax(0, strings.Contains(what, "verifying"))
			if fits && units[what][k] > solana.UnitsMax-100_000 {
				t.Errorf("%s costs %d units with %d members, a transaction has %d", what, units[what][k], n, solana.UnitsMax)
			}
		}
	}
}
