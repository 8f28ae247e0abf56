#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// One operation on each element, to be compared with the CPU's.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint op = 0;
layout(push_constant, scalar) uniform Args { In a, b, c; Out y; uint n; };

void main() {
	uint i = group() * 64u + gl_LocalInvocationIndex;
	if (i >= n) return;
	float x = a.at[i], u = b.at[i], v = c.at[i];
	float r;
	switch (op) {
	case 0: r = fma(x, u, v); break;
	case 1: r = mad_(x, u, v); break;
	case 2: r = add(mul(x, u), v); break;
	case 3: r = add(x, u); break;
	case 4: r = sub(x, u); break;
	case 5: r = mul(x, u); break;
	case 6: r = less(x, u) ? 1.0 : 0.0; break;
	case 7: r = div_(x, u); break;
	case 8: r = rsqrt_(x); break;
	case 9: r = exp_(x); break;
	case 10: r = sigmoid_(x); break;
	default: r = 0.0;
	}
	y.at[i] = r;
}
