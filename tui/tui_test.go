package tui

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/lipgloss/v2"
	"go.uber.org/goleak"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/event"
	"github.com/entrain-network/entrain/key"
	"github.com/entrain-network/entrain/runlog"
	_ "github.com/entrain-network/entrain/tests/heap"
	"github.com/entrain-network/entrain/view"
	"github.com/entrain-network/entrain/wire"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt with what is drawn now; look at the diff")

func TestMain(m *testing.M) {
	time.Local = time.UTC // frames show the time of day
	goleak.VerifyTestMain(m)
}

// demo is the log of a demo's client with 12 steps, written by a real one.
const demo = "../runlog/testdata/demo.runlog"

// played is a window that was shown the demo's first records, and all of them if n is 0; the time
// is that of the last one.
func played(t *testing.T, n int) *Window {
	t.Helper()
	var now time.Time
	w := New(Options{Clock: func() time.Time { return now }})
	log, err := runlog.Open(demo)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i := 0; n == 0 || i < n; i++ {
		r, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		now = r.Time
		if err := w.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// picture is a frame without styles; it must have the size.
func picture(t *testing.T, f *frame) string {
	t.Helper()
	lines := f.lines()
	if len(lines) != f.height {
		t.Errorf("%d lines in a window of %d", len(lines), f.height)
	}
	for i, l := range lines {
		if got := lipgloss.Width(l); got > f.width {
			t.Errorf("line %d has %d columns of %d: %q", i, got, f.width, l)
		}
		lines[i] = strings.TrimRight(escapes.ReplaceAllString(l, ""), " ")
	}
	return strings.Join(lines, "\n") + "\n"
}

// Of what the chain does not know, a window on it alone says "-" and not 0.
func TestTheChainAloneKnowsNoTraining(t *testing.T) {
	run := played(t, 90).Snapshot()
	run.Own, run.Loss, run.HeldOut = nil, nil, nil
	for i := range run.Rounds {
		run.Rounds[i].Committed, run.Rounds[i].Bytes = 0, 0
	}
	unknown := regexp.MustCompile(`(settled +[0-9.]+ s|active .* [0-9]+ +[0-9.]+) +- `) // trained of a round, tokens/s of a member
	for _, tab := range []int{tabMembers, tabRounds} {
		if text := picture(t, &frame{run: run, width: 200, height: 60, tab: tab}); strings.Contains(text, " 0 B") || !unknown.MatchString(text) {
			t.Errorf("tab %d:\n%s", tab, text)
		}
	}
	run.Network, run.TokensPerSecond = view.Network{}, 0
	for tab, want := range map[int]string{tabNetwork: "no transfers are seen from here", tabOverview: "network  -"} {
		if text := picture(t, &frame{run: run, width: 80, height: 24, tab: tab}); !strings.Contains(text, want) {
			t.Errorf("tab %d has no %q:\n%s", tab, want, text)
		}
	}
}

// All tabs at two sizes are as they were when somebody looked at them.
func TestFramesAreAsTheyWere(t *testing.T) {
	run := played(t, 90).Snapshot()
	for _, size := range [][2]int{{80, 24}, {200, 60}} {
		var all strings.Builder
		for tab := range tabs + 1 {
			f := &frame{run: run, width: size[0], height: size[1], tab: tab % tabs, quit: "quit", replay: true, note: "replay x4"}
			if tab == tabs {
				f.key("?")
			}
			all.WriteString(picture(t, f))
		}
		path := filepath.Join("testdata", fmt.Sprintf("%dx%d.txt", size[0], size[1]))
		if *update {
			if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if all.String() != string(want) {
			t.Errorf("%s: got\n%s", path, all.String())
		}
	}
}

// Whatever the size and the run, a frame fits.
func TestFramesFitEverySize(t *testing.T) {
	many := played(t, 0)
	head := runlog.Standing{Height: math.MaxUint32, TimeMs: 1, Head: runlog.Head{Name: strings.Repeat("界", 40), ID: "x", Phase: "RoundTrain", Steps: math.MaxUint32, Step: math.MaxUint32, Points: math.MaxUint64}}
	for i := range uint32(3000) {
		head.Members = append(head.Members, runlog.Member{Index: coordinator.Member(i), MemberState: coordinator.MemberState{Status: coordinator.StatusActive, Points: math.MaxUint64}})
	}
	_ = many.Record(runlog.Record{Standing: &head})
	_ = many.Record(runlog.Record{Who: "eve", Event: event.Note{Text: "\x1b[2Jescape\r\n" + strings.Repeat("長", 300)}})
	_ = many.Record(runlog.Record{Event: event.Trained{Step: 1, Loss: float32(math.NaN()), GradNorm: math.Inf(1)}})
	head.Trust = anxious()
	_ = many.Record(runlog.Record{Standing: &head})
	for _, w := range []*Window{New(Options{}), played(t, 3), many} {
		run := w.Snapshot()
		for width := widthMin; width < 240; width += 11 {
			for _, height := range []int{heightMin, 9, 15, 24, 60} {
				for tab := range tabs {
					f := &frame{run: run, width: width, height: height, tab: tab}
					for _, key := range []string{"", "end", "pgup", "up"} {
						f.key(key)
						if text := picture(t, f); strings.ContainsAny(text, "\x1b\r") {
							t.Fatalf("tab %d at %dx%d: a stranger's control characters are shown", tab, width, height)
						}
					}
				}
				if t.Failed() {
					t.FailNow()
				}
			}
		}
	}
	if f := (&frame{width: 10, height: 2}); len(f.lines()) != 1 {
		t.Error("a window that is too small says more than that")
	}
}

func TestKeysMoveThroughTheTabs(t *testing.T) {
	f := &frame{run: played(t, 0).Snapshot(), width: 80, height: 10}
	for _, c := range []struct {
		key    string
		tab    int
		scroll int
	}{
		{"2", tabMembers, 0}, {"right", tabRounds, 0}, {"down", tabRounds, 1}, {"j", tabRounds, 2}, {"pgdown", tabRounds, 6}, {"up", tabRounds, 5},
		{"end", tabRounds, 8}, {"up", tabRounds, 7}, {"home", tabRounds, 0}, {"up", tabRounds, 0}, {"left", tabMembers, 0}, {"shift+tab", tabOverview, 0}, {"left", tabLogs, 0}, {"tab", tabOverview, 0},
		{"x", tabOverview, 0},
	} {
		f.key(c.key)
		f.lines()
		if f.tab != c.tab || f.scroll != c.scroll {
			t.Errorf("after %q: tab %d scrolled by %d, want %d and %d", c.key, f.tab, f.scroll, c.tab, c.scroll)
		}
	}
	f.key("?")
	if text := picture(t, f); !strings.Contains(text, "Marks of a share") {
		t.Errorf("? shows\n%s", text)
	}
	f.key("end")
	if text := picture(t, f); !strings.Contains(text, "each that was verified") {
		t.Errorf("the end of the help is\n%s", text)
	}
	f.key("esc")
	if f.help {
		t.Error("esc leaves the help open")
	}
}

// anxious returns a Trust with much of everything, and numbers that have no names.
func anxious() *runlog.Trust {
	t := &runlog.Trust{Whole: true, TrustHead: runlog.TrustHead{Percent: 100, Stake: math.MaxUint64, Treasury: math.MaxUint64, Drawn: math.MaxUint32, Disputed: 40, Convicted: 64}}
	for i := range coordinator.Member(uint32(700)) {
		t.Checks = append(t.Checks, dispute.Check{Round: math.MaxUint32, Member: i, Verifier: math.MaxUint32, DeadlineMs: uint64(i) << 40, Disputed: i%7 == 0})
	}
	for i := range coordinator.Member(uint32(16)) {
		t.Disputes = append(t.Disputes, dispute.Dispute{ID: uint32(i + 1), Check: dispute.Check{Round: math.MaxUint32}, Accused: i, Accuser: dispute.NoMember, Stage: 250,
			Level: dispute.LevelOps, Op: math.MaxUint32, TieBreakers: []dispute.TieVote{{Member: 1, Vote: 250}}})
	}
	for i := range coordinator.Round(uint32(64)) {
		t.Convictions = append(t.Convictions, dispute.Conviction{Number: uint32(i + 1), Round: i, Member: coordinator.Member(i), Offence: 250, By: coordinator.Member(i), Slashed: math.MaxUint64, Results: uint32(i)})
	}
	return t
}

// The trust tab at two sizes is as it was when somebody looked at it.
func TestTrustIsShown(t *testing.T) {
	w := played(t, 90)
	now := w.Snapshot()
	var ab, cd wire.Hash
	for i := range ab {
		ab[i], cd[i] = 0xab, 0xcd
	}
	_ = w.Record(runlog.Record{Time: time.UnixMilli(int64(now.NowMs)), Standing: &runlog.Standing{Height: now.Height + 1, TimeMs: now.StateMs, Head: runlog.Head{Name: now.Name, ID: now.ID, Phase: "RoundTrain", Round: now.Round},
		Trust: &runlog.Trust{Whole: true, TrustHead: runlog.TrustHead{Percent: 5, Stake: 1000, Rate: 3, Treasury: 250_000, Escrow: 254_000, Drawn: 41, Passed: 38, Disputed: 2, Convicted: 1},
			Checks:      []dispute.Check{{Round: 5, Member: 2, Verifier: 0, Sequences: 8, DeadlineMs: now.NowMs + 12_000}, {Round: 4, Member: 1, Verifier: 3, Sequences: 8, Disputed: true}},
			Disputes:    []dispute.Dispute{{ID: 2, Check: dispute.Check{Round: 4}, Accused: 1, Accuser: 3, Stage: dispute.StageDescending, Level: dispute.LevelTiles, Op: 1312, Tile: 4, Depth: 1, DeadlineMs: now.NowMs + 30_000, Traces: [2]wire.Hash{ab, cd}}},
			Convictions: []dispute.Conviction{{Number: 1, Round: 2, Member: 3, Key: key.Public(cd), Offence: dispute.WrongResult, By: 0, ByKey: key.Public(ab), Slashed: 1000, Evidence: ab, FirstRound: 1, LastRound: 3, Results: 3}}}}})
	var all strings.Builder
	for _, size := range [][2]int{{80, 24}, {200, 20}} {
		all.WriteString(picture(t, &frame{run: w.Snapshot(), width: size[0], height: size[1], tab: tabTrust, quit: "quit"}))
	}
	path := filepath.Join("testdata", "trust.txt")
	if *update {
		if err := os.WriteFile(path, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want, err := os.ReadFile(path); err != nil || all.String() != string(want) {
		t.Errorf("%v: got\n%s", err, all.String())
	}
}

// In a terminal that is none, the program still draws, answers keys, and ends as asked.
func TestWindowRunsAndEnds(t *testing.T) {
	for _, c := range []struct {
		name  string
		keys  string
		env   []string
		color bool
	}{{"colours", "2q", []string{"TERM=xterm-256color", "COLORTERM=truecolor"}, true}, {"none", "2\x03", []string{"TERM=xterm-256color", "NO_COLOR=1"}, false}} {
		var out bytes.Buffer
		in, keys := io.Pipe()
		w := played(t, 0)
		steered := 0
		w.opts.In, w.opts.Out, w.opts.Env = in, &out, c.env
		w.opts.replay = func(steer) { steered++ }
		go func() {
			io.WriteString(keys, " +-"+c.keys)
			keys.Close()
		}()
		if err := w.Run(t.Context()); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if steered != 3 {
			t.Errorf("%s: steered %d times", c.name, steered)
		}
		if got := regexp.MustCompile("\x1b\\[[0-9;]*[34][0-9]").MatchString(out.String()); got && !c.color {
			t.Errorf("%s: colours in %q", c.name, out.String())
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := played(t, 0)
	w.opts.In, w.opts.Out = strings.NewReader(""), io.Discard
	if err := w.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context: %v", err)
	}
}

func TestPlainPrintsEveryLineOnce(t *testing.T) {
	var out bytes.Buffer
	p := Plain{out: &out}
	w := played(t, 90)
	for range 2 {
		if err := p.Show(w.Snapshot()); err != nil {
			t.Fatal(err)
		}
	}
	first := out.String()
	if n := strings.Count(first, "step 5/12: loss"); n != 1 {
		t.Errorf("a line is printed %d times:\n%s", n, first)
	}
	if strings.Contains(first, "\x1b") || !strings.Contains(first, "RoundTrain, epoch 1, round") {
		t.Errorf("printed\n%s", first)
	}
	for range 2 * view.LinesKept { // more than is kept
		_ = w.Record(runlog.Record{Who: "a", Event: event.Note{Text: "x" + fmt.Sprint(w.Snapshot().Logged)}})
	}
	out.Reset()
	if err := p.Show(w.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != view.LinesKept {
		t.Errorf("%d lines, want the %d that are kept", n, view.LinesKept)
	}
}

func TestPlotSpansItsRange(t *testing.T) {
	c := view.Curve{{From: 1, To: 1, Mean: 4}, {From: 2, To: 2, Mean: 2}, {From: 3, To: 3, Mean: 0}}
	got := plot([]view.Curve{c}, 29, 3)
	want := []string{
		"  4.000 |⠉⠉⠑⠒⠒⠤⠤⢄⣀⣀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀",
		"  0.000 |⠀⠀⠀⠀⠀⠀⠀⠀⠀⠀⠉⠉⠉⠑⠒⠒⠢⠤⠤⢄",
		"         1             step 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if got := plot(nil, 29, 3); len(got) != 1 || !strings.Contains(got[0], "nothing measured") {
		t.Errorf("without values: %q", got)
	}
	if got := plot([]view.Curve{c}, 9, 3); got != nil {
		t.Errorf("without room: %q", got)
	}
}
