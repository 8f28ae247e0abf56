package table

import "github.com/entrain-network/entrain/coordinator"

// Prior returns the round whose accepted set makes the parameters of the start of round q, 0 if
// there is none to apply. ok is false if the state no longer has the rounds that decide it.
func Prior(s coordinator.State, q coordinator.Round) (a coordinator.Round, ok bool) {
	if q == 1 {
		return 0, true // before the first round there are the initial parameters
	}
	closed, ok := s.At(q - 1) // what it attested became final when it ended
	if !ok {
		return 0, false
	}
	if a = closed.Attests(); a == 0 {
		return 0, true
	}
	r, ok := s.At(a)
	if !ok {
		return 0, false
	}
	if !r.Final() || r.AcceptedCount() == 0 {
		return 0, true
	}
	return a, true
}
