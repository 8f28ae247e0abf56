// The arithmetic of package exact: the same operations in the same order, each rounded once.
//
// add, sub and mul are the device's. Where it flushes subnormals, what may have suffered is computed
// again in integers (mad_). The driver must leave the device's operations alone: the loader decorates
// each of them with NoContraction (engine/vulkan/gpu/spirv.go), which is what `precise` would do, but
// cannot be forgotten.

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer In { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Out { float at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer Words { uint at[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Flags { uint at[]; };

// What the device computes otherwise; see kernel.Mode.
layout(constant_id = 30) const uint mode = 0u;
const uint guarded = 2u; // the device flushes subnormals: what may have suffered is computed again in integers

// token is a token without the bit that says that it is only read, not learnt.
uint token(uint t) { return t & 0x7fffffffu; }
bool masked(uint t) { return t >= 0x80000000u; }

// group is the number of the workgroup among those of a dispatch that spans two dimensions because
// one may hold only 65535.
uint group() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }

#define infinity uintBitsToFloat(0x7f800000u)
#define noNumber uintBitsToFloat(0x7fc00000u)

// shiftRight shifts a number of 64 bits, high word first, and keeps in the lowest bit whether anything was lost.
uvec2 shiftRight(uvec2 v, int n) {
	if (n == 0) return v;
	if (n >= 64) return uvec2(0u, v == uvec2(0u) ? 0u : 1u);
	if (n >= 32) {
		uint lost = v.y | (n == 32 ? 0u : v.x << (64 - n));
		return uvec2(0u, (n == 32 ? v.x : v.x >> (n - 32)) | (lost == 0u ? 0u : 1u));
	}
	return uvec2(v.x >> n, v.y >> n | v.x << (32 - n) | ((v.y << (32 - n)) == 0u ? 0u : 1u));
}

uvec2 shiftLeft(uvec2 v, int n) {
	if (n == 0) return v;
	if (n >= 32) return uvec2(v.y << (n - 32), 0u);
	return uvec2(v.x << n | v.y >> (32 - n), v.y << n);
}

// significand is that of a finite number other than 0, with 24 bits.
uint significand(uint bits, out int exponent) {
	exponent = int(bits >> 23 & 0xffu);
	uint m = bits & 0x007fffffu;
	if (exponent != 0) return m | 0x00800000u;
	int shift = 23 - findMSB(m);
	exponent = 1 - shift;
	return m << shift;
}

// mad_ is x*y + z rounded once, in integers.
float mad_(float x, float y, float z) {
	uint a = floatBitsToUint(x), b = floatBitsToUint(y), c = floatBitsToUint(z);
	uint aa = a & 0x7fffffffu, ba = b & 0x7fffffffu, ca = c & 0x7fffffffu, sign = (a ^ b) & 0x80000000u, other = c & 0x80000000u;
	if (aa > 0x7f800000u || ba > 0x7f800000u || ca > 0x7f800000u) return noNumber;
	if (aa == 0x7f800000u || ba == 0x7f800000u) {
		if (aa == 0u || ba == 0u || ca == 0x7f800000u && other != sign) return noNumber;
		return uintBitsToFloat(sign | 0x7f800000u);
	}
	if (ca == 0x7f800000u) return z;
	if (aa == 0u || ba == 0u) return ca != 0u ? z : uintBitsToFloat(sign & other);
	int ea, eb, e;
	uint ma = significand(aa, ea), mb = significand(ba, eb);
	uvec2 p, sum;
	umulExtended(ma, mb, p.x, p.y);
	e = ea + eb - 126; // the exponent of bit 62, once the leading one is there
	p = shiftLeft(p, 15);
	if (p.x < 0x40000000u) {
		p = shiftLeft(p, 1);
		e--;
	}
	sum = p;
	if (ca != 0u) {
		int ec;
		uvec2 q = uvec2(significand(ca, ec) << 7, 0u);
		if (e >= ec) {
			q = shiftRight(q, min(e - ec, 64));
		} else {
			p = shiftRight(p, min(ec - e, 64));
			e = ec;
		}
		if (sign == other) {
			uint carry;
			sum.y = uaddCarry(p.y, q.y, carry);
			sum.x = p.x + q.x + carry;
		} else {
			if (p.x < q.x || p.x == q.x && p.y < q.y) {
				uvec2 t = p;
				p = q;
				q = t;
				sign = other;
			}
			uint borrow;
			sum.y = usubBorrow(p.y, q.y, borrow);
			sum.x = p.x - q.x - borrow;
			if (sum == uvec2(0u)) return 0.0;
		}
	}
	// The leading one goes to bit 63, where it is worth 2^(e+1-127).
	int lead = sum.x != 0u ? 31 - findMSB(sum.x) : 63 - findMSB(sum.y);
	sum = shiftLeft(sum, lead);
	e += 1 - lead;
	if (e < 1) { // the result is subnormal
		sum = shiftRight(sum, min(1 - e, 64));
		e = 0;
	}
	uint m = sum.x >> 8, lost = sum.x & 0xffu;
	if (lost > 0x80u || lost == 0x80u && (sum.y != 0u || (m & 1u) == 1u)) m++;
	// Rounding up may carry into the exponent, also out of the subnormals.
	if (e > 0) m += uint(e - 1) << 23;
	return uintBitsToFloat(sign | min(m, 0x7f800000u));
}

// suspect reports whether r is so small, or NaN, that a flushed subnormal may be behind it: one that
// is added to 2^-100 or more makes no difference.
bool suspect(float r) {
	uint b = floatBitsToUint(r) & 0x7fffffffu;
	return b < 0x0d800000u || b > 0x7f800000u;
}

bool zero(float x) { return (floatBitsToUint(x) & 0x7fffffffu) == 0u; }

float add(float x, float y) {
	float r = x + y;
	return (mode & guarded) != 0u && suspect(r) && !(zero(x) && zero(y)) ? mad_(x, 1.0, y) : r;
}

float sub(float x, float y) {
	float r = x - y;
	return (mode & guarded) != 0u && suspect(r) && !(zero(x) && zero(y)) ? mad_(y, -1.0, x) : r;
}

float mul(float x, float y) {
	float r = x * y;
	return (mode & guarded) != 0u && suspect(r) && !zero(x) && !zero(y) ? mad_(x, y, -0.0) : r;
}

// less reports whether x < y.
bool less(float x, float y) {
	if ((mode & guarded) == 0u) return x < y;
	uint a = floatBitsToUint(x), b = floatBitsToUint(y);
	if ((a & 0x7fffffffu) > 0x7f800000u || (b & 0x7fffffffu) > 0x7f800000u) return false;
	int i = int(a & 0x7fffffffu), j = int(b & 0x7fffffffu);
	return ((a >> 31) != 0u ? -i : i) < ((b >> 31) != 0u ? -j : j);
}

float power2(int n) { return uintBitsToFloat(uint(n + 127) << 23); } // -126 <= n <= 127

// exp_ is exact.Exp, with the constants of exp.go. Only its last product can be a subnormal that makes a
// difference: before it, whatever is subnormal is added to something that is 2^24 times larger.
float exp_(float x) {
	x = less(x, -104.0) ? -104.0 : x;
	x = less(89.0, x) ? 89.0 : x;
	float t = x * uintBitsToFloat(0x3fb8aa3bu) + 12582912.0;
	float n = t - 12582912.0;
	float r = x - n * uintBitsToFloat(0x3f317200u);
	r = r - n * uintBitsToFloat(0x35bfbe8eu);
	float q = r * uintBitsToFloat(0x3ab51224u) + uintBitsToFloat(0x3c091cebu);
	q = q * r + uintBitsToFloat(0x3d2aac79u);
	q = q * r + uintBitsToFloat(0x3e2aaa49u);
	q = q * r + uintBitsToFloat(0x3efffffeu);
	q = (q * r) * r + r;
	q = q + 1.0;
	int i = int(floatBitsToUint(t) - 0x4b400000u);
	return mul(q * power2(i >> 1), power2(i - (i >> 1)));
}

// normal splits |x|, finite and not 0, into a float in [1, 2) and an exponent, in integers, so that a driver that flushes subnormals does no harm.
float normal(uint bits, out int exponent) {
	bits &= 0x7fffffffu;
	if (bits < 0x00800000u) {
		int shift = 23 - findMSB(bits);
		exponent = -126 - shift;
		return uintBitsToFloat(0x3f800000u | (bits << shift) & 0x007fffffu);
	}
	exponent = int(bits >> 23) - 127;
	return uintBitsToFloat(0x3f800000u | bits & 0x007fffffu);
}

// assemble rounds q*2^exponent to a float, q in [1, 2); side is 1 if the exact value lies above q, -1 if below, and 0 if it is q.
float assemble(uint sign, uint q, int exponent, int side) {
	uint m = q & 0x007fffffu | 0x00800000u;
	if (exponent > 127) return uintBitsToFloat(sign | 0x7f800000u);
	if (exponent >= -126) return uintBitsToFloat(sign | uint(exponent + 127) << 23 | m & 0x007fffffu);
	int shift = -126 - exponent; // number of bits that are lost
	if (shift > 25) return uintBitsToFloat(sign);
	uint wide = (m << 2) + uint(side); // two more bits hold what is known of the exact value
	uint kept = wide >> (shift + 2), lost = wide & ((1u << (shift + 2)) - 1u), tie = 1u << (shift + 1);
	if (lost > tie || lost == tie && (kept & 1u) == 1u) kept++;
	return uintBitsToFloat(sign | kept);
}

// div_ is a/b correctly rounded. Vulkan lets a driver's own division be off by 2.5 ulp, so that is
// only where the search begins; the remainder is found in integers, modulo 2^32.
float div_(float a, float b) {
	uint ab = floatBitsToUint(a), bb = floatBitsToUint(b), sign = (ab ^ bb) & 0x80000000u;
	uint am = ab & 0x7fffffffu, bm = bb & 0x7fffffffu;
	if (am > 0x7f800000u || bm > 0x7f800000u) return noNumber;
	if (am == 0x7f800000u) return bm == 0x7f800000u ? noNumber : uintBitsToFloat(sign | 0x7f800000u);
	if (bm == 0u) return am == 0u ? noNumber : uintBitsToFloat(sign | 0x7f800000u);
	if (am == 0u || bm == 0x7f800000u) return uintBitsToFloat(sign);
	int ea, eb;
	float x = normal(ab, ea), y = normal(bb, eb);
	if (x < y) { // the quotient shall be in [1, 2)
		x = uintBitsToFloat(floatBitsToUint(x) + 0x00800000u);
		ea--;
	}
	// x = xi*2^-23 or xi*2^-22, so xi is doubled for the latter; y = yi*2^-23, the quotient q*2^-23.
	uint xi = (floatBitsToUint(x) & 0x007fffffu | 0x00800000u) << (floatBitsToUint(x) >= 0x40000000u ? 1 : 0);
	uint yi = floatBitsToUint(y) & 0x007fffffu | 0x00800000u;
	uint q = clamp(floatBitsToUint(x / y), 0x3f800000u, 0x3fffffffu) & 0x007fffffu | 0x00800000u;
	int rest = int((xi << 23) - q * yi), d = int(yi);
	for (int i = 0; i < 4; i++) { // a tie cannot be: the quotient of two significands has none
		if (2 * rest > d && q < 0x00ffffffu) {
			q++;
			rest -= d;
		} else if (2 * rest < -d && q > 0x00800000u) {
			q--;
			rest += d;
		}
	}
	return assemble(sign, q, ea - eb, rest > 0 ? 1 : rest < 0 ? -1 : 0);
}

// exceeds reports whether m*odd^2 > limit*2^64, where equality cannot be.
bool exceeds(uint m, uint odd, uint limit) {
	uint high, low, high0, low0, high1, low1, carry;
	umulExtended(odd, odd, high, low);
	umulExtended(low, m, high0, low0);
	umulExtended(high, m, high1, low1);
	uaddCarry(low1, high0, carry);
	return high1 + carry >= limit;
}

// rsqrt_ is exact.Rsqrt: 1/sqrt(x) in binary64, rounded to binary32. A test of all significands shows that this is 1/sqrt(x) correctly rounded, which
// is found here in integers: Q*2^-24 is too large by more than half an ulp if m*(2Q-1)^2 > 2^50.
float rsqrt_(float x) {
	uint b = floatBitsToUint(x);
	if ((b & 0x7fffffffu) == 0u) return uintBitsToFloat(b & 0x80000000u | 0x7f800000u);
	if (b > 0x7f800000u) return noNumber;
	if (b == 0x7f800000u) return 0.0;
	int e;
	float f = normal(b, e);
	bool odd = (e & 1) != 0;
	if (odd) {
		f = uintBitsToFloat(floatBitsToUint(f) + 0x00800000u); // in [2, 4)
		e--;
	}
	if (f == 1.0) return power2(-e / 2);
	uint m = floatBitsToUint(f) & 0x007fffffu | 0x00800000u, limit = odd ? 256u : 512u; // f = m*2^-22 or m*2^-23; 2^72 or 2^73
	uint q = clamp(floatBitsToUint(inversesqrt(f)), 0x3f000000u, 0x3f7fffffu) & 0x007fffffu | 0x00800000u;
	for (int i = 0; i < 4; i++) {
		if (exceeds(m, 2u * q - 1u, limit)) q--;
		else if (!exceeds(m, 2u * q + 1u, limit)) q++;
	}
	return uintBitsToFloat(uint(126 - e / 2) << 23 | q & 0x007fffffu);
}

// sigmoid_ is exact.Sigmoid. 1 + e is 1 for a subnormal e, flushed or not.
float sigmoid_(float x) {
	float e = exp_(uintBitsToFloat(floatBitsToUint(x) | 0x80000000u));
	return div_(less(x, 0.0) ? e : 1.0, 1.0 + e);
}
