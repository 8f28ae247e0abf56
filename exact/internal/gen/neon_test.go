package main

import (
	"testing"

	"github.com/entrain-network/entrain/tests/emulator"
)

func TestEncodedInstructionsAreWhatTheyAreCalled(t *testing.T) {
	emulator.CheckWords(t, files()["arm64"], len(threeSame)+2, 50) // those two are shifts and roots
}
