package optim

// Inner defines how a member trains on its own between two rounds. It cuts its share into Steps
// parts, in order and as equal as possible, and takes one step of AdamW or Muon for each, starting
// from the parameters at the round's start. The codec receives a pseudo-gradient in place of a
// gradient: the initial parameters minus the final ones (local SGD; A. Douillard et al., "DiLoCo:
// Distributed Low-Communication Training of Language Models", 2023). A share with fewer than Steps
// sequences takes one step for each sequence.
//
// The optimizer's moments belong to the member and persist from round to round. They follow the
// codec's part of its optimizer state: the mean of the gradients and the mean of their squares,
// each as long as the parameters, and the number of steps done.
type Inner struct {
	Steps    int // steps in a round, at least 1
	AdamW    AdamWConfig
	Muon     bool    // matrices of the layers step by Muon, with AdamW's weight decay
	ClipNorm float32 // Euclidean norm that a part's gradient is scaled down to; 0: no limit
}

// StateLen returns how many numbers inner steps add to the optimizer state of a model with n
// parameters.
func (Inner) StateLen(n int) int { return 2*n + 1 }
