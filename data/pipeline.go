package data

import (
	"context"
	"sync"

	"github.com/entrain-network/entrain/data/source"
	"github.com/entrain-network/entrain/tokenizer"
	"github.com/entrain-network/entrain/tokenizer/chat"
	"github.com/entrain-network/entrain/wire"
)

// pipeline reads the sources in one goroutine, encodes pieces in several, and writes them in order
// in the caller's goroutine.
type pipeline struct {
	sources []source.File
	before  []uint64 // bytes of the sources before each
	writer  *shardWriter
	encoder tokenizer.Tokenizer
	chat    *chat.Format // of conversations; or nil
	plan    wire.Hash
	resumes bool // whether to save progress
}

// task is a piece in the pipeline.
type task struct {
	source int
	piece  *source.Piece
	done   chan source.Encoded // has room for the result
}

// run writes everything from a position on. It returns when every goroutine it started has ended.
// Reading stops when ctx ends, writing when failed ends, so an interrupted run stops between two
// pieces, where it can resume.
func (l *pipeline) run(ctx, failed context.Context, i int, at source.Position) error {
	stop, cancel := context.WithCancelCause(ctx)
	var started sync.WaitGroup
	defer started.Wait()
	defer cancel(nil)
	defer context.AfterFunc(failed, func() { cancel(context.Cause(failed)) })()

	queue := make(chan *task, 2*l.writer.n) // in the order of the sources
	work := make(chan *task)                // the same tasks, for any free encoder
	var readErr error                       // set before queue is closed
	started.Go(func() {
		defer close(queue)
		defer close(work)
		readErr = source.ReadAll(stop, l.sources, i, at, func(i int, p *source.Piece) error {
			t := &task{i, p, make(chan source.Encoded, 1)}
			for _, to := range []chan *task{queue, work} {
				select {
				case to <- t:
				case <-stop.Done():
					return context.Cause(stop)
				}
			}
			return nil
		})
	})
	for range l.writer.n {
		started.Go(func() {
			for t := range work {
				t.done <- l.sources[t.source].Encode(t.piece, l.encoder, l.chat)
			}
		})
	}
	err := l.write(stop, failed, queue, &i, &at)
	if err == nil {
		err = readErr // the reader has ended: it closed the queue
	}
	return l.leave(ctx, failed, err, i, at)
}

// write writes the pieces in order. i and at stay at the end of the last piece written whole.
func (l *pipeline) write(ctx, failed context.Context, queue <-chan *task, i *int, at *source.Position) error {
	w := l.writer
	for t := range queue {
		var e source.Encoded
		select {
		case e = <-t.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if e.Err != nil {
			return e.Err
		}
		if err := w.write(failed, &w.train, e.Train, l.sources[t.source].Path); err != nil {
			return err
		}
		if err := w.write(failed, &w.heldOut, e.HeldOut, l.sources[t.source].Path); err != nil {
			return err
		}
		*i, *at = t.source, t.piece.End
		w.read(l.before[t.source] + t.piece.End.Read)
		if l.resumes && len(w.train.shards)+len(w.heldOut.shards) >= w.saved+resumeShards {
			if err := w.save(failed, l.plan, *i, *at); err != nil {
				return err
			}
		}
	}
	return nil
}

// leave saves the progress of a run that ctx has ended.
func (l *pipeline) leave(ctx, failed context.Context, err error, i int, at source.Position) error {
	if err == nil || ctx.Err() == nil || failed.Err() != nil || !l.resumes {
		return err
	}
	if saveErr := l.writer.save(failed, l.plan, i, at); saveErr != nil {
		return saveErr
	}
	return context.Cause(ctx)
}
