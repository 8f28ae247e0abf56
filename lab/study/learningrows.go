package study

import "github.com/entrain-network/entrain/llama"

// A Method is a way to train together.
type Method string

// The methods.
const (
	// whole gradients, averaged, as one machine with all the data would use
	MethodAdamW      Method = "adamw"
	MethodMuon       Method = "muon"       // the same with optim.Muon in place of AdamW
	MethodDistro     Method = "distro"     // codec/distro
	MethodSparseLoCo Method = "sparseloco" // codec/sparseloco
	// local steps as with sparseloco, and whole changes, averaged
	MethodLocal Method = "local"
)

// LearningRow configures a run of a comparison.
type LearningRow struct {
	Method  Method  `json:"method"`
	Members int     `json:"members"`
	Steps   int     `json:"steps"`           // 0: those of the options
	Inner   int     `json:"inner,omitempty"` // local steps between two rounds
	Chunk   int     `json:"chunk,omitempty"`
	TopK    int     `json:"top_k,omitempty"`
	Decay   float32 `json:"decay,omitempty"`
	Outer   float32 `json:"outer_rate,omitempty"`
	Clip    int     `json:"clip_chunks,omitempty"`
	Muon    bool    `json:"muon,omitempty"` // in local steps
	// Rate is the learning rate. Unless Fixed, rates above or below by factors of two are tried
	// while they are better.
	Rate  float64 `json:"learning_rate"`
	Fixed bool    `json:"-"`
}

// The default model is small, and its sequences are short, so that a run has many steps.
var learningModel = llama.Config{
	Vocab: 256, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Context: learningSequence, Theta: 10000, Eps: 1e-5, Tied: true,
}

const (
	learningSequence = 64   // the context of learningModel
	learningSteps    = 1200 // of a run
	learningBatch    = 16   // sequences of a step
	learningInner    = 5    // steps of a member of sparseloco between two rounds
)

// LearningRows returns the runs of the documentation, with muon also that of MethodMuon. Those of
// whole gradients have one member: the mean of all gradients is the same for any number of them.
func LearningRows(members []int, muon bool) []LearningRow {
	rows := []LearningRow{learningRow(MethodAdamW, 1)}
	if muon {
		rows = append(rows, learningRow(MethodMuon, 1))
	}
	for _, m := range []Method{MethodDistro, MethodSparseLoCo} {
		for _, n := range members {
			rows = append(rows, learningRow(m, n))
		}
	}
	return rows
}

// learningRow is a method with its settings.
func learningRow(m Method, members int) LearningRow {
	switch m {
	case MethodDistro:
		return LearningRow{Method: m, Members: members, Chunk: 8, TopK: 2, Decay: .95, Rate: 4e-3}
	case MethodSparseLoCo:
		return LearningRow{Method: m, Members: members, Inner: learningInner, Chunk: 4096, TopK: 64, Decay: .95, Outer: 1, Rate: .032}
	}
	return LearningRow{Method: m, Members: members, Rate: 4e-3}
}

// LearningVariations returns runs that vary settings: half the tokens; the coefficients and blocks
// of distro; the values of sparseloco, and what remains of its difference when everything is sent
// whole, and when members take no local steps.
func LearningVariations() []LearningRow {
	const members = 8
	adamw, votes, sparse := learningRow(MethodAdamW, 1), learningRow(MethodDistro, members), learningRow(MethodSparseLoCo, members)
	rows := []LearningRow{adamw}
	add := func(r LearningRow, change func(r *LearningRow)) {
		change(&r)
		rows = append(rows, r)
	}
	add(adamw, func(r *LearningRow) { r.Steps = learningSteps / 2 })
	add(votes, func(r *LearningRow) { r.Chunk, r.TopK, r.Rate = 64, 32, r.Rate/2 })
	add(votes, func(r *LearningRow) { r.TopK = 1 })
	add(votes, func(*LearningRow) {})
	add(sparse, func(*LearningRow) {})
	add(sparse, func(r *LearningRow) { r.Chunk = 1024 })
	local := LearningRow{Method: MethodLocal, Members: members, Inner: learningInner, Outer: sparse.Outer, Rate: sparse.Rate}
	add(local, func(*LearningRow) {})
	add(local, func(r *LearningRow) { r.Inner, r.Rate = 1, r.Rate/2 })
	return rows
}

// Block is the number of values of which TopK are sent, or 0 if all are sent.
func (r LearningRow) Block() int {
	if r.Method == MethodDistro {
		return r.Chunk * r.Chunk
	}
	return r.Chunk
}
