package sim

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// TestCheatsAreFoundOut has a third of sixteen cheat, of all kinds in turn. What must hold of the
// honest ones, of tokens and of points is checked by the simulation itself.
func TestCheatsAreFoundOut(t *testing.T) {
	t.Parallel()
	groups := []string{
		"free-rider free-rider-stale free-rider-none copycat bad-hardware",
		"wrong-data poison scale sign-flip equivocate",
		"sybil sybil withhold late lying-witness",
		"lazy-verifier false-accuser colluder colluder colluder",
		"dodger halves stutter free-rider+late",
		"blinder blinder blinder blinder",
		"denier denier denier denier",
		"shunner shunner shunner shunner",
		"dawdler dawdler dawdler dawdler",
	}
	var all []Exposure
	var measured [2]int // cheats whose checks were followed, by overlap
	seen := map[string]bool{}
	for seed, g := range groups {
		cfg := Config{Seed: uint64(seed), Clients: 16, Steps: 28, Overlap: uint8(seed % 2), Limit: Default(1).Limit, Verification: 40, Adversaries: strings.Fields(g)}
		if strings.HasPrefix(g, "blinder") || strings.HasPrefix(g, "shunner") {
			// A quarter of the members is a blocking minority now and then, and often enough with this seed.
			cfg.Witnesses, cfg.Seed = 5, 4
		}
		switch {
		case strings.HasPrefix(g, "blinder"):
			cfg.Steps = 40 // luck decides how soon a blinder is a witness
		case strings.HasPrefix(g, "shunner"):
			cfg.Steps = 12 // enough to be charged, were a minority's word enough
		case strings.HasPrefix(g, "dawdler"):
			cfg.Steps = 12
		}
		r, err := Run(t.Context(), cfg)
		if err != nil {
			t.Fatalf("%s: %v", g, err)
		}
		honest := cfg.Clients - len(cfg.Adversaries)
		if r.Holders != honest || r.HonestConvicted > 0 || r.Undetected > 0 || r.Steps != cfg.Steps {
			t.Errorf("%s: %d of %d honest ones hold the parameters, %d are convicted; %d cheats are not found out: %+v",
				g, r.Holders, honest, r.HonestConvicted, r.Undetected, r.Convictions)
		}
		for i, name := range cfg.Adversaries {
			k, _ := adversary.Find(name)
			seen[name] = true
			if name == "sybil" && r.of(honest+i) == nil {
				continue // the one that works for the other
			}
			if name == "blinder" && r.of(honest+i) == nil && len(r.Convictions) > 0 {
				continue // luck decides how often it is a witness
			}
			if (name == "shunner" || name == "dawdler") && len(r.Convictions) == 0 {
				continue // nobody is charged, neither the gang nor whom it denies
			}
			if !slices.ContainsFunc(r.of(honest+i), func(c Conviction) bool {
				return convicts(k, c.Offence)
			}) {
				t.Errorf("%s is convicted of %+v", name, r.of(honest+i))
			}
		}
		all = append(all, r.Exposures...)
		measured[cfg.Overlap] += len(r.Exposures)
	}
	for _, k := range adversary.Kinds() {
		if !seen[k.Name] {
			t.Errorf("%s is in no group", k.Name)
		}
	}
	random := prng.New(wire.Sum("cheats"), "fit")
	if f := Fitted(all, &random); min(measured[0], measured[1]) < 4 || f.P < 0.001 {
		t.Errorf("times of detection do not fit the stated chances: %+v; %v cheats measured by overlap", f, measured)
	}
}

func convicts(k adversary.Kind, offence string) bool {
	for _, o := range k.Offences {
		if o.String() == offence {
			return true
		}
	}
	return false
}

// of lists the convictions of a client.
func (r Report) of(client int) (out []Conviction) {
	for _, c := range r.Convictions {
		if c.Client == client {
			out = append(out, c)
		}
	}
	return out
}

func TestSimulationsOfCheatsAreChecked(t *testing.T) {
	for _, c := range []struct {
		kinds string
		want  string
	}{
		{"gremlin", "no adversary"}, {"sybil", "takes 2"}, {"late late late", "at least one must be honest"},
	} {
		cfg := Config{Clients: 3, Steps: 1, Limit: 1, Verification: 10, Adversaries: strings.Fields(c.kinds)}
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.kinds, err)
		}
	}
}

func TestMixHasAllKinds(t *testing.T) {
	mix := Mix(32, true)
	for _, k := range Kinds(true) {
		if n := len(slices.DeleteFunc(slices.Clone(mix), func(s string) bool { return s != k.Name })); n < max(1, k.Gang) {
			t.Errorf("%d of %s among %v", n, k.Name, mix)
		}
	}
	for n := 1; n < 30; n++ {
		if err := (Config{Clients: 60, Adversaries: Mix(n, true)}).checkKinds(); err != nil || len(Mix(n, true)) != n {
			t.Errorf("%d: %v, %v", n, Mix(n, true), err)
		}
	}
}

func TestCheatsAreReplayedBySeed(t *testing.T) {
	t.Parallel()
	cfg := Config{Seed: 11, Clients: 12, Steps: 12, Overlap: 1, Limit: Default(1).Limit, Verification: 40,
		Adversaries: strings.Fields("copycat false-accuser free-rider bad-hardware")}
	first, err := Run(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	second, err := Run(t.Context(), cfg)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("two runs of one seed differ: %v\n%+v\n%+v", err, first, second)
	}
}

// TestFindingsStayFixed simulates what lab campaign found, each shrunk to its smallest
// configuration. docs/bugs.md says what each of them was.
func TestFindingsStayFixed(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"a witness confirms no commitment", Config{Seed: 193, Clients: 3, Steps: 1, Delay: 120 * time.Millisecond,
			Adversaries: []string{"copycat"}, Verification: 5}},
		{"a slow member is accused falsely", Config{Seed: 304, Clients: 14, Steps: 17, Overlap: 1, Delay: 101 * time.Millisecond,
			Jitter: 59 * time.Millisecond, Loss: 0.02, Stragglers: 1, Verification: 50,
			Adversaries: []string{"copycat", "false-accuser", "withhold", "equivocate"}}},
		{"a check ends as a share is computed", Config{Seed: 20385, Clients: 8, Steps: 14, Delay: 47 * time.Millisecond, BySpeed: true,
			Adversaries: []string{"free-rider-stale", "colluder", "colluder"}, Verification: 100}},
		{"a cheat crashes and publishes its node's commitment", Config{Seed: 700130, Clients: 18, Steps: 2, Delay: 55 * time.Millisecond, Crashes: 1,
			Stragglers: 1, Adversaries: []string{"halves", "colluder", "colluder", "copycat", "dodger"}, Verification: 5}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.cfg.Limit = Default(1).Limit
			if _, err := Run(t.Context(), c.cfg); err != nil {
				t.Error(err)
			}
		})
	}
}
