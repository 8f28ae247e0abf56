#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds b to each row of x (rows, n).
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In b; Out x; uint rows, n; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t < rows * n) x.at[t] = add(x.at[t], b.at[t % n]);
}
