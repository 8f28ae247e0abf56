#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds to y, in order, the rows [from, to) of each of `blocks` blocks of partial, which have `each` rows of n.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In partial; Out y; uint blocks, n, each, from, to; };

void main() {
	uint i = group() * 64u + gl_LocalInvocationIndex;
	if (i >= n) return;
	float sum = y.at[i];
	for (uint b = 0u; b < blocks; b++)
		for (uint r = from; r < to; r++) sum = add(sum, partial.at[(b * each + r) * n + i]);
	y.at[i] = sum;
}
