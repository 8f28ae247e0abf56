package study

import "github.com/entrain-network/entrain/llama"

// A Method is a way to train together.
type Method string

// The methods that are compared.
const (
	// all gradients whole, averaged: what one machine with all the data would do
	MethodAdamW      Method = "adamw"
	MethodDistro     Method = "distro"     // codec/distro
	MethodSparseLoCo Method = "sparseloco" // codec/sparseloco
	// steps of AdamW as sparseloco's, and whole changes, averaged
	MethodLocal Method = "local"
)

// LearningRow is a run that is compared.
type LearningRow struct {
	Method  Method  `json:"method"`
	Members int     `json:"members"`
	Steps   int     `json:"steps"`           // 0: those of the options
	Inner   int     `json:"inner,omitempty"` // steps of a member on its own between two rounds
	Chunk   int     `json:"chunk,omitempty"`
	TopK    int     `json:"top_k,omitempty"`
	Decay   float32 `json:"decay,omitempty"`
	Outer   float32 `json:"outer_rate,omitempty"`
	// Rate is the learning rate. Others, by factors of two above or below, are tried as long as
	// they are better, unless Fixed.
	Rate  float64 `json:"learning_rate"`
	Fixed bool    `json:"-"`
}

// The model that is trained, and how long its sequences are: small, so that a run has many steps.
var learningModel = llama.Config{
	Vocab: 256, Hidden: 64, Layers: 2, Heads: 4, KVHeads: 2, HeadDim: 16, FFN: 128, Context: 64, Theta: 10000, Eps: 1e-5, Tied: true,
}

const (
	learningSequence = 64
	learningSteps    = 1200 // of a run
	learningBatch    = 16   // sequences of a step
	learningInner    = 5    // steps of a member of sparseloco between two rounds
)

// LearningRows are the runs of the documentation.
func LearningRows(members []int) []LearningRow {
	var rows []LearningRow
	for _, m := range []Method{MethodAdamW, MethodDistro, MethodSparseLoCo} {
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

// LearningVariations are runs that say what the settings do: what half the tokens cost, how many
// coefficients of which blocks distro sends, how many values sparseloco sends, and what is left
// of its difference when all is sent whole, and when members take no steps on their own.
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

// Block is how many values TopK is of; 0 if all are sent.
func (r LearningRow) Block() int {
	if r.Method == MethodDistro {
		return r.Chunk * r.Chunk
	}
	return r.Chunk
}
