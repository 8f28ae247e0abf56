#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// One step of exact.Worker.AdamW by the gradient times clip. It leaves a gradient of zeros.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args {
	Out x, m, v, g;
	uint n;
	float clip, beta1, fresh1, beta2, fresh2, keep, rate, scale, eps;
};

// sqrt_ is exact.Sqrt. The driver's own is only where the search begins: Q*2^-23, Q of 24 bits, is too small by more than half
// an ulp if (2Q+1)^2 is less than m*2^25, or 2^26 for an odd exponent. One side is odd, so they are never equal.
float sqrt_(float x) {
	uint b = floatBitsToUint(x);
	if ((b & 0x7fffffffu) == 0u || b == 0x7f800000u) return x;
	if (b > 0x7f800000u) return noNumber;
	int e;
	float f = normal(b, e);
	bool odd = (e & 1) != 0;
	if (odd) e--;
	uint high, low, m = floatBitsToUint(f) & 0x007fffffu | 0x00800000u;
	uvec2 limit = odd ? uvec2(m >> 6, m << 26) : uvec2(m >> 7, m << 25);
	uint q = clamp(floatBitsToUint(sqrt(odd ? 2.0 * f : f)), 0x3f800000u, 0x3fffffffu) & 0x007fffffu | 0x00800000u;
	for (int i = 0; i < 8; i++) {
		umulExtended(2u * q + 1u, 2u * q + 1u, high, low);
		if (high < limit.x || high == limit.x && low < limit.y) {
			q++;
			continue;
		}
		umulExtended(2u * q - 1u, 2u * q - 1u, high, low);
		if (high > limit.x || high == limit.x && low > limit.y) q--;
	}
	// A q of 2^24 carries into the exponent.
	return uintBitsToFloat((uint(126 + e / 2) << 23) + q);
}

void main() {
	uint i = group() * 64u + gl_LocalInvocationIndex;
	if (i >= n) return;
	float d = clip == 1.0 ? g.at[i] : mul(g.at[i], clip);
	float mean = add(mul(beta1, m.at[i]), mul(fresh1, d));
	float square = add(mul(beta2, v.at[i]), mul(mul(fresh2, d), d));
	float divisor = add(mul(sqrt_(square), scale), eps);
	x.at[i] = sub(mul(x.at[i], keep), div_(mul(rate, mean), divisor));
	m.at[i] = mean;
	v.at[i] = square;
	g.at[i] = 0.0;
}
