#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds the signs of picks to sums: integers, of each block of size numbers. Those of a payload have a pick.comp's words for each block, and the payloads
// follow each other. With last set it turns sums into floats, at most most in magnitude, if most is not 0.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Words picks; Flags sums; uint n, size, each, columns, across, stride, most, last; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= n) return;
	if (last != 0u) {
		int v = int(sums.at[t]);
		if (most != 0u) v = clamp(v, -int(most), int(most));
		sums.at[t] = floatBitsToUint(float(v));
		return;
	}
	// Word t of those of all blocks of all payloads.
	uint g = t / each, blocks = stride / each, payload = g / blocks, b = g % blocks, i = b / across, j = b % across;
	if (j >= columns) return;
	uint word = picks.at[t], base = (i * columns + j) * size;
	for (uint k = 0u; k < 2u; k++, word >>= 16) {
		uint pick = word & 0xffffu;
		if (pick != 0xffffu) atomicAdd(sums.at[base + (pick & 0x7fffu)], pick < 0x8000u ? 1u : 0xffffffffu);
	}
}
