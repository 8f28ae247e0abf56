#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// h = (g*Sigmoid(g))*u for rows of gu, the gate's half first.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In gu; Out h; uint rows, n; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= rows * n) return;
	uint r = t / n, i = t % n;
	float g = gu.at[2u * r * n + i];
	h.at[t] = mul(mul(g, sigmoid_(g)), gu.at[2u * r * n + n + i]);
}
