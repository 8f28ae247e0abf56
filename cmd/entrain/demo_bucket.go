package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/entrain-network/entrain/atomicfile"
	"github.com/entrain-network/entrain/bucket"
	"github.com/entrain-network/entrain/codec/slice"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/lab/adversary"
	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/spec"
)

// What a demo of a run that exchanges by buckets has beside one between peers: an S3 server, or buckets at one that is there already,
// validators, and what the members earned for their scores.

const (
	exchangePeers  = "peers"
	exchangeBucket = "bucket"

	// Of a demo by buckets unless told otherwise.
	demoMiners, demoWindows, demoValidators = 6, 300, 2
	demoValidatorsMax                       = 8
	// demoWindow is how long a window takes: two idle cores compute eight processes' shares in less than half of it.
	demoWindow                      = time.Second
	demoWindowLeast, demoWindowMost = 200 * time.Millisecond, time.Hour
	// demoScoreWindows is how many windows a period of scores has, and demoEmission what is distributed after each.
	demoScoreWindows, demoEmission = 10, 1000
	demoValidatorPercent           = 10
	// demoCompression is how many windows it takes until all of the model has been a slice: so few that each weight moves often enough in a
	// run of minutes. With it goes the learning rate.
	demoCompression = 4
	demoRate        = 4e-3
	// demoBatch is the sequences of a window: half of a round's between peers, for updates are a window late, and twice as many of half the
	// size make up for it.
	demoBatch = 8

	serverName  = "s3"
	serverDir   = "s3"
	storeFile   = "s3.location"
	bucketWrite = "bucket.write"
	bucketRead  = "bucket.read"
)

func validatorName(i int) string { return fmt.Sprintf("validator-%d", i+1) }

// buckets says whether the demo's run exchanges by buckets.
func (o demoOptions) buckets() bool { return o.exchange == exchangeBucket }

// settle fills in what follows from the kind of exchange.
func (o *demoOptions) settle(given func(flag string) bool) {
	if !o.buckets() {
		o.validators, o.window = 0, 0
		if o.adversary != "" && !given("verification") {
			o.verification = adversaryVerification
		}
		return
	}
	o.verification = 0
	if !given("clients") {
		o.clients = demoMiners
	}
	if !given("rounds") {
		o.rounds = demoWindows
	}
}

// checkExchange says what is wrong with the flags about the exchange.
func (o demoOptions) checkExchange(given func(flag string) bool) error {
	if o.exchange != exchangePeers && o.exchange != exchangeBucket {
		return fmt.Errorf("--exchange %q: want %s or %s", o.exchange, exchangePeers, exchangeBucket)
	}
	if !o.buckets() {
		for _, flag := range []string{"s3", "validators", "window"} {
			if given(flag) {
				return fmt.Errorf("--%s: only with --exchange %s", flag, exchangeBucket)
			}
		}
		return nil
	}
	switch {
	case given("verification"):
		return fmt.Errorf("--verification: with --exchange %s validators score the results instead", exchangeBucket)
	case o.validators < 0 || o.validators > demoValidatorsMax:
		return fmt.Errorf("--validators %d: want 0 to %d", o.validators, demoValidatorsMax)
	case o.window < demoWindowLeast || o.window > demoWindowMost:
		return fmt.Errorf("--window %v: want %v to %v", o.window, demoWindowLeast, demoWindowMost)
	case o.adversary != "" && o.validators == 0:
		return errors.New("--validators 0: without any nobody scores, and a cheat is paid like the others; leave --adversary out too")
	}
	return nil
}

// kind finds the kind of cheat that the demo is to show.
func (o demoOptions) kind() (adversary.Kind, bool) {
	if o.buckets() {
		return adversary.FindMiner(o.adversary)
	}
	return adversary.Find(o.adversary)
}

// exchange makes a specification one of a run by buckets.
func (o demoOptions) byBuckets(s *spec.Spec) {
	s.Exchange = spec.Exchange{Kind: spec.ExchangeBucket, WindowBlocks: uint32(max(1, o.window/o.block()))}
	s.Members.Overlap = 1
	s.Members.MissedMax = 10
	kind := slice.Kind()
	options := kind.Defaults.(slice.Config)
	options.Compression = demoCompression
	s.Optimizer = spec.Optimizer{Codec: kind.Name, Options: options}
	s.LearningRate.Base, s.LearningRate.Final = demoRate, demoRate/10
	s.Batch.Start = uint32(max(demoBatch, o.clients))
	s.Trust = spec.Trust{Stake: demoStake}
	if o.validators > 0 {
		s.Scores = spec.Scores{Validators: uint16(o.validators), Windows: min(demoScoreWindows, max(2, o.rounds/4)), Emission: demoEmission, ValidatorPercent: demoValidatorPercent}
	}
	// A window ends by height. An epoch is long enough that few windows are lost between two, and short enough that a late member is soon in.
	s.Times.RoundTrain = spec.Duration(o.window + o.window/2)
	s.Times.RoundWitness = spec.Duration(o.window)
	s.Times.Epoch = spec.Duration(max(40*o.window, time.Minute))
	s.Members.Start = uint32(o.clients)
	s.Times.Waiting = spec.Duration(0)
}

// setUpBuckets prepares what the exchange takes: the address of the server to be started, or the location of the one that is there.
func (d *demoDir) setUpBuckets(ctx context.Context, c console, o demoOptions) (err error) {
	if !o.buckets() {
		return nil
	}
	if err := os.MkdirAll(d.file(serverDir), 0o700); err != nil {
		return err
	}
	if o.s3 == "" {
		d.set.S3, err = freeAddress()
		return err
	}
	at, err := participant.Location("s3", o.s3)
	if err != nil {
		return err
	}
	client := bucket.NewClient(bucket.S3Options{})
	defer client.Close()
	if at.Prefix == "" {
		at = at.Under("entrain-demo-" + key.FromSeed([32]byte(fmt.Appendf(nil, "%-32.32s", filepath.Base(d.path)))).Public().String()[:8])
	}
	if err := (participant.Mining{Shared: true}).Probe(ctx, client, at, at, "demo"); err != nil {
		return fmt.Errorf("--s3: %w", err)
	}
	for i := range o.clients {
		for _, name := range []string{bucketWrite, bucketRead} {
			if err := atomicfile.WriteBytes(d.file(clientName(i), name), 0o600, []byte(at.Under(clientName(i)).URL()+"\n")); err != nil {
				return err
			}
		}
	}
	return nil
}

// bucketArgs are a client's arguments about its bucket.
func (d *demo) bucketArgs(name string) []string {
	set := d.dir.set
	switch {
	case set.Exchange != exchangeBucket:
		return nil
	case set.S3 == "":
		return []string{"--role", participant.RoleMiner, "--bucket", d.dir.file(name, bucketWrite), "--bucket-read", d.dir.file(name, bucketRead), "--private-buckets", "--bucket-shared"}
	}
	own := d.dir.file(serverDir, name)
	return []string{"--role", participant.RoleMiner, "--bucket", own + ".write", "--bucket-read", own + ".read", "--private-buckets"}
}

// server is the child process that serves the buckets, if the demo has one.
func (d *demo) server() (ch child, ok bool) {
	if d.dir.set.Exchange != exchangeBucket || d.dir.set.S3 == "" {
		return child{}, false
	}
	args := []string{"bucket", "serve", "--dir", d.dir.file(serverDir), "--listen", d.dir.set.S3, "--json"}
	for i := range d.dir.set.Clients {
		args = append(args, "--bucket", clientName(i))
	}
	return child{name: serverName, args: args}, true
}

// validator is the child process of one validator.
func (d *demo) validator(i int) child {
	name := validatorName(i)
	return child{name: name, args: []string{"validate", demoRunName, "--json", "--private-buckets",
		"--chain", "http://" + d.dir.set.API, "--key", d.dir.file(name, "key"), "--state", d.dir.file(name), "--data", d.dir.file("data"),
		"--workers", "1", "--stake", fmt.Sprint(demoStake),
	}}
}

// validatorKey is the public key of a validator, which is made if need be.
func (d *demoDir) validatorKey(c console, i int) (key.Public, error) {
	if err := os.MkdirAll(d.file(validatorName(i)), 0o755); err != nil {
		return key.Public{}, err
	}
	k, _, err := c.ensureKey(d.file(validatorName(i), "key"))
	return k.Public(), err
}

// market is what the demo knows of scores and rewards, from the chain itself. It is a plain value.
type market struct {
	on      bool
	rows    []earning // of the clients
	open    bool      // a period of the run is still to be scored
	scored  uint32    // periods settled
	sent    map[string]uint64
	windows map[string]uint32
}

// earning is what one client has earned for its scores.
type earning struct {
	Client  string  `json:"client"`
	Cheats  bool    `json:"adversary,omitempty"`
	Score   float64 `json:"score"`  // moving average, -1 to 1
	Earned  uint64  `json:"earned"` // tokens in all
	Share   float64 `json:"share"`  // of what all clients earned
	Results uint32  `json:"results"`
	// Sent is the bytes that it wrote to its bucket a window, all objects and their envelopes.
	Sent uint64 `json:"bytes_per_window"`
}

// judge takes the newest state of the run.
func (m *market) judge(c *court, s coordinator.State) {
	if !m.on {
		return
	}
	m.rows = m.rows[:0]
	total := uint64(0)
	for i, k := range c.keys {
		row := earning{Client: clientName(i), Cheats: c.kindOf(k) != ""}
		if at, ok := s.Find(k); ok {
			v := s.Member(at)
			row.Earned, row.Results = v.Earned, v.Results
			row.Score = float64(v.Score) / float64(coordinator.ScoreOne)
			total += v.Earned
		}
		if n := m.windows[row.Client]; n > 0 {
			row.Sent = m.sent[row.Client] / uint64(n)
		}
		m.rows = append(m.rows, row)
	}
	for i := range m.rows {
		if total > 0 {
			m.rows[i].Share = float64(m.rows[i].Earned) / float64(total)
		}
	}
	m.open = s.Phase() == coordinator.Finished && s.DeadlineHeight() != 0
	m.scored = s.Period()
}

// traffic takes what a client says that it has written to its bucket so far.
func (m *market) traffic(name string, ev event.Traffic) {
	if m.sent == nil {
		m.sent, m.windows = map[string]uint64{}, map[string]uint32{}
	}
	m.sent[name], m.windows[name] = m.sent[name]+ev.Bytes, m.windows[name]+1
}

// share is what the cheats among the clients have earned of all.
func (m *market) share() (share float64) {
	for _, r := range m.rows {
		if r.Cheats {
			share += r.Share
		}
	}
	return share
}

// sentMean is the mean of what an honest client wrote in a window.
func (m *market) sentMean() uint64 {
	var sum, n uint64
	for name, bytes := range m.sent {
		sum, n = sum+bytes, n+uint64(m.windows[name])
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// line is the market for people.
func (m *market) line() string {
	if !m.on || len(m.rows) == 0 {
		return ""
	}
	text := fmt.Sprintf("scores of %d periods; earned:", m.scored)
	for _, r := range m.rows {
		text += fmt.Sprintf(" %.1f%%", 100*r.Share)
	}
	return text
}

// endpointLine reads the line by which a child says that it serves.
func endpointLine(line []byte) bool {
	var ev struct {
		Event string `json:"event"`
	}
	return json.Unmarshal(line, &ev) == nil && ev.Event == "listening"
}

// validators' tokens: what they stake.
func (d *demoDir) validatorAccounts(c console) (list []host.Allocation, err error) {
	for i := range d.set.Validators {
		k, err := d.validatorKey(c, i)
		if err != nil {
			return nil, err
		}
		list = append(list, host.Allocation{Key: k, Amount: demoStake})
	}
	return list, nil
}
