#version 460
#extension GL_GOOGLE_include_directive : require
#include "gemm_args.glsl"

// The fast kernel: a workgroup computes a tile of 16*each_ by 16*each_ elements, an invocation each_ by
// each_, from tiles of A and B in shared memory. Neighbours have neighbouring columns, which are in
// different banks of that memory.
//
// Where the device flushes subnormals, the least exponents of the tiles decide whether one can occur.
// All products are multiples of 2^(a + b - 46), a and b being the least exponents, and so are all sums,
// rounded or not. If that is 2^-126 or more, and no factor is subnormal, no sum is subnormal. Otherwise
// the tile is left to gemm_soft.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint each_ = 4u;

const uint depth = 16u;
const uint wide = 16u * each_;
shared float at[depth][wide + 4u];
shared float bt[depth][wide + 4u];
shared uint least[3]; // exponents other than those of zeros, biased, of A, B and C

uint exponent(float x) {
	uint b = floatBitsToUint(x) & 0x7fffffffu;
	return b == 0u ? 255u : b >> 23;
}

void main() {
	uint z = gl_WorkGroupID.z, s = z / heads, h = z % heads;
	uint a0 = s * as + h * ah, b0 = s * bs + h / each * bh, c0 = s * cs + h * ch;
	uint row = gl_WorkGroupID.y * wide, col = gl_WorkGroupID.x * wide, from, to;
	uint flag = (z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
	uint id = gl_LocalInvocationIndex, ti = id / 16u * each_, tj = id % 16u;
	const bool guard = (mode & guarded) != 0u;
	if (guard && id == 0u) unsafe.at[flag] = 0u;
	if (bounds(row, wide, col, from, to)) return;
	if (guard && id < 3u) least[id] = 255u;
	if (guard) barrier();
	float sum[each_][each_];
	for (uint i = 0u; i < each_; i++)
		for (uint j = 0u; j < each_; j++) {
			uint r = row + ti + i, q = col + tj + 16u * j;
			sum[i][j] = acc != 0u && r < m && q < n ? c.at[c0 + r * ldc + q] : 0.0;
			if (guard) atomicMin(least[2], exponent(sum[i][j]));
		}
	for (uint p = from; p < to; p += depth) {
		uint d = min(depth, to - p);
		barrier();
		for (uint t = id; t < wide * depth; t += 256u) {
			// Neighbours read what is side by side in memory.
			uint i = acs == 1u ? t / depth : t % wide, q = acs == 1u ? t % depth : t / wide;
			float av = row + i < m && q < d ? a.at[a0 + (row + i) * ars + (p + q) * acs] : 0.0;
			at[q][i] = av;
			uint j = brs == 1u ? t / depth : t % wide;
			q = brs == 1u ? t % depth : t / wide;
			float bv = col + j < n && q < d ? b.at[b0 + (p + q) * brs + (col + j) * bcs] : 0.0;
			bt[q][j] = bv;
			if (guard) {
				atomicMin(least[0], exponent(av));
				atomicMin(least[1], exponent(bv));
			}
		}
		barrier();
		if (guard && (least[0] + least[1] < 174u || least[2] < 24u || least[0] == 0u || least[1] == 0u)) {
			if (id == 0u) unsafe.at[flag] = 1u;
			return;
		}
		for (uint q = 0u; q < d; q++) {
			float x[each_], y[each_];
			for (uint i = 0u; i < each_; i++) {
				x[i] = at[q][ti + i];
				y[i] = bt[q][tj + 16u * i];
			}
			for (uint i = 0u; i < each_; i++)
				for (uint j = 0u; j < each_; j++) sum[i][j] = fma(x[i], y[j], sum[i][j]);
		}
	}
	for (uint i = 0u; i < each_; i++)
		for (uint j = 0u; j < each_; j++) {
			uint r = row + ti + i, q = col + tj + 16u * j;
			if (r < m && q < n) c.at[c0 + r * ldc + q] = sum[i][j];
		}
}
