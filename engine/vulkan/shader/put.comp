#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds what is sent of each chunk of size numbers to x. Of a chunk there are `each` words of positions, two to a word, with bits 14 for a large value
// and 15 for a minus; then the small and the large magnitude, and how many positions there are.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Words sent; Out x; uint n, size, each; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= n) return;
	uint chunk = t / each, w = t % each, from = chunk * (each + 3u), word = sent.at[from + w], count = sent.at[from + each + 2u];
	for (uint i = 2u * w; i < min(count, 2u * w + 2u); i++, word >>= 16) {
		uint at = chunk * size + (word & 0x3fffu), value = sent.at[from + each + (word >> 14 & 1u)] ^ (word << 16 & 0x80000000u);
		x.at[at] = add(x.at[at], uintBitsToFloat(value));
	}
}
