package check

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/wire"
)

// A slice of what "lab check" does: every scene, a thousand states each.
func TestPropertiesHold(t *testing.T) {
	for _, s := range Scenes {
		t.Run(s.Name, func(t *testing.T) {
			r, err := Run(t.Context(), Options{Scene: s.Name, Members: MembersMax, Depth: 30, States: 1200})
			if err != nil || r.Violation != nil {
				t.Fatalf("%v %+v", err, r.Violation)
			}
			if r.States < 1200 || r.Depth < 3 || r.Refused == 0 {
				t.Errorf("too tame: %+v", r)
			}
		})
	}
}

// membersPage is the page of a state that holds the members.
const membersPage = coordinator.PageBytes

// Each planted bug is found, by the property it breaks, with the shortest script that shows it.
func TestPlantedBugsAreFound(t *testing.T) {
	right := coordinator.State.Apply
	for _, bug := range []struct {
		scene, property string
		length          int // of the script
		last            string
		rule            Rule
	}{
		{"accuser", "honest", 7, "opens trace", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			env.Referee = corrupt{} // the referee believes the accuser
			return right(s, env, m)
		}},
		{"liar", "progress", 2, "time passes", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			if len(s.Disputes()) > 0 && m == (coordinator.Tick{}) {
				return nil // time stands still while there is a dispute
			}
			return right(s, env, m)
		}},
		{"liar", "disputes end", 0, "", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			err := right(s, env, m)
			for _, d := range s.Disputes() { // every message gives the parties more time
				if !d.Unserved {
					binary.LittleEndian.PutUint64(disputeBytes(s, d)[112:], env.NowMs+200_000)
				}
			}
			return err
		}},
		{"members", "tokens", 0, "claims", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			before := append([]byte(nil), s.Bytes()...)
			err := right(s, env, m)
			if _, claims := m.(coordinator.Claim); claims && err == nil {
				copy(s.Bytes()[membersPage:][:coordinator.PageBytes], before[membersPage:]) // it may claim again
			}
			return err
		}},
		{"rounds", "refusals", 0, "", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			err := right(s, env, m)
			if err != nil {
				s.Bytes()[len(s.Bytes())-1]++
			}
			return err
		}},
		{"rounds", "settled", 0, "", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			before := append([]byte(nil), s.Bytes()...)
			old, _ := coordinator.Open(before)
			r, _ := old.At(old.Round() - 1)
			err := right(s, env, m)
			if _, leaves := m.(coordinator.Withdraw); leaves && err == nil && r.Number() > 0 && r.Final() {
				forget(s, r) // who leaves takes its results along
			}
			return err
		}},
		{"liar", "liars", 0, "opens trace", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			if _, opens := m.(coordinator.Evidence); opens {
				for _, d := range s.Disputes() {
					clear(disputeBytes(s, d)) // the referee sends both home
				}
				return nil
			}
			return right(s, env, m)
		}},
		{"gang", "no panic", 0, "accuses", func(s coordinator.State, env coordinator.Env, m coordinator.Message) error {
			if _, accuses := m.(coordinator.Accuse); accuses {
				env.Referee.Ops(0)
				panic("planted")
			}
			return right(s, env, m)
		}},
	} {
		t.Run(bug.property, func(t *testing.T) {
			r, err := Run(t.Context(), Options{Scene: bug.scene, Members: MembersMax, Depth: 12, States: 20_000, Rule: bug.rule})
			if err != nil || r.Violation == nil {
				t.Fatalf("not found: %+v, %v", r, err)
			}
			v := r.Violation
			if v.Property != bug.property {
				t.Errorf("found %s: %s\n%s", v.Property, v.Text, strings.Join(v.Script, "\n"))
			}
			t.Logf("%s: %s; %d states\n%s", v.Property, v.Text, r.States, strings.Join(v.Script, "\n"))
			if last := v.Script[len(v.Script)-1]; !strings.Contains(last, bug.last) || bug.length > 0 && len(v.Script) != bug.length {
				t.Errorf("%d messages, the last is %q", len(v.Script), last)
			}
		})
	}
}

// corrupt is a referee that agrees with the accuser at the first operation.
type corrupt struct{ Program }

func (corrupt) Judge(c dispute.Case, op, tile, slice uint32, root wire.Hash, evidence []byte) (wire.Hash, error) {
	value := wire.NewReader(evidence)
	return value.Hash(), nil
}

// forget clears that a round is final. The offsets are in the package comment of coordinator.
func forget(s coordinator.State, r coordinator.RoundState) {
	seed := r.Seed()
	s.Bytes()[bytes.Index(s.Bytes(), seed[:])-24+112] = 0
}

// disputeBytes returns the bytes of a dispute.
func disputeBytes(s coordinator.State, d dispute.Dispute) []byte {
	return s.Bytes()[bytes.Index(s.Bytes(), d.Commitment.Append(nil))-904:][:1152]
}
