#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Turns gu into its gradient and dh into h: with s = Sigmoid(g) and a = g*s, u = dh*a, g = (dh*u)*(s*(1 + g*(1 - s))), dh = a*u.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Out gu, dh; uint rows, n; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= rows * n) return;
	uint p = 2u * (t / n) * n + t % n;
	float x = gu.at[p], y = gu.at[p + n], d = dh.at[t];
	float s = sigmoid_(x), a = mul(x, s);
	gu.at[p + n] = mul(d, a);
	gu.at[p] = mul(mul(d, y), mul(s, add(1.0, mul(x, sub(1.0, s)))));
	dh.at[t] = mul(a, y);
}
