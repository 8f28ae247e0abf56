// Package trace turns a member's share of one round into an explicit program: a list of operations,
// each of which makes one value. A value is cut into tiles, and a tile is made in slices. Anyone
// can recompute a single slice from a few kilobytes, so a referee that saw nothing of the
// computation can decide which of two disagreeing parties is wrong.
//
// # # Three trees
//
// Run runs a program and hashes every slice. With bisect.Root over each list of hashes,
//
//	slice   bisect.Leaf of the words of a tile after that slice
//	tile    root of its slices
//	value   root of its tiles: the operation's leaf
//	trace   root of the operations' leaves
//
// The last operation's leaf is the outcome, the result that a commitment names
// (dispute.Outcome; see Leafer). A member that committed to a result must therefore have a
// trace that ends with it. Two traces of one program with different outcomes have a first operation
// at which they differ, in it a first tile, and in that a first slice. The parties find it by
// showing sixteen children of a node at a time (bisect.Children). Earlier operations made
// everything that the slice reads, and an earlier slice made the words it continues from, so both
// parties have claimed the same hashes for them. Evidence opens those hashes under one party's
// root, and Judge computes the slice. A party whose hash differs from the result lied.
//
// The program determines the shape of the trees. Everyone derives it from the run's configuration
// and the number of sequences in the share. No party controls how many tiles or slices there are,
// how many words they have, or what a slice reads. Step is total: it returns a result for any words
// that evidence opens, and the same result on every machine. It makes NaNs canonical because their
// bits differ between processors.
//
// # # Words, matrices, tiles
//
// A word is 32 bits; a float is its bits. A matrix is cut into tiles of 32 by 32, 4 KiB, numbered
// row by row, and smaller at the edges. Where heads lie side by side, in queries, keys, values and
// their weights, each head is cut separately, so no tile spans two heads even if 32 does not divide
// HeadDim. Their gradients are cut again, into the tiles of Matrix, before the tail reads them.
// Scores, probabilities and their gradients have only tiles on and below the diagonal, in pairs of
// rows: package llama computes 64 queries at a time, and the zeros above the diagonal of such a
// block take part in its products.
//
// A vector with one number per row has tiles of 32 numbers.
//
// # # The program
//
// The bits are those of llama.Model.Grad; packages llama and exact define the order of operations.
// Sequences are computed one after another, which gives the same bits as any number together.
// Below, x is a tile of rows by columns, chains run over inner tiles in ascending order, and
// "start" is the initial value of a chain: the gradient left by the preceding sequence, or the
// residual stream.
//
// Once:
//
//	angles                 cos and sin of position·llama.Config.Frequency
//	pieces of a tensor     the elements of its tiles in one chunk of the parameters each
//	a tensor               its tiles from their pieces, if it lies in several chunks
//	merged matrices        in a run of adapters: A·scale, and W + B·(A·scale); the tensors are
//	                       those of the frozen model and of the adapters
//
// Once a sequence, with the layers and heads in llama's order:
//
//	tokens                 those of 32 positions, and the one that follows
//	embedding              the token's row of the table; the slices traverse the whole table,
//	                       because the program does not know which rows those are
//	1/rms, norm            1/√(Σx²/n + eps); (x·inv)·gain
//	queries, keys, values  x·Wᵀ; plus their bias; then 1/rms and norm of each head, if there are
//	                       such
//	turned                 rope
//	scores                 q·kᵀ of a head; again in the backward pass, as the probabilities
//	shift, inverse         max·scale; 1/ΣExp(s·scale - shift): of each row up to the diagonal,
//	                       from the window's first
//	probabilities          Exp(s·scale - shift)·inverse
//	attention              p·v of a head
//	residual stream        start + attention·Oᵀ; start + gated·downᵀ
//	gate, up, gated        x·Gateᵀ, x·Upᵀ; (g·Sigmoid(g))·u
//	logits                 x·headᵀ
//	greatest logit, share  max; weight/ΣExp(l - max)
//	gradient of logits     Exp(l - max)·share, less weight at the target
//	gradient of a weight   start + dyᵀ·x over the tokens
//	gradient of an input   dy·W
//	slope, gradient of     c = -(Σ(dy·g)·x·inv³)/n; dx + (dy·g)·inv + x·c
//	gradient of gains      start + Σ over blocks of 64 tokens of Σ(dy·x)·inv; of the norms of
//	                       heads, over blocks and in each over the heads
//	gradient of a bias     start + Σ over blocks of 64 tokens of Σdy
//	... of gate and up     as exact.SwiGLUBackward
//	... of probabilities   dout·vᵀ;  sum Σdp·p;  of scores (p·(dp - sum))·scale
//	... of q, k, v         ds·k; start + dsᵀ·q and start + pᵀ·dout, chains over the heads
//	                       of a group; q and k turned back
//	... of the embedding   start + the rows of its tokens; if tied, start is the head's
//
// With llama.Exact8 the linear products are those of exact8, in which an inner tile is a block. The
// gradient of the logits is Exp(l - max)·share alone, and what the targets contribute follows the
// products:
//
//	of the head's norm     dy·W, less the target's row of W times the weight of a token's loss
//	of the head            start + dyᵀ·x, less the row of x times that weight at the row's target
//
// The loss itself is absent, because no commitment depends on it. After the share's sequences
// follow:
//
//	gradient of adapters   G·(A·scale)ᵀ, and (Bᵀ·G)·scale, for the gradient G of a merged matrix
//	gradient of a tensor   in the tiles of Matrix, where heads were cut separately
//	the tail               the codec's computation on the gradient: see Tails.Tail; or only the
//	                       gradient's hash: see NewGradientTails
//
// Sums along a row keep 16 lanes per row between slices, 2 KiB per tile, as package exact defines
// them; the last slice folds them.
//
// # Sizes
//
// A slice reads at most eight tiles and computes at most about a hundred thousand multiply-adds, so
// a referee in plain Go needs about a millisecond. Its evidence has at most 48 KB: the words of its
// inputs, each with its path to the root. A slice with an external input reads one chunk of 256
// KiB, or one sequence. Without the tail, and with d the depth of each tree (bisect.Depth), each of
// the two parties shows 512 bytes d times:
//
//	                          operations   d of operations, tiles, slices
//	nano, 16 sequences of 128      7,249   4, up to 2, up to 1
//	124m, 16 sequences of 1024    37,094   4, up to 4, up to 3
//	1b, 16 sequences of 2048     159,335   5, up to 4, up to 3
//
// Tracing takes five to ten times as long as the step, most of it hashing. Opening an operation
// computes again everything that leads to it. A trace holds in memory the values that are still to
// be read: parameters, gradient, and the activations of one sequence.
package trace
