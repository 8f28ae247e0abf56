package distro

import "github.com/entrain-network/entrain/codec/internal/subset"

// Limits of a Config. Together they bound the tables of a Codec to 50 MB and the code of a block to
// 11 words.
const (
	BlockMax = 128         // at 128 the DCT costs as much per weight as 256 multiplications; published runs use 64
	TopKMax  = subset.KMax //  coefficients sent of a block; published runs use 2 to 32
	stateMax = 1 << 100    // magnitude of a state's element: a state beyond is broken, one below cannot overflow in a step (see codec.NormMax)
)
