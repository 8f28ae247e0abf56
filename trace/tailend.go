package trace

import (
	"math"
	"sort"

	"github.com/entrain-network/entrain/codec"
	"github.com/entrain-network/entrain/coordinator"
	"github.com/entrain-network/entrain/coordinator/dispute"
	"github.com/entrain-network/entrain/exact"
	"github.com/entrain-network/entrain/wire"
)

// step adds the operation that computes the size of the step, the learning rate times the clip
// factor. Its words are 1 and the size, or zeros if Encode would refuse the gradient, the state or
// the learning rate.
func (d *codecTail) step(norm, most uint32) uint32 {
	clip, decay := d.codec.Clipping()
	return d.add(func(at tailSite) Op {
		return funcOp{
			name: "size of the step", tiles: 1, words: words(2),
			reads: func(uint32, uint32) []Read { return []Read{at.value(norm, 0), at.value(most, 0)} },
			step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				var sum [1]float64
				setDoubles(sum[:], in[0])
				factor, err := codec.Factor(math.Sqrt(sum[0]), clip)
				if err != nil || d.codec.CheckMagnitude(math.Float32frombits(in[1][0])) != nil || codec.CheckLR(d.lr, decay) != nil {
					return []uint32{0, 0}
				}
				return []uint32{1, math.Float32bits(d.lr * factor)}
			},
		}
	})
}

// readStep decodes the words of step.
func readStep(words []uint32) (size float32, ok bool) {
	return math.Float32frombits(words[1]), words[0] == 1
}

// payloadTile is the number of bytes of a payload in a tile.
const payloadTile = 1 << 10

// payloadWords returns the number of words of a tile of a payload. The last word may be padded with
// zero bytes.
func payloadWords(size int, tile uint32) int {
	from := int(tile) * payloadTile
	return (min(payloadTile, size-from) + 3) / 4
}

// payloadOp assembles the payload from its header and the codes of the blocks.
func (d *codecTail) payloadOp(codes uint32) func(at tailSite) Op {
	size := d.codec.PayloadMax()
	header := d.codec.Header()
	count := func(tile uint32) (first, n uint32) {
		return d.coded(int(tile)*payloadTile, min((int(tile)+1)*payloadTile, size))
	}
	return func(at tailSite) Op {
		return funcOp{
			name: "payload", tiles: uint32((size + payloadTile - 1) / payloadTile),
			slices: func(tile uint32) uint32 {
				_, n := count(tile)
				return max(1, eights(n))
			},
			words: func(tile, _ uint32) int { return payloadWords(size, tile) },
			reads: func(tile, slice uint32) []Read {
				first, n := count(tile)
				from, to := eight(n, slice)
				return at.values(codes, first+from, first+to)
			},
			step: func(_ *exact.Worker, tile, slice uint32, acc []uint32, in [][]uint32) []uint32 {
				if acc == nil {
					acc = make([]uint32, payloadWords(size, tile))
				}
				if tile == 0 && slice == 0 {
					for i, b := range header {
						acc[i/4] |= uint32(b) << uint(i%4*8)
					}
				}
				first, n := count(tile)
				from, _ := eight(n, slice)
				for i, code := range in {
					bit := d.codec.Block(int(first+from) + i).Bit
					putBits(acc, 8*(codec.HeaderLen-int(tile)*payloadTile)+bit, code)
				}
				return acc
			},
		}
	}
}

// coded returns the blocks whose codes have bits in bytes [from, to) of a payload: the first block,
// and their number.
func (d *codecTail) coded(from, to int) (first, n uint32) {
	// at returns the first block whose code ends after the given number of bits.
	at := func(bits int) int {
		return sort.Search(d.codec.Blocks(), func(i int) bool {
			b := d.codec.Block(i)
			return b.Bit+b.Bits > bits
		})
	}
	low, high := 8*max(0, from-codec.HeaderLen), 8*max(0, to-codec.HeaderLen)
	if high == 0 {
		return 0, 0
	}
	begin, end := at(low), min(at(high-1)+1, d.codec.Blocks())
	return uint32(begin), uint32(end - begin)
}

// putBits sets the bits of words that are set in code. code begins at bit offset of words and may
// reach beyond either end.
func putBits(words []uint32, offset int, code []uint32) {
	put := func(i int, v uint32) {
		if i >= 0 && i < len(words) {
			words[i] |= v
		}
	}
	shift := uint(offset & 31)
	for i, v := range code {
		at := offset>>5 + i
		put(at, v<<shift)
		put(at+1, v>>(32-shift)) // 0 for a shift by 32
	}
}

// payloadBytes is the payload in chunks of piece bytes, from the tiles of operation of.
type payloadBytes struct {
	at          tailSite
	of          uint32
	size, piece int
}

// tiles returns the first tile of a chunk and the number of its tiles.
func (p payloadBytes) tiles(chunk uint32) (first, n uint32) {
	each := uint32(p.piece / payloadTile)
	all := uint32((p.size + payloadTile - 1) / payloadTile)
	return chunk * each, min((chunk+1)*each, all) - chunk*each
}

func (p payloadBytes) slices(chunk uint32) uint32 {
	_, n := p.tiles(chunk)
	return eights(n)
}

func (p payloadBytes) reads(chunk, slice uint32) []Read {
	first, n := p.tiles(chunk)
	from, to := eight(n, slice)
	return p.at.values(p.of, first+from, first+to)
}

func (p payloadBytes) bytes(chunk, slice uint32, in [][]uint32) []byte {
	first, n := p.tiles(chunk)
	from, _ := eight(n, slice)
	var words []uint32
	for _, tile := range in {
		words = append(words, tile...)
	}
	b := littleEndian(words)
	return b[:min(len(b), p.size-int(first+from)*payloadTile)]
}

// workOp makes the commitment's proof of work.
func workOp(share Share, gradient uint32) func(at tailSite) Op {
	return func(at tailSite) Op {
		return funcOp{
			name: "proof of work", tiles: 1, words: words(hashWords),
			reads: func(uint32, uint32) []Read { return []Read{at.value(gradient, 0)} },
			step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				return hashToWords(dispute.WorkHash(share.Run, coordinator.Round(share.Round), coordinator.Member(share.Member), wordsToHash(in[0])))
			},
		}
	}
}

// outcome is the last operation. Its words are a hash, which is also its leaf.
type outcome struct{ funcOp }

func (outcome) Leaf(words []uint32) wire.Hash { return wordsToHash(words) }

// outcomeOp makes the outcome of the step's commitment.
func outcomeOp(payload, bytes, state, work, step uint32) func(at tailSite) Op {
	return func(at tailSite) Op {
		return outcome{funcOp{
			name: "outcome", tiles: 1, words: words(hashWords),
			reads: func(uint32, uint32) []Read {
				return []Read{at.value(payload, 0), at.value(state, 0), at.value(work, 0), at.value(step, 0)}
			},
			step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				if _, ok := readStep(in[3]); !ok {
					return make([]uint32, hashWords)
				}
				return hashToWords(dispute.Outcome(dispute.Commitment{
					Payload: wordsToHash(in[0]), PayloadBytes: bytes, State: wordsToHash(in[1]), Work: wordsToHash(in[2]),
				}))
			},
		}}
	}
}

// claimOp makes the outcome of a commitment whose payload and state nobody recomputes.
func claimOp(c dispute.Commitment, work uint32) func(at tailSite) Op {
	return func(at tailSite) Op {
		return outcome{funcOp{
			name: "outcome", tiles: 1, words: words(hashWords),
			reads: func(uint32, uint32) []Read { return []Read{at.value(work, 0)} },
			step: func(_ *exact.Worker, _, _ uint32, _ []uint32, in [][]uint32) []uint32 {
				made := c
				made.Work = wordsToHash(in[0])
				return hashToWords(dispute.Outcome(made))
			},
		}}
	}
}
