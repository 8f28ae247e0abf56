#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Packs rows of width numbers that are stride numbers apart, n numbers in all.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Words x; Flags y; uint n, stride, width; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t < n) y.at[t] = x.at[t / width * stride + t % width];
}
