package view

import (
	"testing"

	"github.com/entrain-network/entrain/event"
)

// A key without SOL is refused its message and its addresses every two seconds.
func TestRefusalsAreSaidOnce(t *testing.T) {
	var w Teller
	for i := range 3 {
		for _, text := range []string{"join: no SOL", "announce addresses: no SOL"} {
			if said := w.Words(event.Refused{Text: text}) != ""; said != (i == 0) {
				t.Errorf("%q: said %v, time %d", text, said, i)
			}
		}
	}
	w.Words(event.Note{Text: "the chain answers"})
	if w.Words(event.Refused{Text: "join: no SOL"}) == "" {
		t.Error("a refusal after something else is not said")
	}
}
