package participant_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/spec"
	_ "github.com/entrain-network/entrain/tests/heap"
	_ "github.com/entrain-network/entrain/tests/ramdisk"
)

func TestAnOldProgramIsTold(t *testing.T) {
	for _, c := range []struct {
		least, since, program string
		held                  bool
	}{
		{"", "", "v0.1.0", false}, {"v1.2.0", "", "v1.1.9", true}, {"v1.2.0", "", "v1.2.0", false}, {"v1.2.0", "", "v2.0.0+dirty", false},
		{"v1.2.0", "", "(devel)", false}, {"", "v1.2.0", "v1.1.9", true}, {"v1.1.0", "v1.2.0", "v1.1.9", true}, {"v1.2.0", "v1.1.0", "v1.1.9", true},
		{"v1.1.0", "v1.2.0", "v1.2.0", false}, {"", "nonsense", "v0.1.0", false},
	} {
		s := spec.Spec{Name: "ours", Members: spec.Members{ClientMin: c.least}}
		list := participant.TooOld(s, c.since, c.program)
		if held := len(list) == 1 && list[0].Kind == participant.ObstacleVersion && strings.Contains(list[0].Reason, fmt.Sprintf("wants entrain v1.2.0 or newer, and this is %s", c.program)); held != c.held {
			t.Errorf("%+v: %v", c, list)
		}
	}
}

// refusals of a coordinator that has seen more than a test's chain does.
func TestWhoMayNotJoinAnyMore(t *testing.T) {
	config := coordinator.Config{Name: "run", MinMembers: 1, StartMembers: 1, WarmupMs: 1, RoundTrainMs: 1000, RoundWitnessMs: 1, CooldownMs: 1, EpochMs: 1000,
		TotalSteps: 1, BatchStart: 1, BatchEnd: 1, SequenceTokens: 1, MissedMax: 1}
	limits := coordinator.Limits{Members: 4, Witnesses: 1}
	config.Owner[0], config.ModelHash[0], config.SpecHash[0] = 1, 1, 1
	if faults := config.Check(limits); len(faults) > 0 {
		t.Fatal(faults)
	}
	st, err := coordinator.New(limits, config, coordinator.Env{NowMs: 1})
	if err != nil {
		t.Fatal(err)
	}
	who := participant.Applicant{Key: key.Public{7}}
	if list, err := who.Asked(t.Context(), nil, ledger.Snapshot{State: st, TimeMs: 1}); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	before := st.Hash()
	if _, err := who.Asked(t.Context(), nil, ledger.Snapshot{State: st, TimeMs: 1}); err != nil || st.Hash() != before {
		t.Errorf("asking changed the state, or failed: %v", err)
	}
	if text := who.Conviction(st); !strings.Contains(text, "was ejected") || !strings.Contains(text, "older than those") {
		t.Errorf("got %s", text)
	}
}
