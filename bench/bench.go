// Package bench measures how fast this machine does what entrain does on it: arithmetic, training
// steps, and the exchange of updates. The command entrain bench shows its Report;
// docs/performance.md holds one and reads it.
//
// Speeds are judged by what the machine could do at most, which is measured and not looked up:
// the fused multiply-adds a second of the kernel in use (exact.Worker.Peak), and the bytes a
// second that memory gives. What is compared is measured side by side: a set of trials runs in
// turn, one after the other, round after round, so that a machine which gets slower for a while,
// by heat or by a neighbour, does so for all of them; a result is the median over the rounds. A
// share of the peak is the median of shares, each of the peak as it was just before and after.
// Everything is measured with one thread and with all.
//
//	peak, memory  independent multiply-adds in registers; reading, and copying, memory that no
//	              cache holds (a copy counts what it reads and writes)
//	sgemm         squares, and the products of a training step of the 10m preset, as shares of
//	              the peak of as many threads
//	8 bits        independent products of bytes in registers; squares, quantizing included
//	training      forward, backward and AdamW on a batch of random tokens; Step counts the operations
//	exchange      codec/distro and the hash of parameters, in bytes of binary32 parameters a second
package bench

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/entrain-network/entrain/exact"
)

// A Report is what was measured.
type Report struct {
	Machine  Machine         `json:"machine"`
	Threads  int             `json:"threads"` // all of them
	Peak     Pair            `json:"peak_flops"`
	Read     Pair            `json:"read_bytes_per_second"`
	Copy     Pair            `json:"copy_bytes_per_second"`
	Sgemm    Shares          `json:"sgemm"` // by the side of the square
	SgemmOne Shares          `json:"sgemm_one_thread"`
	Products Shares          `json:"products"` // by productNames
	ProdOne  Shares          `json:"products_one_thread"`
	Flops    map[string]Pair `json:"product_flops"` // of squares, by side, and of products
	Peak8    Pair            `json:"peak_byte_ops"` // products and sums of bytes
	Gemm8    map[string]Pair `json:"gemm8_ops"`     // squares in 8 bits, by side
	Training []Training      `json:"training"`
	Exchange Exchange        `json:"exchange"`
}

// A Pair is a speed with one thread and with all.
type Pair struct {
	One float64 `json:"one"`
	All float64 `json:"all"`
}

// Shares are speeds as shares of the peak of as many threads, by name.
type Shares map[string]float64

// Run measures everything with as many threads as the Go program may use. It ends early, with
// ctx's error, when ctx does. progress is told what is being measured, in a few words.
func Run(ctx context.Context, progress func(what string)) (Report, error) {
	return thorough.run(ctx, progress)
}

// An effort is how long everything is measured, and what is left out.
type effort struct {
	rounds int // of trials
	// one of them takes at least: long beside the clock's steps and the waking of threads, short
	// beside changes of speed
	trial     time.Duration
	products  int           // rounds of products
	product   time.Duration // one of them takes at least, and the peak beside it
	turns     int           // that one thread and all take at training a model
	turn      time.Duration // one of them takes at least
	memory    int           // bytes read, and copied: several times the largest caches there are
	trainings []Training    // which models, and the shape of the batch
	exchange  string        // the preset whose parameters are exchanged
}

var thorough = effort{
	rounds: 11, trial: 40 * time.Millisecond, products: 41, product: 8 * time.Millisecond,
	turns: 3, turn: 1500 * time.Millisecond, memory: 512 << 20, exchange: "50m",
	trainings: []Training{
		{Model: "nano", Batch: 16, Sequence: 128},
		{Model: "10m", Batch: 8, Sequence: 256},
		{Model: "50m", Batch: 4, Sequence: 512},
		{Model: "124m", Batch: 2, Sequence: 1024},
	},
}

func (e effort) run(ctx context.Context, progress func(string)) (Report, error) {
	b := newBench(e, progress)
	defer b.close()
	r := Report{Machine: thisMachine(b.all.Kernel().Name()), Threads: b.all.Workers()}
	for _, part := range []func(context.Context, *Report) error{b.measureMemory, b.measureProducts, b.measure8, b.measureTraining, b.measureExchange} {
		if err := ctx.Err(); err != nil {
			return Report{}, err
		}
		if err := part(ctx, &r); err != nil {
			return Report{}, err
		}
	}
	return r, nil
}

// bench is one run: its effort and the two pools that everything is measured on.
type bench struct {
	effort
	tell     func(what string)
	one, all *exact.Pool
}

func newBench(e effort, tell func(what string)) *bench {
	b := &bench{effort: e, tell: tell, one: exact.NewPool(1)}
	b.all = b.one
	if n := runtime.GOMAXPROCS(0); n > 1 {
		b.all = exact.NewPool(min(n, exact.MaxWorkers))
	}
	return b
}

func (b *bench) close() {
	b.one.Close()
	b.all.Close()
}

func (b *bench) progress(what string) {
	if b.tell != nil {
		b.tell(what)
	}
}

// both returns a trial on each of the pools: one of them if they are the same.
func (b *bench) both(work float64, on func(p *exact.Pool) func() error) pair {
	p := pair{one: &Trial{Work: work, Run: on(b.one)}}
	if p.all = p.one; b.all != b.one {
		p.all = &Trial{Work: work, Run: on(b.all)}
	}
	return p
}

// pair is the same trial with one thread and with all.
type pair struct{ one, all *Trial }

func (p pair) rate() Pair { return Pair{p.one.rate(), p.all.rate()} }

// alternate measures pairs side by side.
func (b *bench) alternate(ctx context.Context, pairs ...pair) error {
	var trials []*Trial
	for _, p := range pairs {
		trials = append(trials, p.one)
		if p.all != p.one {
			trials = append(trials, p.all)
		}
	}
	return Alternate(ctx, b.rounds, b.trial, trials)
}

// ErrMemory says that a model does not fit the memory that is free.
var ErrMemory = errors.New("not enough memory")
