package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// demoLog is the log of a demo's client with 12 steps.
const demoLog = "../../runlog/testdata/demo.runlog"

// What goes to a pipe is lines, without a terminal's escapes, each once.
func TestReplayWithoutTerminalPrintsLines(t *testing.T) {
	s := newShell(t)
	for _, speed := range []string{"0", "1000"} { // the log spans three seconds
		out := s.ok("watch", "--replay", demoLog, "--speed", speed, "--plain")
		for _, want := range []string{"step 12/12: loss", "held-out loss after step 12", "checkpoint of step 12 written", "Finished, epoch 1, round 13, step 12/12, members 3"} {
			if strings.Count(out, want) != 1 {
				t.Errorf("at speed %s the replay does not say %q once:\n%s", speed, want, out)
			}
		}
		if strings.Contains(out, "\x1b") {
			t.Errorf("escapes in %q", out)
		}
	}
}

func TestWatchErrorsSayWhatToDo(t *testing.T) {
	s := newShell(t)
	empty := t.TempDir()
	damaged := writeFile(t, filepath.Join(t.TempDir(), "x"), "this is not a log")
	for _, c := range []struct {
		args string
		want []string
	}{
		{"watch --replay nowhere", []string{"nowhere", "no such file"}},
		{"watch --replay " + empty, []string{"no records yet"}},
		{"watch --replay " + damaged, []string{damaged, "does not begin as a log"}},
		{"watch --replay " + demoLog + " --speed -1", []string{"--speed -1", "0 to"}},
		{"watch r --replay " + demoLog, []string{"leave out RUN"}},
		{"watch --speed 3", []string{"--speed is for --replay"}},
		{"watch --chain http://127.0.0.1:1", []string{"refused", "entrain chain start"}},
		{"join r --log loud", []string{"--log", "debug, info, warn or error"}},
		{"join r --log info,xml", []string{"--log", `",json" for lines of JSON`}},
	} {
		s.fails(strings.Fields(c.args), c.want...)
	}
}

// tmux is a terminal that a test looks at.
type tmux struct {
	t   *testing.T
	env []string
}

func needTmux(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not here: the window is not tried in a terminal")
	}
}

// newTmux starts a command of this program in a terminal of a size.
func newTmux(t *testing.T, width, height int, env []string, args ...string) *tmux {
	t.Helper()
	needTmux(t)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "tmux") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	m := &tmux{t: t, env: append(os.Environ(), "TMUX_TMPDIR="+dir, "TMUX=", "LC_ALL=C.UTF-8")}
	t.Cleanup(func() {
		_ = m.command("kill-server").Run() // it may have ended by itself
		os.RemoveAll(dir)
	})
	// The shell waits to be looked at when the program has ended.
	shell := append(append([]string{"env", asProgram + "=1"}, env...), "sh", "-c", `"$0" "$@"; echo "ended with $?"; exec cat`, program)
	start := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(width), "-y", fmt.Sprint(height)}, append(shell, args...)...)
	if out, err := m.command(start...).CombinedOutput(); err != nil {
		t.Fatalf("tmux: %v: %s", err, out)
	}
	return m
}

func (m *tmux) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u"}, args...)...)
	cmd.Env = m.env
	return cmd
}

// tell sends a tmux command that must succeed.
func (m *tmux) tell(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// until looks again and again until there is what is wanted.
func (m *tmux) until(wanted string, look func() (seen string, ok bool)) {
	m.t.Helper()
	var seen string
	for range 1000 { // a newcomer waits for the next epoch, at most
		var ok bool
		if seen, ok = look(); ok {
			return
		}
		time.Sleep(50 * time.Millisecond) // then it is looked at again
	}
	m.t.Fatalf("waited in vain for %s; there is\n%s", wanted, seen)
}

// shows waits until the terminal shows all of want, and returns its rows.
func (m *tmux) shows(want ...string) []string {
	m.t.Helper()
	var screen string
	m.until(fmt.Sprintf("%q", want), func() (string, bool) {
		screen = m.tell("capture-pane", "-p")
		missing := slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(screen, w) })
		return screen, !missing
	})
	return strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
}

// fills waits until the terminal shows all of want in a number of rows, the last of which begins with
// last. A screen that is captured while it is drawn lacks its last rows.
func (m *tmux) fills(rows int, last string, want ...string) {
	m.t.Helper()
	m.until(fmt.Sprintf("%q in %d rows, the last %q", want, rows, last), func() (string, bool) {
		screen := m.tell("capture-pane", "-p")
		list := strings.Split(strings.TrimSuffix(screen, "\n"), "\n")
		missing := slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(screen, w) })
		return screen, !missing && len(list) == rows && strings.HasPrefix(list[rows-1], last)
	})
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*\\b(3[0-7]|38|9[0-7])[;m]")

// The window in a real terminal: all tabs, resized while it runs, and the shell's screen back at its end.
func TestWindowInATerminal(t *testing.T) {
	t.Parallel()
	m := newTmux(t, 80, 24, nil, "watch", "--replay", demoLog, "--speed", "50")
	m.shows("[1 Overview]", "step     12 of 12", "end of the log", "loss", "members  3 of at most 64")
	if !colour.MatchString(m.tell("capture-pane", "-p", "-e")) {
		t.Error("there are no colours")
	}
	for key, want := range map[string]string{"2": "this round", "3": "witnessed", "4": "transfers", "5": "one a sequence", "6": "nothing is checked in this run", "7": "step 12/12: loss", "?": "Marks of a share"} {
		m.tell("send-keys", key)
		m.shows(want)
	}
	m.tell("send-keys", "1")
	m.tell("resize-window", "-x", "200", "-y", "60")
	m.fills(60, "end of the log", "tokens a second of the network")
	m.tell("resize-window", "-x", "30", "-y", "10")
	m.shows("too small")
	m.tell("resize-window", "-x", "80", "-y", "24")
	m.shows("[1 Overview]", "q quit")
	m.tell("send-keys", "q")
	if rows := m.shows("ended with 0"); strings.Contains(strings.Join(rows, ""), "Overview") {
		t.Errorf("the window is still on the screen after its end:\n%s", strings.Join(rows, "\n"))
	}
}

func TestWindowWithoutColour(t *testing.T) {
	m := newTmux(t, 80, 24, []string{"NO_COLOR=1"}, "watch", "--replay", demoLog, "--speed", "50")
	m.shows("[1 Overview]", "end of the log")
	if screen := m.tell("capture-pane", "-p", "-e"); colour.MatchString(screen) {
		t.Errorf("colours in %q", screen)
	}
}
