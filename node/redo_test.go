package node

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/entrain-network/entrain/coordinator"
)

// setStore is a disk that keeps accepted sets too.
type setStore struct {
	*memStore
	sets []SavedSet
	most int
}

var errDisk = errors.New("no room")

func (s *setStore) SaveSet(v SavedSet) error {
	if s.full != nil {
		return errDisk
	}
	v.Payloads = slices.Clone(v.Payloads)
	s.sets = append(s.sets, v)
	s.most = max(s.most, len(s.sets))
	return nil
}

func (s *setStore) DropSets(to coordinator.Round) error {
	s.sets = slices.DeleteFunc(s.sets, func(v SavedSet) bool { return v.To <= to })
	return nil
}

func (s *setStore) LoadSets() ([]SavedSet, error) { return slices.Clone(s.sets), nil }

// TestAPowerCutOfAllLosesNothingAgreed ends all members at the same moment, some time after their last save, between peers and by buckets. What
// the run had agreed on then stays agreed, although no state file has it.
func TestAPowerCutOfAllLosesNothingAgreed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		members int
		world   func() *world
		start   func(*world, int, ...func(*Config)) *testNode
	}{
		{"peers", 3, func() *world {
			return newWorld(t, 60, 3, func(cfg *coordinator.Config) { cfg.EpochMs = 600_000 })
		}, (*world).start},
		{"alone, without its results", 1, func() *world {
			return newWorld(t, 60, 1, func(cfg *coordinator.Config) { cfg.EpochMs = 600_000 })
		}, (*world).start},
		{"buckets", 3, func() *world {
			return newBucketWorld(t, 12, 3, func(cfg *coordinator.Config) { cfg.EpochMs = 600_000 })
		}, (*world).mine},
		{"a lone miner", 1, func() *world {
			return newBucketWorld(t, 12, 1, func(cfg *coordinator.Config) { cfg.EpochMs = 600_000 })
		}, (*world).mine},
		{"followers", 5, func() *world {
			return newWorld(t, 60, 5, func(cfg *coordinator.Config) { cfg.EpochMs, cfg.Witnesses = 600_000, 1 })
		}, func(w *world, i int, adjust ...func(*Config)) *testNode {
			return w.start(i, append(adjust, func(cfg *Config) { cfg.Engine, cfg.Follow = writing{w.toy}, true })...)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.world()
			disks := make([]setStore, c.members)
			begin := func(i int) {
				c.start(w, i, func(cfg *Config) {
					disks[i].memStore = cfg.Store.(*memStore)
					cfg.Store = &disks[i]
				})
			}
			for i := range disks {
				begin(i)
			}
			unsaved := func() bool {
				agreed, _ := w.state().Params()
				for i := range disks {
					if saved := disks[i].memStore; !saved.ok || saved.saved.Params == agreed {
						return false
					}
				}
				return w.state().Step() > 6
			}
			w.until(10*time.Minute, unsaved)
			for i := range disks {
				w.crash(i)
				if c.name == "alone, without its results" {
					_, at := w.state().Params()
					disks[i].sets = slices.DeleteFunc(disks[i].sets, func(v SavedSet) bool { return v.To > at })
					for k := range disks[i].own {
						disks[i].own[k].Update = nil
					}
				}
			}
			for i := range disks {
				begin(i)
			}
			step, round := w.state().Step(), w.state().Round()
			if c.name == "alone, without its results" {
				w.until(20*time.Minute, func() bool { return w.state().Step() > step+3 })
				if !w.hosts[0].noted("no other member is there") || w.state().Round() > round+returnMost+5 {
					t.Errorf("step %d of round %d after %d of round %d", w.state().Step(), w.state().Round(), step, round)
				}
			}
			w.until(20*time.Minute, func() bool {
				if _, round := w.state().Params(); round == 0 {
					t.Fatal("the run went back to its beginning")
				}
				return w.finished()
			})
			for i := range disks {
				w.agree(i)
			}
			if n := w.state().Rollbacks(); n > 1 || w.state().Step() < step {
				t.Errorf("%d rollbacks", n)
			}
			for i := range disks {
				if len(disks[i].sets) > 0 && disks[i].most > 60 {
					t.Errorf("disk %d has %d sets, once %d", i, len(disks[i].sets), disks[i].most)
				}
				if updates := slices.ContainsFunc(disks[i].sets, func(v SavedSet) bool {
					return len(v.Payloads) == 1 && bytes.HasPrefix(v.Payloads[0], updateMagic)
				}); updates != (c.name == "followers") {
					t.Errorf("disk %d keeps updates: %v", i, updates)
				}
			}
		})
	}
}
