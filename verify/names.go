package verify

import (
	"sync"

	"github.com/entrain-network/entrain/codec/all"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/spec"
)

// OpNames returns a function that names the operations of a run's steps: the name of operation op
// in a step with the given number of sequences, or "" if there is no such operation or the run's
// steps cannot be disputed. The first call parses the specification.
func OpNames(specText []byte) func(sequences, op uint32) string {
	read := sync.OnceValue(func() *rules {
		s, err := spec.Parse(specText, all.Kinds())
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
		if o := (&referee{r}).op(dispute.Case{Sequences: sequences}, op); o != nil {
			return o.Name()
		}
		return ""
	}
}
