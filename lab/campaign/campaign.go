// Package campaign hunts for bugs: it simulates networks with random members, cheats and faults,
// one after another, for as long as it is given. Most exchange between peers (package sim), some by
// buckets, with validators (package market). A trial is a function of its seed. A trial that breaks
// an invariant or panics is a [Finding]: the campaign shrinks it to the smallest configuration that
// still fails in the same way.
package campaign

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"
	"time"

	"github.com/entrain-network/entrain/lab/results"
	"github.com/entrain-network/entrain/lab/sim"
)

// Result is the result of one trial.
type Result struct {
	Seed    uint64        `json:"seed"`
	Faults  int           `json:"faults"` // faults and cheats in the trial
	Rounds  uint32        `json:"rounds"`
	Virtual time.Duration `json:"virtual_ns"`
	Wall    time.Duration `json:"wall_ns"`
	Finding *finding      `json:"finding,omitempty"`
	// Tolerated is a failure that the protocol does not exclude: see tolerated.
	Tolerated string `json:"tolerated,omitempty"`
}

// finding is a trial that failed.
type finding struct {
	Error  string `json:"error"`  // with the smallest configuration
	Config Config `json:"config"` // the smallest that fails in this way
	Runs   int    `json:"runs"`   // number of simulations for shrinking
}

// Options are the settings of a campaign.
type Options struct {
	First   uint64        // the first seed
	Workers int           // concurrent trials, at least 1
	Limit   time.Duration // wall time; 0 means until ctx ends
	Trials  uint64        // most trials; 0 means no limit
	// File receives a line of JSON for each trial. If it exists, the campaign skips its seeds.
	File string
	// Observe receives each result in the order in which trials end, in one goroutine at a time.
	Observe func(Result)
	// Run simulates one configuration: Simulate, or a stand-in of a test.
	Run func(context.Context, Config) (Report, error)
}

// Config is the configuration of a trial: of one of the two exchanges.
type Config struct {
	Peers   *sim.Config `json:"peers,omitempty"`
	Buckets *Buckets    `json:"buckets,omitempty"`
}

// Report is how far a trial came.
type Report struct {
	Rounds  uint32
	Virtual time.Duration
}

// Simulate runs a trial to its end. The error names the broken invariant.
func Simulate(ctx context.Context, c Config) (Report, error) {
	if c.Buckets != nil {
		return c.Buckets.simulate(ctx)
	}
	r, err := sim.Run(ctx, *c.Peers)
	return Report{r.Rounds, r.Virtual}, err
}

// Summary adds up the results of a campaign, those of its file included.
type Summary struct {
	Trials    int           `json:"trials"`
	Faults    int           `json:"faults"`
	Rounds    uint64        `json:"rounds"`
	Virtual   time.Duration `json:"virtual_ns"`
	Wall      time.Duration `json:"wall_ns"` // sum over all workers
	Tolerated int           `json:"tolerated"`
	Findings  []Result      `json:"findings,omitempty"`
}

func (s *Summary) add(r Result) {
	s.Trials++
	s.Faults += r.Faults
	s.Rounds += uint64(r.Rounds)
	s.Virtual += r.Virtual
	s.Wall += r.Wall
	if r.Tolerated != "" {
		s.Tolerated++
	}
	if r.Finding != nil {
		s.Findings = append(s.Findings, r)
	}
}

// Run runs trials until the limit, the number of trials or ctx ends it. It finishes the trials
// under way only if the number ends it; unfinished ones leave no result.
func Run(ctx context.Context, o Options) (Summary, error) {
	if o.Run == nil {
		o.Run = Simulate
	}
	if o.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Limit)
		defer cancel()
	}
	var sum Summary
	file, kept, err := results.Open[Result](o.File)
	if err != nil {
		return sum, err
	}
	defer file.Close()
	done := map[uint64]bool{}
	for _, r := range kept {
		done[r.Seed] = true
		sum.add(r)
	}
	var (
		mu     sync.Mutex
		group  sync.WaitGroup
		next   = o.First
		begun  uint64
		failed error
	)
	seed := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		for done[next] {
			next++
		}
		if ctx.Err() != nil || failed != nil || o.Trials > 0 && begun == o.Trials {
			return 0, false
		}
		begun++
		next++
		return next - 1, true
	}
	for range max(o.Workers, 1) {
		group.Go(func() {
			for s, ok := seed(); ok; s, ok = seed() {
				r, ok := trial(ctx, o.Run, s)
				if !ok {
					return
				}
				mu.Lock()
				sum.add(r)
				failed = errors.Join(failed, file.Add(r))
				if o.Observe != nil {
					o.Observe(r)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return sum, failed
}

// trial runs the simulation of a seed. It reports false if ctx ended it.
func trial(ctx context.Context, run runner, seed uint64) (Result, bool) {
	cfg := draw(seed)
	start := time.Now()
	report, err := run.safely(ctx, cfg)
	if ctx.Err() != nil {
		return Result{}, false
	}
	r := Result{Seed: seed, Faults: cfg.faults(), Rounds: report.Rounds, Virtual: report.Virtual}
	switch {
	case err == nil:
	case tolerated(cfg, err):
		r.Tolerated = err.Error()
	default:
		f := shrink(ctx, run, cfg, err)
		r.Finding = &f
	}
	r.Wall = time.Since(start)
	return r, ctx.Err() == nil
}

type runner func(context.Context, Config) (Report, error)

// safely runs a simulation and returns a panic as an error.
func (run runner) safely(ctx context.Context, cfg Config) (report Report, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	return run(ctx, cfg)
}

// shrinkRunsMax bounds the simulations that shrinking one finding may take.
const shrinkRunsMax = 60

// shrink returns the smallest configuration it finds that fails as cfg does. It tries the
// simplifications in turn, each until it no longer fails, until a whole turn has changed nothing.
func shrink(ctx context.Context, run runner, cfg Config, err error) finding {
	f := finding{Error: err.Error(), Config: cfg}
	for changed := true; changed; {
		changed = false
		for _, simplify := range simplifications {
			for smaller, ok := simplify(f.Config); ok; smaller, ok = simplify(f.Config) {
				if f.Runs == shrinkRunsMax || ctx.Err() != nil {
					return f
				}
				f.Runs++
				_, err := run.safely(ctx, smaller)
				if err == nil || ctx.Err() != nil || class(err.Error()) != class(f.Error) {
					break
				}
				f.Error, f.Config, changed = err.Error(), smaller, true
			}
		}
	}
	return f
}

// numbers are the parts of an error that differ between trials which fail in the same way.
var numbers = regexp.MustCompile(`[0-9a-f]{16,}|[0-9][0-9a-z.]*`)

// class returns an error's text without the numbers, hashes and times in it.
func class(text string) string { return numbers.ReplaceAllString(text, "#") }
