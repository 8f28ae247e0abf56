package cometlog

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
)

func TestTheLogPassesWarningsOn(t *testing.T) {
	var out strings.Builder
	var failed error
	ended := make(chan struct{})
	l := Logger{Log: slog.New(slog.NewTextHandler(&out, nil)), Failed: func(err error) { failed = err }, Ended: ended}
	l.Debug("debug")
	l.Info("info")
	l.With("module", "p2p").Warn("warned", "peer", fmt.Stringer(nil), "n", 7)
	l.Error("broken", "err", errors.New("some error"))
	got := out.String()
	for _, want := range []string{"level=WARN msg=warned module=p2p", "n=7", "level=ERROR msg=broken", "err=\"some error\""} {
		if !strings.Contains(got, want) {
			t.Errorf("log is %q, want %q in it", got, want)
		}
	}
	if strings.Contains(got, "info") || strings.Contains(got, "debug") || failed != nil {
		t.Errorf("log is %q, failure %v", got, failed)
	}
	close(ended)
	if l.Error("complaint about the end"); strings.Contains(out.String(), "complaint") {
		t.Errorf("log is %q", out.String())
	}
	l.Error(consensusFailed+"!!!", "err", "a reason", "stack", "...")
	if failed == nil || !strings.Contains(failed.Error(), "engine has halted: a reason") {
		t.Errorf("the failure is %v", failed)
	}
	if l.Error(consensusFailed+"!!!", "err", fmt.Errorf("write x: %w", syscall.ENOSPC)); !errors.Is(failed, syscall.ENOSPC) {
		t.Errorf("the failure is %v, without its cause", failed)
	}
}
