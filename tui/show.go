package tui

import (
	"context"
	"errors"
	"io"
	"time"
)

// ErrClosed is the cause with which the context of a feed ends when the user closes the window.
var ErrClosed = errors.New("its window was closed")

// plainEvery is the interval at which Show prints lines.
const plainEvery = 2 * time.Second

// Show shows the window until feed, which gives it records, returns an error, ctx ends, or the user
// closes the window. Then it ends the context of feed, waits for it, and returns its error. If stay
// is set, the window stays after feed has returned without an error. Lines, if not nil, gets lines
// in place of a window.
func (w *Window) Show(ctx context.Context, lines io.Writer, stay bool, feed func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	fed := make(chan error, 1)
	if lines != nil {
		go func() { fed <- feed(ctx) }()
		return w.lines(lines, fed, cancel)
	}
	shown, hide := context.WithCancel(ctx)
	defer hide()
	go func() {
		err := feed(ctx)
		fed <- err
		if err != nil || !stay {
			hide()
		}
	}()
	err := w.Run(shown)
	if shown.Err() != nil {
		err = nil
	}
	cancel(ErrClosed)
	return errors.Join(<-fed, err)
}

// lines shows the window as lines until it is fed or out fails.
func (w *Window) lines(out io.Writer, fed chan error, cancel context.CancelCauseFunc) error {
	plain := Plain{out: out}
	timer := time.NewTicker(plainEvery)
	defer timer.Stop()
	for {
		select {
		case err := <-fed:
			return errors.Join(err, plain.Show(w.Snapshot()))
		case <-timer.C:
			if err := plain.Show(w.Snapshot()); err != nil {
				cancel(err)
				return errors.Join(err, <-fed)
			}
		}
	}
}
