#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Copies each row's vector from the table.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In table; Out x; Words tokens; uint rows, n, seq; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= rows * n) return;
	uint r = t / n;
	x.at[t] = table.at[token(tokens.at[r + r / seq]) * n + t % n];
}
