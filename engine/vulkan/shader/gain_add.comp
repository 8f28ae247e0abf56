#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds the rows of partial (rows, n) to y, in order.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In partial; Out y; uint rows, n; };

void main() {
	uint i = group() * 64u + gl_LocalInvocationIndex;
	if (i >= n) return;
	float sum = y.at[i];
	for (uint r = 0u; r < rows; r++) sum = add(sum, partial.at[r * n + i]);
	y.at[i] = sum;
}
