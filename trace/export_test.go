package trace

// Case is a small model with what its program reads from outside.
type Case struct {
	Name    string
	Setup   Setup
	Sources Sources
}

// Cases returns the models that tests trace, each with a share of n sequences.
func Cases(n int) (list []Case) {
	for _, c := range modelCases() {
		c.sequences = n
		list = append(list, Case{c.name, c.setup(), c.sources()})
	}
	return list
}
