#version 460
#extension GL_GOOGLE_include_directive : require
#include "gemm_args.glsl"

// The kernel in integers: for devices whose fma rounds twice, and for the tiles that gemm leaves to it. A
// workgroup takes 16 rows of a tile. It computes so much for each element that it reads, that tiles in
// shared memory would gain nothing.
layout(local_size_x = 16, local_size_y = 16) in;
layout(constant_id = 0) const uint all = 0u; // 0: only tiles whose flag is set

void main() {
	uint z = gl_WorkGroupID.z, s = z / heads, h = z % heads;
	uint a0 = s * as + h * ah, b0 = s * bs + h / each * bh, c0 = s * cs + h * ch;
	uint row = gl_WorkGroupID.y * 16u, from, to;
	uint rows = (m + tile - 1u) / tile, columns = gl_NumWorkGroups.x;
	if (all == 0u && unsafe.at[(z * rows + row / tile) * columns + gl_WorkGroupID.x] == 0u) return;
	uint r = row + gl_LocalInvocationID.y, end = min((gl_WorkGroupID.x + 1u) * tile, n);
	if (r >= m) return;
	for (uint col = gl_WorkGroupID.x * tile; col < end; col += 16u) {
		if (bounds(row, 16u, col, from, to)) return;
		uint q = col + gl_LocalInvocationID.x;
		if (q >= end) return;
		float sum = acc != 0u ? c.at[c0 + r * ldc + q] : 0.0;
		uint i = a0 + r * ars, j = b0 + q * bcs;
		for (uint p = from; p < to; p++) sum = mad_(a.at[i + p * acs], b.at[j + p * brs], sum);
		c.at[c0 + r * ldc + q] = sum;
	}
}
