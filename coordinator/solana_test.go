package coordinator_test

import (
	"bytes"
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
	"github.com/entrain-network/entrain/chain/solana/units"
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
	state      []byte // that the machine has, if Go has it, too
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
	b = wire.AppendBool(wire.AppendU64(wire.AppendU64(b, e.Value), e.Work), e.Referee != nil)
	return wire.AppendVar(b, answers)
}

// apply applies one message and returns what became of it, and whether the state is Go's.
func (r *replay) apply(t testing.TB, s coordinator.Applied) (result svm.Result, same bool) {
	if !bytes.Equal(s.Before, r.state) {
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
	result, account := r.m.SendTo(r.run, tx)
	same = account.Sum == sum(s.After)
	if r.state = r.state[:0]; same {
		r.state = append(r.state, s.After...)
	}
	return result, same
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
	got, same := r.apply(t, s)
	want := s.Err
	if _, err := coordinator.ParseMessage(coordinator.Append(nil, s.Message)); err != nil {
		want = err // Go was given what no message can bring
	}
	r.steps++
	if got.Code != refusal(want) || (got.Error == "") != (want == nil) || !same {
		if r.bad++; r.bad <= 5 {
			t.Errorf("message %d, %s: Go says %v, Solana %q (code %d); the states are the same: %v; %q",
				r.steps, coordinator.Name(s.Message), want, got.Error, got.Code, same, got.Logs)
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

// kinds are the runs whose rounds cost something else, by the end of their rows.
var kinds = map[string]coordinator.Kind{
	"": {Overlap: true}, ", overlap 0": {}, ", speeds": {Overlap: true, Speeds: true}, ", a validator": {Overlap: true, Validators: 1},
	", buckets":       {Overlap: true, Buckets: true},
	", checking 25 %": {Overlap: true, Checks: 25}, ", checking 25 %, speeds": {Overlap: true, Checks: 25, Speeds: true},
	", checking 25 %, overlap 0": {Checks: 25}, ", checking 25 %, buckets, speeds": {Overlap: true, Buckets: true, Speeds: true, Checks: 25},
}

// dearestOf bounds the units of the dearest message of a run with some members that is not divided:
// of a newcomer for whom all places of a full table are looked at, or of a validator's scores of
// all members. A run whose rounds could not end would never go on, and keep its members' stakes.
func dearestOf(members uint64) uint64 { return 50_000 + 125*members }

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
	if dearest := dearestOf(coordinator.MembersMax); dearest > solana.UnitsMax-100_000 {
		t.Errorf("a message of the largest run may take %d units", dearest)
	}
	r := newReplay(t)
	r.m.Unlimited()
	var rows []string
	used := map[string][]uint64{}
	bounded := func(what string, cost uint64, n uint32, bound uint64) {
		if cost > bound {
			t.Errorf("%s costs %d units with %d members, and the bound is %d", what, cost, n, bound)
		}
	}
	for k, n := range sizes {
		note := func(what string, a coordinator.Applied) uint64 {
			if used[what] == nil {
				rows = append(rows, what)
				used[what] = make([]uint64, len(sizes))
			}
			cost := r.compare(t, a).Units
			used[what][k] = max(used[what][k], cost)
			return cost
		}
		for _, validators := range []uint16{1, 2, 4, 8, 16} {
			limits, config := coordinator.Kind{Overlap: true, Buckets: true, Validators: validators}.Of(n)
			ticks, sum := 0, uint64(0)
			what := fmt.Sprintf("tick that settles a period of %d validators", validators)
			coordinator.Settle(t, n, validators, units.Work, func(a coordinator.Applied) {
				sum += note(what, a)
				ticks++
			})
			t.Logf("%d members, %d validators: a period is settled in %d ticks", n, validators, ticks)
			plain := limits
			plain.Validators = 0
			bounded(what, sum, n, solana.CloseUnits(uint64(n), limits, config)-solana.CloseUnits(uint64(n), plain, config))
			bounded(what, used[what][k], n, solana.UnitsMax-100_000)
			if validators == 16 {
				coordinator.Scored(t, n, func(what string, a coordinator.Applied) {
					bounded(what, note(what, a), n, dearestOf(uint64(n)))
				})
			}
		}
		for name, kind := range kinds {
			kind.Work = units.Work
			limits, config := kind.Of(n)
			if name != "" && n > 256 && os.Getenv("ENTRAIN_SOLANA_MEMBERS") == "" {
				continue // it takes a while
			}
			ends := uint64(0)
			coordinator.Life(t, n, kind, func(what string, s coordinator.Applied) {
				goesOn := strings.HasPrefix(what, "closing")
				if goesOn || strings.Contains(what, "closes") {
					what += name
				}
				got := note(what, s)
				if ends += got; !goesOn {
					ends = 0
				}
				bounded("what continues the end of a round"+name, ends, n, solana.CloseUnits(uint64(n), limits, config))
				if what == "report" {
					bounded(what+name, got, n, solana.ReportUnits(uint64(n)))
				}
				bounded(what+name, got, n, solana.UnitsMax-100_000)
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
		for _, u := range used[what] {
			fmt.Fprintf(&b, " %d |", (u+999)/1000)
		}
	}
	t.Logf("thousands of compute units by members:\n%s", b.String())
}
