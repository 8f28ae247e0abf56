package comet

import (
	"bytes"
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/ledger"
	"github.com/entrain-network/entrain/wire"
)

// hub is where blocks meet those who wait for something in them: watchers for a change of a run's state, submitters for
// the outcome of a transaction. It holds what it needs of the committed state, so that no reader delays consensus.
type hub struct {
	mu      sync.Mutex // guards what follows
	height  uint64
	timeMs  uint64
	feeds   map[string]*feed
	created chan struct{} // closed, and replaced, when a run comes into being
	waiting map[wire.Hash][]chan<- outcome
}

// feed is the state of one run with the history needed to tell what has changed since some height.
type feed struct {
	view   ledger.View
	timeMs uint64 // of the block that changed the state last
	// changed holds, for each page, the height of the block that changed it last; for pages that have not changed since
	// the process began, that of the state it began with.
	changed []uint64
	next    chan struct{}     // closed, and replaced, when the state changes
	frames  map[uint64][]byte // encoded frames from some height to the present state
}

// framesMax bounds how many different frames to the present state are kept. Watchers that keep up share one.
const framesMax = 8

func newHub() *hub {
	return &hub{feeds: map[string]*feed{}, created: make(chan struct{}), waiting: map[wire.Hash][]chan<- outcome{}}
}

// update takes over the state after a block.
func (h *hub) update(host *ledger.Host) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.height, h.timeMs = host.Height(), host.TimeMs()
	for _, name := range host.Runs() {
		view, _ := host.View(name)
		f := h.feeds[name]
		if f == nil {
			f = newFeed(view)
			f.timeMs = h.timeMs
			h.feeds[name] = f
			close(h.created)
			h.created = make(chan struct{})
		}
		if f.view.Changed != view.Changed {
			f.advance(view, h.timeMs)
		}
	}
}

func newFeed(v ledger.View) *feed {
	pages := (len(v.State.Bytes()) + coordinator.PageBytes - 1) / coordinator.PageBytes
	f := &feed{view: v, changed: make([]uint64, pages), next: make(chan struct{}), frames: map[uint64][]byte{}}
	for i := range f.changed {
		f.changed[i] = v.Changed
	}
	return f
}

func (f *feed) advance(v ledger.View, timeMs uint64) {
	before, after := f.view.State.Bytes(), v.State.Bytes()
	for i := range f.changed {
		from, to := page(i, len(after))
		if !bytes.Equal(before[from:to], after[from:to]) {
			f.changed[i] = v.Changed
		}
	}
	f.view, f.timeMs = v, timeMs
	clear(f.frames)
	close(f.next)
	f.next = make(chan struct{})
}

// page returns the range of bytes of page i of a state of size bytes; the last page may be shorter.
func page(i, size int) (from, to int) {
	from = i * coordinator.PageBytes
	return from, min(from+coordinator.PageBytes, size)
}

// after returns the frame that takes a watcher from its state, that of height since (0 for none), to the present one,
// with the present one's height. The frame is nil when there is nothing newer; then wait is closed once there is. Ok is
// false, and wait closed once there are more runs, when there is no such run.
func (h *hub) after(run string, since uint64) (frame []byte, height uint64, wait <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		return nil, 0, h.created, false
	}
	if since >= f.view.Changed {
		return nil, since, f.next, true
	}
	frame, ok = f.frames[since]
	if !ok {
		frame = f.encode(since)
		if len(f.frames) < framesMax {
			f.frames[since] = frame
		}
	}
	return frame, f.view.Changed, f.next, true
}

// view returns the present state of a run, and the height and time of the last block.
func (h *hub) view(run string) (v ledger.View, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[run]
	if f == nil {
		return ledger.View{}, false
	}
	return f.view, true
}

// now returns the height and the time of the last block.
func (h *hub) now() (height, timeMs uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.height, h.timeMs
}

// await promises to send the outcome of the transaction, once it is in a block, unless cancel is called first.
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

// settle tells those who wait what became of the transactions of a block.
func (h *hub) settle(outcomes []outcome) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, o := range outcomes {
		for _, ch := range h.waiting[o.id] {
			ch <- o
		}
		delete(h.waiting, o.id)
	}
}
