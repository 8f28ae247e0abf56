// Package tui is the window on a run in a terminal: what view.Run holds, as tabs that a keyboard
// moves through.
//
// A [Window] takes records of package runlog, folds them, and draws the result four times a second.
// It is a sink of a runlog.Writer. Its source never waits for the terminal. [Window.Show] shows it
// while a function feeds it, as lines ([Plain]) where there is no terminal; a [Replay] feeds it
// with a log.
//
// Every frame is a function of a view.Run, the size, and the user's choices (frame.go and the files
// of the tabs), so tests of frames need no terminal. Colour alone carries no meaning: the window
// reads the same with NO_COLOR.
package tui

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/entrain-network/entrain/runlog"
	"github.com/entrain-network/entrain/view"
)

// Options of a [Window].
type Options struct {
	In   io.Reader
	Out  io.Writer
	Env  []string // TERM, NO_COLOR and their kin, as in os.Environ
	Own  string   // key of the participant that watches, hex; "" if there is none
	Quit string   // what the key q does, in a word or two: "quit", "leave the run"
	// Invite is the command with which others join; "" names the one that prints a ticket.
	Invite string
	// Clock is the time that is shown; nil means time.Now. A replay has its own.
	Clock func() time.Time
	// replay, if not nil, is called with the keys that steer a replay.
	replay func(steer)
}

// Environment returns the variables that say what a terminal can show.
func Environment(getenv func(string) string) (env []string) {
	for _, name := range []string{"TERM", "COLORTERM", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM_PROGRAM", "TMUX", "SSH_TTY", "WT_SESSION", "LANG", "LC_ALL"} {
		if v := getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// steer is a request of a key to a replay.
type steer int

// What can be asked of a replay.
const (
	pause  steer = iota // or continue
	faster              // twice as fast
	slower              // half as fast
)

// frameEvery is the interval between two frames while nothing is typed.
const frameEvery = 250 * time.Millisecond

// Window is a window on one run. Make it with [New].
type Window struct {
	opts Options

	mu   sync.Mutex // guards what follows
	fold *view.Fold
	note string // what the source of the records has to say, such as the speed of a replay
}

// New returns a window that nothing was shown to yet.
func New(opts Options) *Window {
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	if opts.Quit == "" {
		opts.Quit = "quit"
	}
	return &Window{opts: opts, fold: view.New(opts.Own)}
}

// Record takes the next record. It is part of runlog.Sink, and may be called from any goroutine.
func (w *Window) Record(r runlog.Record) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fold.Add(r)
	return nil
}

// NameOps has disputes say what the operation computes that they are about: see view.Fold.
func (w *Window) NameOps(name func(sequences, op uint32) string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fold.NameOps(name)
}

// Name names the member with a key, in hex: see view.Fold.
func (w *Window) Name(key, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fold.Name(key, name)
}

// Called sets what keys are called on the chain: see view.Fold.
func (w *Window) Called(n view.Names) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fold.Called(n)
}

// Flush is part of runlog.Sink.
func (w *Window) Flush() error { return nil }

// Close is part of runlog.Sink.
func (w *Window) Close() error { return nil }

// Note sets a short text that is shown at the bottom, "" for none.
func (w *Window) Note(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note = text
}

// Snapshot returns what the window shows now.
func (w *Window) Snapshot() view.Run {
	run, _ := w.now()
	return run
}

func (w *Window) now() (view.Run, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.fold.Run(w.opts.Clock()), w.note
}

// Run shows the window until the user quits or ctx ends, and leaves the terminal as it was. The
// error is nil when the user quit and that of ctx otherwise.
func (w *Window) Run(ctx context.Context) error {
	p := tea.NewProgram(&model{window: w, frame: frame{quit: w.opts.Quit, replay: w.opts.replay != nil, invite: w.opts.Invite}},
		tea.WithContext(ctx), tea.WithInput(w.opts.In), tea.WithOutput(w.opts.Out), tea.WithEnvironment(w.opts.Env), tea.WithoutSignalHandler(),
		tea.WithFPS(30))
	_, err := p.Run()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// model is the window as bubbletea runs it.
type model struct {
	window *Window
	frame  frame
}

// tick asks for a new frame.
type tick struct{}

func nextTick() tea.Cmd { return tea.Tick(frameEvery, func(time.Time) tea.Msg { return tick{} }) }

func (m *model) Init() tea.Cmd {
	m.frame.run, m.frame.note = m.window.now()
	return nextTick()
}

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tick:
		m.frame.run, m.frame.note = m.window.now()
		return m, nextTick()
	case tea.WindowSizeMsg:
		m.frame.width, m.frame.height = msg.Width, msg.Height
	case tea.KeyPressMsg:
		key := msg.String()
		switch key {
		case "q", "ctrl+c":
			return m, tea.Quit
		case "space", " ":
			m.steer(pause)
		case "+", "=":
			m.steer(faster)
		case "-":
			m.steer(slower)
		default:
			m.frame.key(key)
		}
	}
	return m, nil
}

func (m *model) steer(s steer) {
	if m.window.opts.replay != nil {
		m.window.opts.replay(s)
	}
}

func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.frame.lines(), "\n"))
	v.AltScreen = true
	v.WindowTitle = "entrain " + clean(m.frame.run.Name)
	return v
}
