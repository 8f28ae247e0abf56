#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "gemm_args.glsl"

// The fast kernel: a workgroup computes a square tile, an invocation 8 by 8 elements in squares of 4 by 4, from
// tiles of A and B in shared memory. The next tiles are on their way meanwhile.
//
// Where the device flushes subnormals, the least exponents of the tiles decide whether one can have occurred.
// All products are multiples of 2^(a + b - 46), a and b being the least exponents, and so are all sums,
// rounded or not. If that is 2^-126 or more, and no factor is subnormal, no sum is subnormal. Otherwise
// the tile is computed again with factors 2^32 times as large. That is exact: a sum that is not subnormal without
// the scale is rounded alike with it. Each sum is looked at; if one is so small that it would be subnormal, or
// not finite, the tile is left to gemm_soft.
layout(local_size_x_id = 1) in; // side * side
layout(constant_id = 0) const uint side = 8u;
layout(constant_id = 2) const bool scaled = false; // only tiles whose flag is set

const uint each_ = 8u; // rows, and columns, of an invocation
const uint wide = side * each_;
const uint threads = side * side;
const uint depth = 16u;
const uint loads = wide * depth / threads;
const bool guard = (mode & guarded) != 0u;
shared vec4 at[depth][wide / 4u + 1u];
shared vec4 bt[depth][wide / 4u + 1u];
shared uint least[3]; // magnitudes of A, B and C

// magnitude orders numbers by their size, zeros last.
uint magnitude(float x) { return (floatBitsToUint(x) << 1) - 1u; }

// exponent is that of a magnitude, biased; 255 for zeros.
uint exponent(uint m) { return m == 0xffffffffu ? 255u : (m + 1u) >> 24; }

// place is the row or column of the tile that an invocation's number i is.
uint place(uint first, uint i) { return first * 4u + i / 4u * (4u * side) + i % 4u; }

const float scale = 4294967296.0, unscale = 1.0 / 4294967296.0;

// up is x times the scale, exactly: the device would flush a subnormal.
float up(float x) {
	uint b = floatBitsToUint(x) & 0x7fffffffu;
	if (b >= 0x00800000u) return x * scale;
	float y = float(b) * uintBitsToFloat(10u << 23); // 2^-117
	return uintBitsToFloat(floatBitsToUint(y) | floatBitsToUint(x) & 0x80000000u);
}

float sum[each_][each_];
uint smallest = 0xffffffffu; // magnitude of a sum, if scaled

// multiply adds the products of column q of A's tile and row q of B's.
void multiply(uint q, uint ti, uint tj) {
	float x[each_], y[each_];
	[[unroll]] for (uint i = 0u; i < each_; i += 4u) {
		vec4 v = at[q][ti + side * i / 4u], w = bt[q][tj + side * i / 4u];
		x[i] = v.x; x[i + 1u] = v.y; x[i + 2u] = v.z; x[i + 3u] = v.w;
		y[i] = w.x; y[i + 1u] = w.y; y[i + 2u] = w.z; y[i + 3u] = w.w;
	}
	[[unroll]] for (uint i = 0u; i < each_; i++)
		[[unroll]] for (uint j = 0u; j < each_; j++) {
			sum[i][j] = fma(x[i], y[j], sum[i][j]);
			if (scaled) smallest = min(smallest, magnitude(sum[i][j]));
		}
}

// What an invocation reads of the tiles: element (ai + l*an, aq + l*am) of A's, and (bq + l*bm, bj + l*bn) of B's.
// Neighbours read what is side by side in memory.
const uint lines = threads / wide, rows = threads / depth;
uint ai, aq, an, am, bj, bq, bn, bm, a0, b0, row, col;
uint a1, b1, astep, bstep; // the first of them, and the steps from one to the next
bool inside;
float av[loads], bv[loads];

// load reads the tiles that begin with column p of A.
void load(uint p, uint to) {
	if (inside && p + depth <= to) {
		uint i = a1 + p * acs, j = b1 + p * brs;
		[[unroll]] for (uint l = 0u; l < loads; l++) {
			av[l] = a.at[i + l * astep];
			bv[l] = b.at[j + l * bstep];
		}
		return;
	}
	[[unroll]] for (uint l = 0u; l < loads; l++) {
		av[l] = a.at[a0 + min(row + ai + l * an, m - 1u) * ars + min(p + aq + l * am, to - 1u) * acs];
		bv[l] = b.at[b0 + min(p + bq + l * bm, to - 1u) * brs + min(col + bj + l * bn, n - 1u) * bcs];
	}
}

void main() {
	uint id = gl_LocalInvocationIndex, z = gl_WorkGroupID.z, s = z / heads, h = z % heads, c0 = s * cs + h * ch, from, to;
	uint flag = (z * gl_NumWorkGroups.y + gl_WorkGroupID.y) * gl_NumWorkGroups.x + gl_WorkGroupID.x;
	a0 = s * as + h * ah;
	b0 = s * bs + h / each * bh;
	row = gl_WorkGroupID.y * wide;
	col = gl_WorkGroupID.x * wide;
	if (scaled && unsafe.at[flag] == 0u) return;
	if (!scaled && guard && id == 0u) unsafe.at[flag] = 0u;
	if (bounds(row, wide, col, from, to)) return;
	if (guard && id < 3u) least[id] = 0xffffffffu;
	if (guard) barrier();
	uint la = 0xffffffffu, lb = la, lc = la;
	// Each 32 invocations have 4 by 8 parts of the tile, so that they read little of shared memory at a time.
	uint ti = id % 32u / 8u + id / 32u / (side / 8u) * 4u, tj = id % 8u + id / 32u % (side / 8u) * 8u;
	// What is beyond an edge is computed as what is at the edge, and left there.
	[[unroll]] for (uint i = 0u; i < each_; i++)
		[[unroll]] for (uint j = 0u; j < each_; j++) {
			uint r = min(row + place(ti, i), m - 1u), q = min(col + place(tj, j), n - 1u);
			sum[i][j] = acc != 0u ? c.at[c0 + r * ldc + q] : 0.0;
			if (scaled) sum[i][j] = up(up(sum[i][j]));
			if (guard) lc = min(lc, magnitude(sum[i][j]));
		}
	bool along = acs == 1u; // a row of A is side by side in memory
	ai = along ? id / depth : id % wide;
	aq = along ? id % depth : id / wide;
	an = along ? rows : 0u;
	am = along ? 0u : lines;
	along = brs == 1u;
	bj = along ? id / depth : id % wide;
	bq = along ? id % depth : id / wide;
	bn = along ? rows : 0u;
	bm = along ? 0u : lines;
	inside = row + wide <= m && col + wide <= n;
	a1 = a0 + (row + ai) * ars + aq * acs;
	b1 = b0 + bq * brs + (col + bj) * bcs;
	astep = an * ars + am * acs;
	bstep = bm * brs + bn * bcs;
	if (from < to) load(from, to);
	for (uint p = from; p < to; p += depth) {
		barrier();
		[[unroll]] for (uint l = 0u; l < loads; l++) {
			uint i = ai + l * an, j = bj + l * bn;
			at[aq + l * am][i / 4u][i % 4u] = scaled ? up(av[l]) : av[l];
			bt[bq + l * bm][j / 4u][j % 4u] = scaled ? up(bv[l]) : bv[l];
			if (guard && !scaled) {
				la = min(la, magnitude(av[l]));
				lb = min(lb, magnitude(bv[l]));
			}
		}
		barrier();
		if (p + depth < to) load(p + depth, to);
		if (p + depth <= to)
			[[unroll]] for (uint q = 0u; q < depth; q++) multiply(q, ti, tj);
		else
			[[dont_unroll]] for (uint q = 0u; q < to - p; q++) multiply(q, ti, tj);
	}
	if (scaled) {
		lc = min(lc, smallest);
		[[unroll]] for (uint i = 0u; i < each_; i++)
			[[unroll]] for (uint j = 0u; j < each_; j++) {
				if (exponent(magnitude(sum[i][j])) == 255u && floatBitsToUint(sum[i][j]) << 1 != 0u) lc = 0u; // not finite
				sum[i][j] = sum[i][j] * unscale * unscale;
			}
	}
	if (guard) {
		atomicMin(least[0], la);
		atomicMin(least[1], lb);
		atomicMin(least[2], lc);
		barrier();
		uint ea = exponent(least[0]), eb = exponent(least[1]), ec = exponent(least[2]);
		bool wrong = scaled ? ec <= 64u : ea + eb < 174u || ec < 24u || ea == 0u || eb == 0u;
		if (id == 0u) unsafe.at[flag] = wrong ? 1u : 0u;
		if (wrong) return;
	}
	[[unroll]] for (uint i = 0u; i < each_; i++)
		[[unroll]] for (uint j = 0u; j < each_; j++) {
			uint r = row + place(ti, i), q = col + place(tj, j);
			if (r < m && q < n) c.at[c0 + r * ldc + q] = sum[i][j];
		}
}
