#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Picks the k largest magnitudes of each block of size numbers: of equal ones the lower position, and zeros never. It sets them to +0, or with keep set
// leaves them and writes them to values, one for each pick; and it writes
// position and sign of each, ascending, two to a word, each*2 for a block; what is left is 0xffff. Magnitudes are compared as their bits.
layout(local_size_x = 256) in;
layout(push_constant, scalar) uniform Args { Flags state, picks, values; uint size, k, each, columns, across, rowStride, blocks, keep; };

shared uint count, places[256], picked[64];

uint magnitude(uint i) { return state.at[i] & 0x7fffffffu; }

void main() {
	uint g = group(), id = gl_LocalInvocationIndex;
	if (g >= blocks) return;
	uint i = g / columns, j = g % columns, base = i * rowStride + j * size, part = (size + 255u) / 256u, from = min(id * part, size), to = min(from + part, size);
	// The greatest bound that k reach, or 1.
	uint bound = 0u, above = 0u; // how many are above the bound, once it is found
	for (int bit = 30; bit >= 0; bit--) {
		uint higher = bound | 1u << bit, mine = 0u;
		if (id == 0u) count = 0u;
		barrier();
		for (uint p = from; p < to; p++) mine += magnitude(base + p) >= higher ? 1u : 0u;
		if (mine > 0u) atomicAdd(count, mine);
		barrier();
		uint all = count;
		barrier();
		if (all >= k) bound = higher;
	}
	bound = max(bound, 1u);
	// How many are above, and at the bound, in the parts of the invocations before this one.
	uint mine = 0u;
	for (uint p = from; p < to; p++) {
		uint m = magnitude(base + p);
		mine += m > bound ? 0x10000u : m == bound ? 1u : 0u;
	}
	places[id] = mine;
	if (id < 64u) picked[id] = 0xffffu;
	barrier();
	for (uint step_ = 1u; step_ < 256u; step_ *= 2u) {
		uint v = id >= step_ ? places[id - step_] : 0u;
		barrier();
		places[id] += v;
		barrier();
	}
	uint left = k - min(k, places[255] >> 16), before = places[id] - mine, higher = before >> 16, equal = before & 0xffffu;
	for (uint p = from; p < to; p++) {
		uint v = state.at[base + p], m = v & 0x7fffffffu;
		if (m < bound || m == bound && equal >= left) continue;
		uint at = higher + min(equal, left);
		picked[at] = p | v >> 31 << 15;
		if (m > bound) higher++;
		else equal++;
		if (keep != 0u) values.at[(i * across + j) * each * 2u + at] = v;
		else state.at[base + p] = 0u;
	}
	barrier();
	if (id < each) picks.at[(i * across + j) * each + id] = picked[2u * id] | picked[2u * id + 1u] << 16;
}
