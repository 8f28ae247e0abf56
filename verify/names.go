package verify

import (
	"sync"

	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/spec"
)

// OpNames tells people what the operations of a run's steps compute, from the text of its
// specification: the name of operation op in a step of so many sequences, "" if there is none or
// steps of such a run cannot be disputed. The text is read when it is asked first.
func OpNames(specText []byte) func(sequences, op uint32) string {
	read := sync.OnceValue(func() *rules {
		s, err := spec.Parse(specText)
		if err != nil {
			return nil
		}
		r, err := newRules(s)
		if err != nil {
			return nil
		}
		return r
	})
	return func(sequences, op uint32) string {
		r := read()
		if r == nil {
			return ""
		}
		if o := (&referee{r}).op(coordinator.Case{Sequences: sequences}, op); o != nil {
			return o.Name()
		}
		return ""
	}
}
