// Package trace is a member's share of one round as an explicit program: a list of operations, each
// of which makes one value, a value cut in tiles, a tile made in slices. Every slice can be
// computed again alone, from a few kilobytes, so that a referee who saw nothing of the computation
// decides who of two parties that differ about it is wrong.
//
// # Three trees
//
// Run runs a program and hashes every slice. With bisect.Root over each list of hashes,
//
//	slice   bisect.Leaf of the words of a tile after that slice
//	tile    root of its slices
//	value   root of its tiles: the operation's leaf
//	trace   root of the operations' leaves
//
// The last operation's leaf is the outcome, what a commitment says came out of the step
// (coordinator.Outcome; see Leafer). So whoever committed to a result can be asked for a trace that
// ends with it. Two traces of one program with different outcomes have a first operation, in that a
// first tile, in that a first slice at which they differ, found by showing sixteen children of a
// node at a time (bisect.Children): all that the slice reads was made by earlier operations, and
// what it goes on from by an earlier slice, so both parties have claimed the same hashes of it.
// Evidence opens those under one party's root; Judge computes the slice; whose hash the result has
// not, lied.
//
// The shape of the trees is the program's, which everybody derives from the run's configuration and
// the number of the share's sequences: no party has a say in how many tiles or slices there are, in
// how many words they have, or in what a slice reads. Whatever words evidence opens, a Step is
// total, and its result is the same on every machine; a NaN, whose bits processors do not agree on,
// is always the canonical one.
//
// # Words, matrices, tiles
//
// A word is 32 bits; a float is its bits. A matrix is cut in tiles of 32 by 32, 4 KiB, numbered row
// by row, smaller at the edges. Where heads lie side by side, in queries, keys, values and their
// weights, each head is cut by itself, so that with 32 not dividing HeadDim a tile has no parts of
// two heads; gradients are cut anew, in the tiles of Matrix, before the tail reads them. Scores,
// probabilities and their gradients have tiles on and below the diagonal only, in pairs of rows:
// package llama computes 64 queries at a time, and the zeros above the diagonal of such a block
// take part in its products.
//
// A vector with one number of each row has tiles of 32 numbers.
//
// # The program
//
// The bits are those of llama.Model.Grad, whose order of operations is package llama's and package
// exact's. One sequence is computed after another, which gives the same bits as any number
// together. In the following, x is a tile of rows by columns, chains run over inner tiles in
// ascending order, and "+ start" says where a chain begins: the gradient that the sequence before
// left, or the residual stream.
//
// Once:
//
//	angles                 cos and sin of position·Theta^(-2i/HeadDim)
//	pieces of a tensor     the elements of its tiles in one chunk of the parameters each
//	a tensor               its tiles from their pieces, if it lies in several chunks
//
// Once a sequence, with the layers and heads in llama's order:
//
//	tokens                 those of 32 positions, and the one that follows
//	embedding              the token's row of the table; the slices pass over the table, because which rows those are is not the program's to know
//	1/rms, norm            1/√(Σx²/n + eps); (x·inv)·gain
//	queries, keys, values  x·Wᵀ
//	turned                 rope
//	scores                 q·kᵀ of a head                                         again in the backward pass, as the probabilities
//	shift, inverse         max·scale; 1/ΣExp(s·scale - shift): of each row up to the diagonal
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
//	gradient of gains      start + Σ over blocks of 64 tokens of Σ(dy·x)·inv
//	... of gate and up     as exact.SwiGLUBackward
//	... of probabilities   dout·vᵀ;  sum Σdp·p;  of scores (p·(dp - sum))·scale
//	... of q, k, v         ds·k; start + dsᵀ·q and start + pᵀ·dout, chains over the heads of a group; q and k turned back
//	... of the embedding   start + the rows of its tokens; if tied, start is the head's
//
// The loss itself is not among them: nothing that is committed to depends on it. The share's
// sequences are followed by
//
//	gradient of a tensor   in the tiles of Matrix, where heads were cut by themselves
//	the tail               what the codec makes of the gradient: see NewTail
//
// Sums along a row keep 16 lanes a row between slices, 2 KiB a tile, as package exact defines them;
// the last slice folds them.
//
// # Sizes
//
// A slice reads at most eight tiles and computes about a hundred thousand multiply-adds at most, so
// a referee in plain Go needs about a millisecond, and its evidence has at most 48 KB: the words of
// what it reads, each with its way to the root. A slice that reads from outside reads one chunk of
// 256 KiB, or one sequence. Without the tail, and with d the depth of each tree (bisect.Depth), the
// two parties show 512 bytes d times each:
//
//	                          operations   d of operations, tiles, slices
//	nano, 16 sequences of 128      7,249   4, up to 2, up to 1
//	124m, 16 sequences of 1024    37,094   4, up to 4, up to 3
//	1b, 16 sequences of 2048     159,335   5, up to 4, up to 3
//
// Tracing takes five to ten times as long as the step, most of it hashing; opening an operation
// runs what leads to it again. Memory is that of the values which are still to be read: parameters,
// gradient, and the activations of one sequence.
package trace
