// Package cometlog is a log for CometBFT.
package cometlog

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	cmtlog "github.com/cometbft/cometbft/libs/log"
)

// Logger routes CometBFT's log to slog, from warnings on, and notices when consensus has failed.
type Logger struct {
	Log    *slog.Logger
	Failed func(error)
	Ended  <-chan struct{} // closed when the engine is stopping, which causes complaints
}

var _ cmtlog.Logger = Logger{}

// consensusFailed begins the message with which CometBFT's consensus gives up after a panic, for
// example because a block or a vote could not be written to a full disk. The node then stays alive
// without making blocks, and only this message reports it: consensus/state.go, receiveRoutine, in
// v0.40.0.
const consensusFailed = "CONSENSUS FAILURE"

// Debug implements cmtlog.Logger.
func (l Logger) Debug(string, ...any) {}

// Info implements cmtlog.Logger.
func (l Logger) Info(string, ...any) {}

// Warn implements cmtlog.Logger.
func (l Logger) Warn(msg string, keyvals ...any) { l.put(slog.LevelWarn, msg, keyvals) }

// Error implements cmtlog.Logger.
func (l Logger) Error(msg string, keyvals ...any) {
	if strings.HasPrefix(msg, consensusFailed) {
		cause, ok := value(keyvals, "err").(error)
		if !ok {
			cause = fmt.Errorf("%v", value(keyvals, "err"))
		}
		l.Failed(fmt.Errorf("the chain's engine has halted: %w", cause))
		return
	}
	level := slog.LevelError
	if strings.HasPrefix(msg, noLogYet) {
		level = slog.LevelDebug
	}
	l.put(level, msg, keyvals)
}

// noLogYet begins a harmless message from CometBFT about a replica that fetched the state, and so
// has no log of votes for it.
const noLogYet = "error on catchup replay; proceeding"

func (l Logger) put(level slog.Level, msg string, keyvals []any) {
	select {
	case <-l.Ended:
		level = slog.LevelDebug
	default:
	}
	l.Log.Log(context.Background(), level, msg, text(keyvals)...)
}

// With implements cmtlog.Logger.
func (l Logger) With(keyvals ...any) cmtlog.Logger {
	l.Log = l.Log.With(text(keyvals)...)
	return l
}

// text renders values at once: CometBFT passes things that change while a handler might look at
// them.
func text(keyvals []any) []any {
	out := make([]any, len(keyvals))
	for i, v := range keyvals {
		out[i] = fmt.Sprint(v)
	}
	return out
}

func value(keyvals []any, name string) any {
	for i := 0; i+1 < len(keyvals); i += 2 {
		if keyvals[i] == name {
			return keyvals[i+1]
		}
	}
	return "for no stated reason"
}
