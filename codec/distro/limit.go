package distro

import "github.com/entrain-network/entrain/codec/internal/subset"

// Limits of a Config. Together they bound the tables of a Codec to 50 MB and the code of a block to
// 11 words.
const (
	BlockMax = 128         // published runs use 64; the DCT costs 2·Block multiplications per weight
	TopKMax  = subset.KMax // published runs use 2 to 32
	stateMax = 1 << 100    // magnitude of an element of the state; no step overflows
)
