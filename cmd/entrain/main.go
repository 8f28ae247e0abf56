// Entrain trains one language model on many strangers' machines: the program of every role, a command for each.
//
//	entrain demo                       a whole network on this machine, in a few minutes
//	entrain key, chain, data, run      what it takes to found a run
//	entrain join, status               taking part, and looking on
//	entrain generate                   text from a checkpoint
//
// Each command is in the file of its name. What join and demo share, the making of a participant out of its parts, is in
// participant.go. Machine output goes to standard output, words for people to standard error; --json makes the former lines of
// JSON. Nothing but main reads the environment or ends the process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks for a clean end; from then on signals have their default effect, so that a second one ends at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, console{in: os.Stdin, out: os.Stdout, err: os.Stderr, env: os.Getenv, places: findPlaces()}, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted && errors.Is(err, context.Canceled):
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(os.Stderr, "entrain:", advise(err))
		os.Exit(statusOf(err))
	}
}

// statusOf is the exit status for an error: 1, unless it says another.
func statusOf(err error) int {
	if e, ok := errors.AsType[exitError](err); ok {
		return e.status
	}
	return 1
}

// exitInterrupted is a shell's exit status of a command ended by SIGINT.
const exitInterrupted = 130

// advise adds what to do about an error whose cause the system names without a remedy.
func advise(err error) error {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%w; free some space, or choose another directory", err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; another program listens there: stop it, or choose another address", err)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%w; check who owns it, or choose another place", err)
	}
	return err
}

// places are the directories in which this user's things lie unless a flag says otherwise; empty where the system names none.
type places struct {
	config string // keys
	data   string // state of chains and participants
	cache  string // checkpoints that were fetched to look at
}

func findPlaces() places {
	var p places
	if dir, err := os.UserConfigDir(); err == nil {
		p.config = filepath.Join(dir, "entrain")
		p.data = p.config
	}
	if dir, err := os.UserCacheDir(); err == nil {
		p.cache = filepath.Join(dir, "entrain")
	}
	switch runtime.GOOS {
	case "darwin", "ios":
	case "windows":
		if dir, err := os.UserCacheDir(); err == nil { // %LocalAppData%: not copied between machines
			p.data = filepath.Join(dir, "entrain")
		}
	default:
		if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
			p.data = filepath.Join(dir, "entrain")
		} else if home, err := os.UserHomeDir(); err == nil {
			p.data = filepath.Join(home, ".local", "share", "entrain")
		}
	}
	return p
}
