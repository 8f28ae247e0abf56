package founding

import (
	"testing"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/spec"
)

func TestWhatATreasuryLacksIsSaid(t *testing.T) {
	const bucket = "name = \"x\"\nsteps = 100\n[exchange]\nkind = \"bucket\"\n[times]\nround_train = \"1m\"\n[trust]\nstake = 10\n[scores]\nvalidators = 2\nwindows = 10\nemission = 10000\n"
	for _, v := range []struct {
		text     string
		treasury uint64
		want     string
	}{
		{"name = \"x\"\nsteps = 10\n", 0, ""},
		{"name = \"x\"\nsteps = 10\n[batch]\nstart = 4\n[trust]\nrate = 2\n", 0,
			"the treasury, which pays 2 tokens a point, has 0 tokens and lacks 80 for the whole run; fill it with: entrain wallet send x 80"},
		{"name = \"x\"\nsteps = 10\n[batch]\nstart = 4\n[trust]\nrate = 2\n", 80, ""},
		{bucket, 1, "the treasury, which pays 10,000 tokens a period (about 1,440,000 a day, at a window in 1m), has 1 token and lacks 99,999 for the whole run; fill it with: entrain wallet send x 99999"},
		{"name = \"x\"\nsteps = 25\n[scores]\nvalidators = 2\nwindows = 10\nemission = 7\n", 0,
			"the treasury, which pays 7 tokens a period, has 0 tokens and lacks 21 for the whole run; fill it with: entrain wallet send x 21"},
	} {
		s, err := spec.Parse([]byte(v.text), all.Kinds())
		if err != nil {
			t.Fatalf("%s: %v", v.text, err)
		}
		if got := unfunded(s, v.treasury); got != v.want {
			t.Errorf("%s: %q, want %q", v.text, got, v.want)
		}
	}
}
