package demo

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// A child is a process that runs a command of the entrain program. It gets --with-parent and a
// standard input that closes when this process ends, for any reason; on Linux the kernel also kills
// it then. It has a process group of its own, so that Ctrl-C on the terminal reaches this process
// alone, which stops its children in the right order.
type child struct {
	name string
	args []string
	// program is a different program than entrain, which takes no --with-parent.
	program string
	// once means that the child does not start again after it exited by itself.
	once bool
}

// A childReport is what happened to a child: it started, wrote a line, or ended.
type childReport struct {
	name     string
	pid      int    // > 0: it started
	restarts int    // if it started: the number of times before
	line     []byte // not nil: it wrote this
	ended    bool
	err      error // if it ended: why; nil if it meant to
	final    bool  // if it ended: it does not start again
}

// children keeps child processes running: one that dies starts again. All that happens goes to
// reports, which must be read until wait has returned.
type children struct {
	program string // path of the entrain program
	logs    string // directory of the children's standard error, a file each
	env     []string
	pause   time.Duration // before the first restart; each early death doubles it
	reports chan childReport
	running sync.WaitGroup
}

const (
	// childGrace is the time that a child has to end before it is killed.
	childGrace = 15 * time.Second
	// childLineMax bounds a line of a child's output.
	childLineMax = 1 << 20
	restartAfter = 300 * time.Millisecond
	// restartsMax is the number of early deaths in a row after which a child does not start again.
	restartsMax = 5
	// earlyFor is the age below which a death counts as early: its cause is likely still there.
	earlyFor = 10 * time.Second
)

// keep keeps a child running until ctx ends, it exits with status 0, or it dies early too often.
func (c *children) keep(ctx context.Context, ch child) {
	c.running.Go(func() {
		// The kernel sends its parent-death signal when the thread that started the child ends: this
		// goroutine keeps its thread as long as the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		early := 0
		for restarts := 0; ; restarts++ {
			start := time.Now()
			err := c.once(ctx, ch, restarts)
			if time.Since(start) > earlyFor {
				early = 0
			}
			early++
			final := err == nil || ctx.Err() != nil || early > restartsMax || ch.once && gaveUp(err)
			if final && !ch.once && err != nil && ctx.Err() == nil {
				err = fmt.Errorf("%w, %d times in a row; its log is %s", err, early, c.log(ch))
			}
			c.reports <- childReport{name: ch.name, ended: true, err: err, final: final}
			if final {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(c.pause << (early - 1)):
			}
		}
	})
}

// gaveUp reports whether a child exited by itself, rather than being killed.
func gaveUp(err error) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.Exited()
}

// wait returns when no child runs any more, and then closes reports.
func (c *children) wait() {
	c.running.Wait()
	close(c.reports)
}

func (c *children) log(ch child) string { return filepath.Join(c.logs, ch.name+".log") }

// once runs a child to its end. It returns nil if the child exited with status 0 or because ctx
// ended.
func (c *children) once(ctx context.Context, ch child, restarts int) error {
	if ctx.Err() != nil {
		return nil
	}
	log, err := os.OpenFile(c.log(ch), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("log of a child process: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(c.program, append([]string{"--with-parent"}, ch.args...)...)
	if ch.program != "" {
		cmd = exec.Command(ch.program, ch.args...)
	}
	cmd.Stderr = log
	cmd.Env = c.env
	isolate(cmd)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start a child process: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start a child process: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start a child process: %w", err)
	}
	c.reports <- childReport{name: ch.name, pid: cmd.Process.Pid, restarts: restarts}

	exited := make(chan struct{})
	var stopper sync.WaitGroup
	stopper.Go(func() {
		select {
		case <-exited:
			return
		case <-ctx.Done():
		}
		stdin.Close() // asks for a clean end
		select {
		case <-exited:
		case <-time.After(childGrace):
			killGroup(cmd.Process)
		}
	})
	c.forward(ch, stdout)
	err = cmd.Wait()
	close(exited)
	stopper.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// forward reports the lines of a child until its output ends. It drops lines that are too long to
// be events.
func (c *children) forward(ch child, out io.Reader) {
	r := bufio.NewReaderSize(out, childLineMax)
	for {
		line, tooLong, err := r.ReadLine()
		for tooLong && err == nil {
			line = nil
			_, tooLong, err = r.ReadLine()
		}
		if err != nil {
			return
		}
		if len(line) > 0 {
			c.reports <- childReport{name: ch.name, line: append([]byte(nil), line...)}
		}
	}
}
