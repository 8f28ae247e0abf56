package main

import (
	"testing"

	"github.com/entrain-network/entrain/tests/emulator"
)

func TestEncodedInstructionsAreWhatTheyAreCalled(t *testing.T) {
	emulator.CheckWords(t, files()["arm64"], 9, 100)
}
