package main

import "testing"

func TestMistypedCommandsAndFlagsAreSuggested(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		`did you mean "entrain join"?`:       {"jion", "my-run"},
		`did you mean "entrain run create"?`: {"run", "ceate", "-f", "x"},
		"did you mean --data?":               {"join", "my-run", "--dta", "x"},
		"did you mean --workers?":            {"join", "my-run", "--workrs", "2"},
	} {
		s.fails(args, want)
	}
	s.fails([]string{"nothing"}, `unknown command "nothing" for "entrain"`)
}
