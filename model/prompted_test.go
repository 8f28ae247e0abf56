package model

import (
	"strings"
	"testing"
)

func TestPromptIsAnsweredByTheNewestCheckpoint(t *testing.T) {
	m := &Prompted{}
	var text strings.Builder
	err := m.Generate(t.Context(), t.TempDir(), Prompt{Text: "a", Tokens: 1}, &text)
	if err == nil || !strings.Contains(err.Error(), "not a checkpoint of entrain") || m.g != nil {
		t.Errorf("of an empty directory: %v", err)
	}
}
