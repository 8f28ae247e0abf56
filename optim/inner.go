package optim

// Inner is how a member trains on its own between two rounds: it cuts its share into Steps parts,
// in order and as equal as can be, and takes a step of AdamW by each, from the parameters at the
// round's start. What the codec gets for a gradient is the pseudo-gradient: those parameters less
// the ones it came to (local SGD; A. Douillard et al., "DiLoCo: Distributed Low-Communication
// Training of Language Models", 2023). A share of fewer sequences has as many steps as those.
//
// AdamW's moments are the member's own and go on from round to round, so they are in its optimizer
// state, after the codec's: the mean of the gradients, the mean of their squares, each as long as
// the parameters, and the number of steps done.
type Inner struct {
	Steps    int // in a round, at least 1
	AdamW    AdamWConfig
	ClipNorm float32 // Euclidean norm to which a part's gradient is brought down; 0 for no limit
}

// StateLen is how many numbers of optimizer state inner steps add, for a model of n parameters.
func (Inner) StateLen(n int) int { return 2*n + 1 }
