// Package entrain is the root of a system in which strangers' machines train one language model together, and nobody has to
// trust anybody.
//
// To entrain is to fall into step with others, as clocks on one wall do. Participants each train on a share of the data and
// exchange compressed updates; a deterministic, replicated coordinator decides who takes part, who trains on what, which
// results enter the model and who earned what. The arithmetic is defined to the last bit, so all replicas agree on the
// model's hash in every round, and every accepted result can be computed again, bit for bit, by whoever doubts it.
//
// This package holds no code, only the tests of the tree as a whole: which package may import which (layers_test.go), and
// what every file must keep to (tidy_test.go). The program is cmd/entrain; ARCHITECTURE.md is the map.
package entrain
