#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds the squares of x to the sums of codec.Squares: 16 for each segment of the gradient, in binary64, each the sum of every 16th element in order.
// x begins with element number lead of a segment. Not every device has binary64, so it is made of integers: squares and sums are not negative, and
// never subnormal, which leaves little. A sum that has met a NaN or an infinity is a NaN.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Words x; Flags sums; uint n, lead, lanes; };

const uint segment = 16384u;

// A binary64 above 0 is significand*2^(exponent-1075), the significand in 53 bits, high word first.
struct Double { uvec2 significand; int exponent; };

Double square(uint bits) {
	int e;
	uint m = significand(bits, e);
	Double d;
	umulExtended(m, m, d.significand.x, d.significand.y);
	bool long_ = d.significand.x >= 0x8000u; // 48 bits, else 47
	d.significand = shiftLeft(d.significand, long_ ? 5 : 6);
	d.exponent = 2 * e + (long_ ? 770 : 769);
	return d;
}

Double sum(Double a, Double b) {
	if (a.exponent < b.exponent) {
		Double t = a;
		a = b;
		b = t;
	}
	uvec2 p = shiftLeft(a.significand, 10), q = shiftRight(shiftLeft(b.significand, 10), min(a.exponent - b.exponent, 64)), r;
	uint carry;
	r.y = uaddCarry(p.y, q.y, carry);
	r.x = p.x + q.x + carry;
	int e = a.exponent + 1;
	if (r.x < 0x80000000u) { // the bit that is lost of q is in the lowest one of q
		r = shiftLeft(r, 1);
		e--;
	}
	uint lost = r.y & 0x7ffu;
	a.significand = uvec2(r.x >> 11, r.y >> 11 | r.x << 21);
	if (lost > 0x400u || lost == 0x400u && (a.significand.y & 1u) == 1u) {
		a.significand.y = uaddCarry(a.significand.y, 1u, carry);
		a.significand.x += carry;
		if (a.significand.x >= 0x200000u) {
			a.significand = uvec2(0x100000u, 0u);
			e++;
		}
	}
	a.exponent = e;
	return a;
}

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= lanes) return;
	uint first = t / 16u * segment + t % 16u, to = min(t / 16u * segment + segment, lead + n);
	if (first < lead) first += (lead - first + 15u) / 16u * 16u;
	uvec2 bits = uvec2(sums.at[2u * t + 1u], sums.at[2u * t]);
	bool any = bits != uvec2(0u), broken = bits.x >= 0x7ff00000u;
	Double s = Double(uvec2(bits.x & 0xfffffu | 0x100000u, bits.y), int(bits.x >> 20));
	for (uint i = first; i < to; i += 16u) {
		uint v = x.at[i - lead] & 0x7fffffffu;
		if (v == 0u) continue;
		broken = broken || v >= 0x7f800000u;
		if (any) s = sum(s, square(v));
		else s = square(v);
		any = true;
	}
	if (!any) return;
	sums.at[2u * t] = s.significand.y;
	sums.at[2u * t + 1u] = broken ? 0x7ff80000u : uint(s.exponent) << 20 | s.significand.x & 0xfffffu;
}
