package comet

import (
	"bytes"
	"slices"
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/change"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/wire"
)

// hub passes blocks to watchers of a run's state and to submitters of transactions. It holds the
// parts of the committed state that they need, so that no reader delays consensus.
type hub struct {
	mu      sync.Mutex // guards what follows
	height  uint64     // height of the last block, shown or not
	timeMs  uint64
	stall   bool // a block is due, and none comes
	stage   stage
	header  uint64     // height of the last header that proved a state
	proven  []provenAt // the last proven states
	shown   chan struct{}
	feeds   map[string]*feed
	created chan struct{} // closed, and replaced, when a run is created
	waiting map[wire.Hash][]chan<- outcome
}

// stage is the state after the last block.
type stage struct {
	root     wire.Hash // Host.Hash
	timeMs   uint64
	views    []host.View
	proofs   []host.RunProof
	outcomes []outcome
}

// provenAt is a proven state and the height of the header with its hash.
type provenAt struct {
	root   wire.Hash
	header uint64
}

const provenMax = 64

// feed is the state of one run, with the history needed to find changes since a height.
type feed struct {
	sight
	// changed holds, for each page, the height of the block that changed it last. For a page
	// unchanged since the process began, it is the height of the state that the process began with.
	changed []uint64
	next    chan struct{}       // closed, and replaced, when the state changes
	frames  map[frameKey][]byte // encoded frames to the current state
	line    *line               // of states shown to light watchers
	urgent  chan struct{}       // closed, and replaced, when they should see a newer one at once
}

// sight is a proven state of a run.
type sight struct {
	view   host.View
	timeMs uint64 // time of the block that changed the state last
	proof  host.RunProof
	header uint64 // height of the header with the hash that the proof leads to
}

// frameKey says at which height a frame begins, and whether it is packed.
type frameKey struct {
	since  uint64
	packed bool
}

// framesMax is the number of different frames to the current state that are kept. Watchers that
// keep up share one.
const framesMax = 8

func newHub() *hub {
	return &hub{
		feeds: map[string]*feed{}, shown: make(chan struct{}), created: make(chan struct{}),
		waiting: map[wire.Hash][]chan<- outcome{},
	}
}

// update records the state after a block. before is the hash of the state before it, which its
// header has; root is the hash of the state after it.
func (h *hub) update(host *host.Host, before, root wire.Hash, outcomes []outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.height, h.timeMs, h.stall = host.Height(), host.TimeMs(), false
	h.prove(before, h.height)
	h.stage = stage{root: root, timeMs: h.timeMs, proofs: host.ProveRuns(), outcomes: append(h.stage.outcomes, outcomes...)}
	for _, name := range host.Runs() {
		view, _ := host.View(name)
		h.stage.views = append(h.stage.views, view)
	}
	h.prove(before, h.height)
}

// confirm proves states with a header that was there before the hub.
func (h *hub) confirm(root wire.Hash, header uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.prove(root, header)
}

// prove shows the staged state if its hash is root, which is in the header.
func (h *hub) prove(root wire.Hash, header uint64) {
	if h.stage.root != root || root == (wire.Hash{}) || header < h.header || header == 0 {
		return // also before the first stage
	}
	h.header = header
	if h.proven = append(h.proven, provenAt{root: root, header: header}); len(h.proven) > provenMax {
		h.proven = slices.Delete(h.proven, 0, 1)
	}
	for i, view := range h.stage.views {
		f := h.feeds[view.Name]
		if f == nil {
			f = newFeed(view)
			f.timeMs = h.stage.timeMs
			h.feeds[view.Name] = f
			close(h.created)
			h.created = make(chan struct{})
		}
		f.proof, f.header = h.stage.proofs[i], header
		clear(f.frames)
		if f.view.Changed != view.Changed {
			f.advance(view, h.stage.timeMs)
		}
	}
	for name := range h.feeds {
		if !slices.ContainsFunc(h.stage.views, func(v host.View) bool { return v.Name == name }) {
			delete(h.feeds, name) // closed; who watches it has its last state
		}
	}
	h.settle(h.stage.outcomes)
	h.stage.outcomes = nil
	close(h.shown)
	h.shown = make(chan struct{})
}

// headerOf returns the newest header that proves a state. If there is none yet, wait is closed when
// a newer one comes.
func (h *hub) headerOf(root wire.Hash) (header uint64, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.proven) - 1; i >= 0; i-- {
		if h.proven[i].root == root {
			return h.proven[i].header, nil
		}
	}
	return 0, h.shown
}

// newest returns the header that proved a state last. If there is none yet, wait is closed when
// there is.
func (h *hub) newest() (header uint64, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.header == 0 {
		return 0, h.shown
	}
	return h.header, nil
}

// next returns a channel that is closed when another state is shown.
func (h *hub) next() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// stalled records whether the chain fails to make a block that is due.
func (h *hub) stalled(yes bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stall = yes
}

// moves reports whether the chain makes the blocks that are due.
func (h *hub) moves() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.stall
}

func newFeed(v host.View) *feed {
	pages := (len(v.State.Bytes()) + coordinator.PageBytes - 1) / coordinator.PageBytes
	f := &feed{
		sight: sight{view: v}, changed: make([]uint64, pages), next: make(chan struct{}), frames: map[frameKey][]byte{},
		line: &line{}, urgent: make(chan struct{}),
	}
	for i := range f.changed {
		f.changed[i] = v.Changed
	}
	return f
}

func (f *feed) advance(v host.View, timeMs uint64) {
	before, after := f.view.State.Bytes(), v.State.Bytes()
	for i := range f.changed {
		from, to := page(i, len(after))
		if !bytes.Equal(before[from:to], after[from:to]) {
			f.changed[i] = v.Changed
		}
	}
	urgent := change.Urgent(f.view.State, v.State)
	f.view, f.timeMs = v, timeMs
	close(f.next)
	f.next = make(chan struct{})
	if urgent {
		close(f.urgent)
		f.urgent = make(chan struct{})
	}
}

// page returns the range of bytes of page i of a state of size bytes; the last page may be shorter.
func page(i, size int) (from, to int) {
	from = i * coordinator.PageBytes
	return from, min(from+coordinator.PageBytes, size)
}

// after returns the frame that takes a watcher from its state at height since (0 for none) to the
// current one, with the current height and the header that proves it. If there is nothing newer the
// frame is nil, and wait is closed once there is. If there is no such run, wait is closed when a
// run is created.
func (h *hub) after(run string, since uint64, packed bool) (n news, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		return news{}, h.created
	}
	if since >= f.view.Changed {
		return news{to: mark{height: since}}, f.next
	}
	frame, ok := f.frames[frameKey{since, packed}]
	if !ok {
		if frame = f.encode(since); packed {
			frame = pack(frame)
		}
		if len(f.frames) < framesMax {
			f.frames[frameKey{since, packed}] = frame
		}
	}
	return news{frame: frame, to: mark{height: f.view.Changed}, needs: f.header, proves: f.header}, f.next
}

// news is a frame for a watcher, and the state that it leads to.
type news struct {
	frame []byte // nil: there is nothing newer
	to    mark
	// needs is the height of the header that the frame relies on. A client whose newest one is older
	// must be shown the way there first. proves is the newest that the client knows after the frame.
	needs, proves uint64
}

// mark names the state that a watcher has: its height and, for a light one, a hash of what proved
// it, since two replicas may have proven one state by different headers.
type mark struct{ height, sum uint64 }

// look returns the current state of a run, and the line of states for light watchers. wait is
// closed when there is a newer state that they should see at once. If there is no such run, the
// line is nil, and wait is closed when a run is created.
func (h *hub) look(run string) (s sight, l *line, wait <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		return sight{}, nil, h.created
	}
	return f.sight, f.line, f.urgent
}

// view returns the current state of a run, and the height and time of the last block.
func (h *hub) view(run string) (v host.View, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		return host.View{}, false
	}
	return f.view, true
}

// now returns the height and the time of the last block.
func (h *hub) now() (height, timeMs uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.height, h.timeMs
}

// await returns a channel that receives the outcome of the transaction once it is in a block,
// unless cancel is called first.
func (h *hub) await(id wire.Hash) (result <-chan outcome, cancel func()) {
	ch := make(chan outcome, 1) // settle must not wait
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[id] = append(h.waiting[id], ch)
	return ch, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		var others []chan<- outcome
		for _, c := range h.waiting[id] {
			if c != ch {
				others = append(others, c)
			}
		}
		if len(others) == 0 {
			delete(h.waiting, id)
			return
		}
		h.waiting[id] = others
	}
}

// settle sends the outcomes of transactions to those that wait for them.
func (h *hub) settle(outcomes []outcome) {
	for _, o := range outcomes {
		for _, ch := range h.waiting[o.id] {
			ch <- o
		}
		delete(h.waiting, o.id)
	}
}
