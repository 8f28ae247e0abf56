// Package entrain is the root of a system in which strangers' machines train one language model
// together without having to trust each other.
//
// To entrain is to fall into step with others, as clocks on one wall do. Each participant trains on
// a share of the data, and they exchange compressed updates. A deterministic, replicated
// coordinator decides who takes part, who trains on what, which results enter the model and who
// earned what. The arithmetic is defined to the last bit, so all participants agree on the model's
// hash in every round, and anyone can recompute every accepted result.
//
// This package holds no code, only the tests of the whole tree: which package may import which
// (layers_test.go), and what every file must keep to (tidy_test.go). The program is cmd/entrain;
// ARCHITECTURE.md describes the parts.
package entrain
