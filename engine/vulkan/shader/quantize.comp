#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Turns blocks of 32 elements along k of x (rows, k) into bytes and an exponent, as package exact8; a block also ends where `each` elements do.
// An invocation takes one block. Its bytes are 8 words, four to a word along k, and zeros behind the end. An exponent that stands for no number becomes
// 1024. The product with a power of two is exact, or so small that it is rounded to 0, whether the device flushes subnormals or not.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In x; Flags q, e; uint rows, k, xrs, xcs, each; };

void main() {
	uint parts = (each + 31u) / 32u, blocks = k / each * parts, t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= rows * blocks) return;
	// Neighbours read what is side by side in memory.
	uint r = xcs == 1u ? t / blocks : t % rows, block = xcs == 1u ? t % blocks : t / rows;
	uint from = block / parts * each + block % parts * 32u, n = min(32u, (block / parts + 1u) * each - from), base = r * xrs + from * xcs, at = r * blocks + block;
	float v[32];
	uint greatest = 0u;
	for (uint p = 0u; p < 32u; p++) {
		v[p] = p < n ? x.at[base + p * xcs] : 0.0;
		greatest = max(greatest, floatBitsToUint(v[p]) & 0x7fffffffu);
	}
	uint exponent = max(71u, (greatest + 0x10000u) >> 23);
	bool number = exponent <= 196u;
	e.at[at] = number ? exponent : 1024u;
	float factor = uintBitsToFloat((260u - min(exponent, 196u)) << 23);
	for (uint w = 0u; w < 8u; w++) {
		uint word = 0u;
		for (uint i = 0u; i < 4u; i++) {
			float y = (v[4u * w + i] * factor + 12582912.0) - 12582912.0; // to an integer, ties to even
			word |= (uint(int(y)) & 0xffu) << (8u * i);
		}
		q.at[8u * at + w] = number ? word : 0u;
	}
}
