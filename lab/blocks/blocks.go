// Package blocks drives one real replica through the blocks of a busy run, and measures what it
// takes: time, memory and disk. The replica is CometBFT with its files and its API; the members are
// keys that watch the run and send over HTTP what is due, without a model: joins, reports of
// witnesses, verdicts on checks, checkpoints.
package blocks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/lab/check"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/ledger/comet"
)

const (
	chainID = "blocks"
	runName = "run"
	wealth  = 1 << 52 // of the owner
	// blockTime is the least time between blocks: hours of a chain pass in minutes.
	blockTime = time.Millisecond
)

// Options are the settings of a measurement.
type Options struct {
	Members int      // of the run, at least 8
	Marks   []uint64 // heights at which to measure, ascending; the last one ends the run
	Dir     string   // an empty directory for the replicas
	Keep    uint64   // blocks that the replica keeps; 0 means its default
	Observe func(Mark)
}

// Mark is what a replica has taken up to a height.
type Mark struct {
	Height    uint64        `json:"height"`
	Wall      time.Duration `json:"wall_ns"`      // a block since the last mark, on average
	Processor time.Duration `json:"processor_ns"` // likewise, of the process: replica and members
	Txs       uint64        `json:"txs"`          // accepted since the start
	Bytes     uint64        `json:"bytes"`        // of these
	Rounds    uint32        `json:"rounds"`
	Epochs    uint32        `json:"epochs"`
	Heap      uint64        `json:"heap"`  // live bytes of the process after a collection
	Disk      uint64        `json:"disk"`  // bytes of the replica's directory
	State     int           `json:"state"` // bytes of the run's state
}

// Report is the result of a measurement.
type Report struct {
	Marks []Mark `json:"marks"`
	// Sync is how long a new replica takes until it is current.
	Sync time.Duration `json:"sync_ns"`
	// Refused counts the transactions that came too late: a quorum sufficed, or a phase was over.
	Refused uint64 `json:"refused"`
}

// Run founds a chain with one replica, drives it to the last mark, and has a new replica fetch its
// state.
func Run(ctx context.Context, o Options) (r Report, err error) {
	if o.Members < 8 || len(o.Marks) == 0 {
		return r, fmt.Errorf("blocks: %d members and %d marks, want at least 8 and 1", o.Members, len(o.Marks))
	}
	m := newMembers(o.Members)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := found(ctx, cancel, o, m)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, c.end()) }()
	before, processor := time.Now(), processorTime()
	var last uint64
	for len(r.Marks) < len(o.Marks) {
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case s := <-c.news:
			m.act(ctx, s)
			if s.Height < o.Marks[len(r.Marks)] {
				continue
			}
			mark := Mark{
				Height: s.Height, Rounds: uint32(s.State.Round()), Epochs: uint32(s.State.Epoch()), State: len(s.State.Bytes()),
				Wall:      time.Since(before) / time.Duration(s.Height-last),
				Processor: (processorTime() - processor) / time.Duration(s.Height-last),
				Txs:       m.txs.Load(), Bytes: m.bytes.Load(), Heap: heap(),
			}
			if mark.Disk, err = size(c.dir); err != nil {
				return r, err
			}
			r.Marks = append(r.Marks, mark)
			o.Observe(mark)
			before, processor, last = time.Now(), processorTime(), s.Height
		}
	}
	r.Refused = m.refused.Load()
	if err := m.wait(); err != nil {
		return r, err
	}
	r.Sync, err = join(ctx, c.replica, c.dir, filepath.Join(o.Dir, "newcomer"))
	return r, err
}

// chain is a replica and the members of its run.
type chain struct {
	dir     string
	replica *comet.Replica
	members *members
	news    chan ledger.Snapshot // the newest state of the run
	end     func() error
}

// found founds a chain with one replica, and its run.
func found(ctx context.Context, cancel context.CancelFunc, o Options, m *members) (*chain, error) {
	peering, err := freePort()
	if err != nil {
		return nil, err
	}
	c := &chain{members: m, dir: filepath.Join(o.Dir, "replica")}
	err = comet.Init(c.dir, comet.Options{
		Chain: chainID, Accounts: []host.Allocation{{Key: m.owner.Key.Public(), Amount: wealth}},
		API: "127.0.0.1:0", Peering: peering, Block: blockTime, KeepBlocks: o.Keep,
	})
	if err != nil {
		return nil, err
	}
	var end func() error
	if c.replica, end, err = serve(ctx, cancel, c.dir); err != nil {
		return nil, err
	}
	client, err := comet.NewClient(chainID, []string{c.replica.Endpoint()}, nil)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	c.end = func() error { return errors.Join(client.Close(), end()) }
	m.endpoint = c.replica.Endpoint()
	if err := m.found(ctx); err != nil {
		return nil, errors.Join(err, c.end())
	}
	c.news = newest(ctx, client)
	return c, nil
}

// serve runs the replica of a directory until end is called. A replica that halts ends the
// measurement.
func serve(ctx context.Context, cancel context.CancelFunc, dir string) (r *comet.Replica, end func() error, err error) {
	if r, err = comet.Open(dir, slog.New(slog.DiscardHandler), referees); err != nil {
		return nil, nil, err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() {
		ended <- r.Run(ctx)
		cancel()
	}()
	return r, func() error { stop(); return <-ended }, nil
}

func referees([]byte) (dispute.Referee, error) { return check.Program{}, nil }

// newest returns a channel with the newest state of the run.
func newest(ctx context.Context, c *comet.Client) chan ledger.Snapshot {
	news := make(chan ledger.Snapshot, 1)
	c.Watch(ctx, runName, func(s ledger.Snapshot) {
		select {
		case <-news: // an older one
		default:
		}
		news <- s
	})
	return news
}

// join returns the time in which a new replica of the chain becomes current.
func join(ctx context.Context, of *comet.Replica, from, dir string) (took time.Duration, err error) {
	genesis, err := os.ReadFile(filepath.Join(from, "genesis.json"))
	if err != nil {
		return 0, err
	}
	err = comet.Init(dir, comet.Options{
		Genesis: genesis, Peers: []string{of.PeerAddress()}, Sync: []string{of.Endpoint()}, API: "127.0.0.1:0", Block: blockTime,
	})
	if err != nil {
		return 0, err
	}
	c, err := comet.NewClient(chainID, []string{of.Endpoint()}, nil)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	want, err := c.Status(ctx)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	replica, end, err := serve(ctx, cancel, dir)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, end()) }()
	for {
		got, err := comet.Discover(ctx, replica.Endpoint())
		if err == nil && got.Current && got.Height >= want.Height {
			return time.Since(start), nil
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(context.Cause(ctx), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// freePort returns an address of this machine at which others can reach a replica.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// heap returns the bytes of live objects.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers of the first released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// size returns the bytes of all files below dir. Files may go meanwhile.
func size(dir string) (bytes uint64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				bytes += uint64(info.Size())
			}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return bytes, err
}
