#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// The leaves of merkle: SHA-256 of a zero byte and 65536 floats, little-endian, or what is left of them. The floats are in parts: of each its address, in
// two words, and the number of the first float behind it. Words of a hash are those of FIPS 180-4. A dispatch
// takes the blocks [first, first+most) of each leaf: lavapipe ends all loops of an invocation after 65535 iterations, without an error.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Words parts; Flags out_; uint n, leaves, first, most; };

const uint chunk = 65536u;

const uint k[64] = uint[64](
	0x428a2f98u, 0x71374491u, 0xb5c0fbcfu, 0xe9b5dba5u, 0x3956c25bu, 0x59f111f1u, 0x923f82a4u, 0xab1c5ed5u,
	0xd807aa98u, 0x12835b01u, 0x243185beu, 0x550c7dc3u, 0x72be5d74u, 0x80deb1feu, 0x9bdc06a7u, 0xc19bf174u,
	0xe49b69c1u, 0xefbe4786u, 0x0fc19dc6u, 0x240ca1ccu, 0x2de92c6fu, 0x4a7484aau, 0x5cb0a9dcu, 0x76f988dau,
	0x983e5152u, 0xa831c66du, 0xb00327c8u, 0xbf597fc7u, 0xc6e00bf3u, 0xd5a79147u, 0x06ca6351u, 0x14292967u,
	0x27b70a85u, 0x2e1b2138u, 0x4d2c6dfcu, 0x53380d13u, 0x650a7354u, 0x766a0abbu, 0x81c2c92eu, 0x92722c85u,
	0xa2bfe8a1u, 0xa81a664bu, 0xc24b8b70u, 0xc76c51a3u, 0xd192e819u, 0xd6990624u, 0xf40e3585u, 0x106aa070u,
	0x19a4c116u, 0x1e376c08u, 0x2748774cu, 0x34b0bcb5u, 0x391c0cb3u, 0x4ed8aa4au, 0x5b9cca4fu, 0x682e6ff3u,
	0x748f82eeu, 0x78a5636fu, 0x84c87814u, 0x8cc70208u, 0x90befffau, 0xa4506cebu, 0xbef9a3f7u, 0xc67178f2u);

uint turn(uint x, int n) { return x >> n | x << (32 - n); }

void main() {
	uint leaf = group() * 64u + gl_LocalInvocationIndex;
	if (leaf >= leaves) return;
	// A byte, 4*words bytes, 0x80, and the length in bits in 8 bytes.
	uint start = leaf * chunk, words = min(n, start + chunk) - start, blocks = (4u * words + 10u + 63u) / 64u;
	if (first >= blocks) return;
	uint at = start + 16u * first, part = 0u, from = 0u, look = min(first > 0u ? at - 1u : at, n - 1u);
	while (parts.at[3u * part + 2u] <= look) from = parts.at[3u * part++ + 2u];
	Words data = Words(uvec2(parts.at[3u * part], parts.at[3u * part + 1u]));
	uint next = parts.at[3u * part + 2u];
	uint carry = first > 0u ? data.at[look - from] & 0xff000000u : 0u; // the byte of the float before that begins a word of the message
	uint h[8] = uint[8](0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u);
	if (first > 0u)
		for (uint i = 0u; i < 8u; i++) h[i] = out_.at[8u * leaf + i];
	for (uint b = first; b < min(blocks, first + most); b++) {
		uint w[16];
		for (uint i = 0u; i < 16u; i++) {
			uint m = 16u * b + i;
			if (m < words) {
				if (at >= next) {
					from = next;
					part++;
					data = Words(uvec2(parts.at[3u * part], parts.at[3u * part + 1u]));
					next = parts.at[3u * part + 2u];
				}
				uint v = data.at[at - from];
				at++;
				w[i] = carry | (v & 0xffu) << 16 | v & 0xff00u | v >> 16 & 0xffu;
				carry = v & 0xff000000u;
			} else {
				w[i] = m == words ? carry | 0x00800000u : m == 16u * blocks - 1u ? 32u * words + 8u : 0u;
			}
		}
		uint s[8] = h;
		for (uint i = 0u; i < 64u; i++) {
			if (i >= 16u) {
				uint x = w[(i + 1u) & 15u], y = w[(i + 14u) & 15u];
				w[i & 15u] += (turn(x, 7) ^ turn(x, 18) ^ x >> 3) + w[(i + 9u) & 15u] + (turn(y, 17) ^ turn(y, 19) ^ y >> 10);
			}
			uint t = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + (s[4] & s[5] ^ ~s[4] & s[6]) + k[i] + w[i & 15u];
			uint u = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + (s[0] & s[1] ^ s[0] & s[2] ^ s[1] & s[2]);
			s[7] = s[6];
			s[6] = s[5];
			s[5] = s[4];
			s[4] = s[3] + t;
			s[3] = s[2];
			s[2] = s[1];
			s[1] = s[0];
			s[0] = t + u;
		}
		for (uint i = 0u; i < 8u; i++) h[i] += s[i];
	}
	for (uint i = 0u; i < 8u; i++) out_.at[8u * leaf + i] = h[i];
}
