// Package demo runs a whole network on one machine, each part a process of its own: a replica of a
// chain, and clients that find each other through it and train a small Llama together. In a run
// that exchanges by buckets there are also an S3 server and validators. A client may cheat, to show
// how the others convict it.
//
//	demo.Run ─┬─ chain         entrain chain start, or a cluster of Solana
//	          ├─ s3            entrain bucket
//	          ├─ client-1      entrain join
//	          ├─ client-4      entrain demo cheat
//	          └─ validator-1   entrain validate
//
// [Run] starts the processes as commands of the entrain program, restarts those that die, and
// returns a [Summary] once all honest clients hold the same final parameters. What happens
// meanwhile goes to the callbacks of [Options]: as records, which a tui.Window or a view.Fold
// shows, and as events for programs. Everything lies in one directory, from which a later Run
// continues.
package demo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/codec/distro"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/ledger/solana"
	"github.com/entrain-network/entrain/llama"
	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/spec"
)

// Options say what [Run] does and whom it tells.
type Options struct {
	Settings
	// Dir keeps everything: a later Run continues from it, with the settings it was begun with. ""
	// means a temporary directory of which only the checkpoint stays.
	Dir string
	// S3 is where all clients write their buckets, below its prefix. Nil means a server of the demo's
	// own. Without Dir, Run removes in the end what the clients wrote.
	S3 *bucket.Location
	// Program is the path of the entrain program; "" means the running one. Env is the environment of
	// its processes.
	Program string
	Env     []string

	// The callbacks run on the goroutine that called Run. Each may be nil.

	Say    func(text string)      // announces what begins
	Record func(runlog.Record)    // states of the run, and what its clients report
	Event  func(Event)            // all events of all processes
	Member func(key, name string) // names a client that will take part
}

// Event is an event of a client, or one of the demo itself about a process, of kind "process".
type Event struct {
	Time    string `json:"time"`
	Process string `json:"process"`
	PID     int    `json:"pid,omitempty"` // of a process that has started

	Event event.Event `json:"-"`
}

// MarshalJSON returns one object of the process and the event.
func (e Event) MarshalJSON() ([]byte, error) {
	type head Event
	return event.Marshal(head(e), e.Event)
}

// Settings are a demo's model, data and participants. The file demo.json in its directory holds
// them; a flag of the command sets each.
type Settings struct {
	Clients int    `json:"clients" flag:"clients"`
	Rounds  uint32 `json:"rounds" flag:"rounds"` // that train; by buckets: windows
	Text    string `json:"text" flag:"text"`     // file to train on; "" for Newton's Opticks
	Preset  string `json:"preset" flag:"preset"` // of the model
	// Chain is "" for a replica of entrain's own chain, or Solana.
	Chain string `json:"chain,omitempty" flag:"chain"`
	// Device is what every second client computes gradients on: see trainer.Machine.
	Device string `json:"device,omitempty" flag:"device"`
	// Adversary is the kind of cheat that the last clients are; "" means that all are honest.
	Adversary string `json:"adversary,omitempty" flag:"adversary"`
	// Verification is the percentage of the results that others recompute.
	Verification uint8         `json:"verification_percent" flag:"verification"`
	Exchange     string        `json:"exchange,omitempty" flag:"exchange"`     // Peers or Buckets
	Validators   int           `json:"validators,omitempty" flag:"validators"` // by buckets
	Window       time.Duration `json:"window_ns,omitempty" flag:"window"`      // by buckets
}

// The values of Settings.Exchange: how results travel.
const (
	Peers   = "peers"
	Buckets = "bucket"
)

const (
	runName    = "demo"
	clientsMax = 64
	// honestMin is the number of honest clients that it takes to convict another: one accuses, one
	// breaks the tie.
	honestMin = 2
	// verification is the default percentage of results that others recompute. With a cheat it is
	// higher, to convict within the rounds that people watch.
	verification, verificationOfCheats = 5, 25
	// stake is what a client stakes and can lose: all its tokens.
	stake = 1000
	// treasury is what the run pays its members from, a token a point; supply is all tokens.
	treasury, supply = 100_000, 1_000_000

	validatorsMax        = 8
	windowMin, windowMax = 200 * time.Millisecond, time.Hour
	// scoreWindows is the length of a scoring period; emission is distributed after each.
	scoreWindows, emission = 10, 1000
	validatorPercent       = 10
	// compression is the number of windows until every parameter was in a slice. It is low, so that
	// each weight moves often enough in a run of minutes, and goes with a higher learning rate.
	compression = 4
	bucketRate  = 4e-3
	// peersBatch is the sequences of a round between peers. A round waits for gossip and blocks about
	// as long as two cores compute 48 sequences of nano; with 96 they compute most of the time.
	peersBatch = 96
	// bucketBatch is the sequences of a window. Updates are a window late; twice as many of half the
	// size make up for it.
	bucketBatch = 8

	// block is the time between blocks; a round takes several, one after the other. slowBlock is that
	// of a run with a cheat, whose rounds leave time for a dispute. A window has windowBlocks blocks,
	// of slowestBlock at most: each takes a little longer than it should, and few make windows that
	// take as long as they say.
	block, slowBlock, slowestBlock = 10 * time.Millisecond, 50 * time.Millisecond, 100 * time.Millisecond
	windowBlocks                   = 10
)

// Default returns the settings of a demo on a chain with an exchange and a kind of cheat, or "".
// Text is not set, and so Newton's Opticks.
func Default(chain, exchange, adversary string) Settings {
	s := Settings{Chain: chain, Clients: 4, Rounds: 240, Preset: "nano", Adversary: adversary, Verification: verification, Exchange: exchange}
	switch {
	case chain == Solana && !s.buckets():
		// A round waits for three or four transactions, one after the other.
		s.Clients, s.Rounds, s.Verification = 8, 50, 0
	case s.buckets():
		// Two idle cores compute the shares of eight processes in less than half a window. A window
		// never closes early: see Settings.Takes.
		s.Clients, s.Verification, s.Validators, s.Window, s.Rounds = 6, 0, 2, time.Second, 90
		if chain == Solana { // a commitment takes three or four of its blocks
			s.Window, s.Rounds = 3*time.Second, 40
		}
	case adversary != "":
		s.Verification = verificationOfCheats
	}
	return s
}

// Takes returns how long a demo by buckets takes on an idle machine: its windows, a tenth more
// between epochs, a period or two that are scored after the last, and a little for the blocks.
func (s Settings) Takes() time.Duration {
	windows := s.Rounds + s.Rounds/10
	if s.Validators > 0 {
		windows += 2 * s.scoreWindows()
	}
	return (time.Duration(windows) * s.Window * 11 / 10).Round(5 * time.Second)
}

// scoreWindows returns the length of a scoring period in windows.
func (s Settings) scoreWindows() uint32 { return min(scoreWindows, max(2, s.Rounds/4)) }

func (s Settings) buckets() bool { return s.Exchange == Buckets }

// kind returns the kind of cheat that the last clients are.
func (s Settings) kind() (adversary.Kind, bool) {
	if s.buckets() {
		return adversary.FindMiner(s.Adversary)
	}
	return adversary.Find(s.Adversary)
}

// cheats returns the number of clients that cheat: the last ones.
func (s Settings) cheats() int {
	if s.Adversary == "" {
		return 0
	}
	k, _ := s.kind()
	return max(1, k.Gang)
}

// blockTime returns the time between blocks.
func (s Settings) blockTime() time.Duration {
	if s.Chain == Solana {
		return solanaBlock
	}
	switch {
	case s.buckets():
		return min(s.Window/windowBlocks, slowestBlock)
	case s.Adversary != "":
		return slowBlock
	}
	return block
}

// Check reports what is wrong with the settings. An error begins with the name of a setting.
func (s Settings) Check() error {
	switch {
	case s.Chain != "" && s.Chain != Solana:
		return fmt.Errorf("chain %q: want %s", s.Chain, Solana)
	case s.Chain == Solana && s.Verification > 0 && !s.buckets():
		return fmt.Errorf("chain %s: its referee judges steps up to their gradient: use --exchange bucket, or leave out --verification", Solana)
	}
	if s.Exchange != Peers && s.Exchange != Buckets {
		return fmt.Errorf("exchange %q: want %s or %s", s.Exchange, Peers, Buckets)
	}
	kind, ok := s.kind()
	if s.Adversary != "" && !ok {
		names := adversary.Names()
		if s.buckets() {
			names = adversary.MinerNames()
		}
		return fmt.Errorf("adversary %q: with exchange %s the kinds are %s", s.Adversary, s.Exchange, names)
	}
	switch n := s.cheats(); {
	case s.Clients < 1 || s.Clients > clientsMax:
		return fmt.Errorf("clients %d: want 1 to %d", s.Clients, clientsMax)
	case n > 0 && s.Clients < n+honestMin:
		return fmt.Errorf("clients %d: %d of them cheat, so there must be at least %d", s.Clients, n, n+honestMin)
	case s.Verification > 100:
		return fmt.Errorf("verification %d: want 0 to 100", s.Verification)
	case s.Rounds < 1:
		return errors.New("rounds 0: want at least 1")
	case !s.buckets() && n > 0 && s.Verification == 0 && s.Chain == Solana && !kind.Signed():
		return fmt.Errorf("adversary %s: its conviction takes a referee, which %s does not have yet; only %s is convicted there", s.Adversary, Solana, signed())
	case !s.buckets() && n > 0 && s.Verification == 0 && !kind.Signed():
		return errors.New("verification 0: without it no cheat is found; leave out the adversary too")
	case s.Validators < 0 || s.Validators > validatorsMax:
		return fmt.Errorf("validators %d: want 0 to %d", s.Validators, validatorsMax)
	case s.buckets() && (s.Window < windowMin || s.Window > windowMax):
		return fmt.Errorf("window %v: want %v to %v", s.Window, windowMin, windowMax)
	case s.buckets() && n > 0 && s.Validators == 0 && s.Verification == 0:
		return errors.New("validators 0: without them and without verification no cheat is found; leave out the adversary too")
	}
	if _, err := llama.Preset(s.Preset); err != nil {
		return fmt.Errorf("preset: %w", err)
	}
	return nil
}

// signed names the kinds of cheats that are convicted without checks of results.
func signed() string {
	var names []string
	for _, k := range adversary.Kinds() {
		if k.Signed() {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Specification returns the specification of the run, without its data.
func (s Settings) Specification() spec.Spec {
	p := spec.Default(all.Kinds())
	p.Name, p.Steps, p.Model.Preset = runName, s.Rounds, s.Preset
	p.Data.Sequence = 128
	coefficients := distro.Config{}.Kind().Defaults.(distro.Config)
	coefficients.TopK = 32
	p.Optimizer = coefficients
	p.LearningRate.Base, p.LearningRate.Final = 2e-3, 2e-4
	p.LearningRate.Warmup = min(20, s.Rounds/10)
	p.Batch.Start = peersBatch
	if s.Preset == "tiny" {
		p.Batch.Start = peersBatch / 6
	}
	p.Members.Min, p.Members.Start, p.Members.Capacity = 1, uint32(s.Clients), 64
	p.Trust = spec.Trust{VerificationPercent: s.Verification, Stake: stake, Rate: 1}
	// A round takes half a second, one of the tiny model a tenth; a client that is not done after
	// twenty times as long was killed, or is starting again. Short epochs make checkpoints often, to
	// which the run goes back when all processes are killed at once; short warmups let it notice.
	round := 5 * time.Minute
	switch {
	case s.Device != "" && !s.buckets():
		round = time.Minute // a device proves itself in the warmup, and may be slower than the processor
	case s.Preset == "nano" && !s.buckets():
		round = 10 * time.Second
	case s.Preset == "tiny" && !s.buckets() && s.Chain != Solana:
		round = 2500 * time.Millisecond
	case s.Preset == "nano" || s.Preset == "tiny":
		round = 5 * time.Second
	}
	p.Times = spec.Times{
		Waiting: spec.Duration(0), Warmup: spec.Duration(2 * round), RoundTrain: spec.Duration(round),
		RoundWitness: spec.Duration(time.Second), Cooldown: spec.Duration(round), Epoch: spec.Duration(4 * round),
	}
	if s.buckets() {
		s.byBuckets(&p)
	}
	if n := s.cheats(); n > 0 {
		// The run does not wait for clients that it dropped or ejected. At its beginning all are there,
		// because it is paused until then.
		p.Members.Start = uint32(s.Clients - n)
		p.Times.Waiting = spec.Duration(2 * time.Second)
	}
	if s.Verification > 0 {
		// A stake is free once the last result can no longer be checked.
		p.Trust.Verify, p.Trust.Dispute = spec.Duration(3*round), spec.Duration(4*round)
		if s.Chain == Solana {
			p.Trust.Dispute = spec.Duration(solana.DisputeMsMin * time.Millisecond)
		}
	}
	return p
}

// byBuckets makes a specification one of a run by buckets.
func (s Settings) byBuckets(p *spec.Spec) {
	p.Exchange = spec.Exchange{Kind: spec.ExchangeBucket, WindowBlocks: uint32(max(1, s.Window/s.blockTime()))}
	p.Members.Overlap, p.Members.MissedMax = 1, 10
	slices := slice.Config{}.Kind().Defaults.(slice.Config)
	slices.Compression = compression
	p.Optimizer = slices
	p.LearningRate.Base, p.LearningRate.Final = bucketRate, bucketRate/10
	p.Batch.Start = uint32(max(bucketBatch, s.Clients))
	p.Trust = spec.Trust{VerificationPercent: s.Verification, Stake: stake}
	if s.Validators > 0 {
		p.Scores = spec.Scores{
			Validators: uint16(s.Validators), Windows: s.scoreWindows(), Emission: emission, ValidatorPercent: validatorPercent,
		}
	}
	// A window ends by height. An epoch is long enough that few windows are lost between two, and
	// short enough that a late member is soon in.
	p.Times.RoundTrain = spec.Duration(s.Window + s.Window/2)
	p.Times.RoundWitness = spec.Duration(s.Window)
	p.Times.Epoch = spec.Duration(max(40*s.Window, time.Minute))
}

// Kinds lists the kinds of cheats for a help text, those of an exchange.
func Kinds(exchange string) string {
	kinds := adversary.Kinds()
	if exchange == Buckets {
		kinds = adversary.Miners()
	}
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "\n  %-16s  ", k.Name)
		column := 0
		for _, word := range strings.Fields(k.Tries) {
			if column += 1 + len(word); column > 80 {
				fmt.Fprintf(&b, "\n  %-16s  ", "")
				column = 1 + len(word)
			} else if column > 1+len(word) {
				b.WriteByte(' ')
			}
			b.WriteString(word)
		}
	}
	return b.String()
}

// KindNames returns the names of all kinds of cheats.
func KindNames() []string {
	list := strings.Split(adversary.Names()+", "+adversary.MinerNames(), ", ")
	slices.Sort(list)
	return slices.Compact(list)
}
