// Entrain trains one language model on many strangers' machines: the program of every role, with a
// command for each.
//
//	entrain demo                       a whole network on this machine, in a few minutes
//	entrain key, chain, data, run      founding a run
//	entrain join, status               taking part, and watching
//	entrain model generate             text from a checkpoint
//
// Each command is in the file of its name. Package participant holds what commands share. Results
// go to standard output, messages for people to standard error; with --json results are lines of
// JSON. Only main reads the environment or ends the process.
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/entrain-network/entrain/participant"
	"github.com/entrain-network/entrain/tui"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal requests a clean end. From then on signals have their default effect, so a
	// second one ends the process at once.
	context.AfterFunc(ctx, stop)
	err := run(ctx, console{in: os.Stdin, out: os.Stdout, err: tui.Legible(os.Stderr), env: os.Getenv, places: participant.FindPlaces(os.Getenv)}, os.Args[1:])
	interrupted := ctx.Err() != nil
	stop()
	switch {
	case err == nil:
	case interrupted && errors.Is(err, context.Canceled):
		os.Exit(exitInterrupted)
	default:
		fmt.Fprintln(tui.Legible(os.Stderr), "entrain:", advise(err))
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
