#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// y = x - rate*(sums/count). With a count and a rate of 1 that is x - sums.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In x, sums; Out y; uint n; float count, rate; };

void main() {
	uint i = group() * 64u + gl_LocalInvocationIndex;
	if (i < n) y.at[i] = sub(x.at[i], mul(rate, div_(sums.at[i], count)));
}
