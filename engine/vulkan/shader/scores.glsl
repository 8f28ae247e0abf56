// Rows of scores: row r is that of query low + r%each of a head and has the scores of the positions up to that, or of the last `window` of them, and
// room up to the end of a block of 64. An invocation takes every sixteenth from `from` on.
#include "rows.glsl"

struct Scores { uint from, to, end; };

Scores scores(uint r, uint rows, uint seq, uint window, uint each, uint low) {
	if (r >= rows) return Scores(0u, 0u, 0u);
	uint n = low + r % each + 1u, first = window != 0u && n > window ? n - window : 0u;
	return Scores(lane() + (max(first, lane()) - lane() + 15u) / 16u * 16u, n, min(seq, (n + 63u) / 64u * 64u));
}
