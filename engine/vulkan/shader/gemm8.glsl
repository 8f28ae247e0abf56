#extension GL_EXT_control_flow_attributes : require
#include "exact.glsl"

// C = A*Bᵀ or C += A*Bᵀ as exact8.Gemm, of what quantize made of A (m, k) and B (n, k): each element is one chain over the blocks of k, c = fma(sum of
// the products of bytes, 2^(ea+eb-266), c).
//
// The sum of bytes has 20 bits and the scale is a power of two, so their product is exact, and it makes no difference whether the device fuses it with
// the sum. Two cases are left to hard: products that may overflow, and, where the device flushes subnormals, a C that is so small that a sum may be one.
// All products are multiples of 2^-124, so a chain that begins with a multiple of 2^-126 has only such sums.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint each_ = 4u; // rows of an invocation, 4 or 8; it has 4 columns
layout(push_constant, scalar) uniform Args {
	Words a, ea, b, eb;
	Out c;
	Flags unsafe; // of each tile of gemm8_matrix
	uint m, n, blocks, ldc, acc, first, end; // of the blocks, those that are multiplied
	uint tile; // 0, or rows and columns of the tiles, of which only those are computed whose flag is set
};

const uint depth = 2u; // blocks at a time
const uint words = 8u * depth;
const uint high = 16u * each_; // of the tile
const uint wide = 64u;
shared uvec4 at[words][high / 4u + 1u];
shared uvec4 bt[words][wide / 4u + 1u];
shared uvec4 xe[depth][high / 4u];
shared uvec4 ye[depth][wide / 4u];

const uint most = 373u; // the greatest ea+eb of products that cannot overflow

float hard(int dot_, uint e, float c) {
	if (e >= 1024u) return noNumber;
	float d = float(dot_);
	if ((mode & guarded) != 0u) return mad_(d, uintBitsToFloat((e - 139u) << 23), c);
	if (e <= most || dot_ == 0) return c + d * uintBitsToFloat((min(e, most) - 139u) << 23);
	// What is lost of a small c is less than half a unit of d, which is exact.
	return (c * power2(-24) + d * uintBitsToFloat((e - 163u) << 23)) * power2(24);
}

// integer is a float that shows an integer of 22 bits in its lowest bits: 1.5*2^23.
const uint integer = 0x4b400000u;

float sum[each_][4];
bool small = false;

// place is the row of the tile that an invocation's number i is.
uint place(uint first, uint i) { return first * 4u + i / 4u * 64u + i % 4u; }

// multiply adds the products of a block.
void multiply(uint q, uint ti, uint tj) {
	int dots[each_][4];
	[[unroll]] for (uint i = 0u; i < each_; i++)
		[[unroll]] for (uint j = 0u; j < 4u; j++) dots[i][j] = int(integer);
	[[unroll]] for (uint w = 0u; w < 8u; w++) {
		uvec4 y = bt[8u * q + w][tj];
		[[unroll]] for (uint i = 0u; i < each_; i += 4u) {
			uvec4 x = at[8u * q + w][ti + 4u * i];
			[[unroll]] for (uint e = 0u; e < 4u; e++)
				[[unroll]] for (uint j = 0u; j < 4u; j++) dots[i + e][j] += dot4(x[e], y[j]);
		}
	}
	uvec4 y = ye[q][tj];
	uint my = max(max(y.x, y.y), max(y.z, y.w));
	[[unroll]] for (uint i = 0u; i < each_; i += 4u) {
		uvec4 x = xe[q][ti + 4u * i];
		bool easy = !small && max(max(x.x, x.y), max(x.z, x.w)) + my <= most;
		[[unroll]] for (uint e = 0u; e < 4u; e++)
			[[unroll]] for (uint j = 0u; j < 4u; j++) {
				int d = dots[i + e][j];
				if (easy) sum[i + e][j] += (intBitsToFloat(d) - 12582912.0) * uintBitsToFloat((x[e] + y[j] - 139u) << 23);
				else sum[i + e][j] = hard(d - int(integer), x[e] + y[j], sum[i + e][j]);
			}
	}
}

void main() {
	uint row = gl_WorkGroupID.y * high, col = gl_WorkGroupID.x * wide, id = gl_LocalInvocationIndex, ti = id / 16u, tj = id % 16u;
	if (tile != 0u && unsafe.at[row / tile * ((n + tile - 1u) / tile) + col / tile] == 0u) return;
	[[unroll]] for (uint i = 0u; i < each_; i++)
		[[unroll]] for (uint j = 0u; j < 4u; j++) {
			uint r = row + place(ti, i), q = col + 4u * tj + j;
			sum[i][j] = acc != 0u && r < m && q < n ? c.at[r * ldc + q] : 0.0;
			uint bits = floatBitsToUint(sum[i][j]) & 0x7fffffffu;
			small = small || (mode & guarded) != 0u && bits != 0u && bits < 24u << 23;
		}
	uint i0 = id / words, w0 = id % words, av[each_], bv[4], ae, be;
	for (uint p = first; p < end + depth; p += depth) {
		if (p > first) {
			barrier();
			[[unroll]] for (uint l = 0u; l < each_; l++) at[w0][(i0 + 16u * l) / 4u][i0 % 4u] = av[l];
			[[unroll]] for (uint l = 0u; l < 4u; l++) bt[w0][(i0 + 16u * l) / 4u][i0 % 4u] = bv[l];
			if (id < depth * high) xe[id % depth][id / depth / 4u][id / depth % 4u] = ae;
			if (id < depth * wide) ye[id % depth][id / depth / 4u][id / depth % 4u] = be;
			barrier();
		}
		if (p < end) { // what is beyond an edge is not used
			uint w = min(8u * p + w0, 8u * end - 1u), e = min(p + id % depth, end - 1u);
			[[unroll]] for (uint l = 0u; l < each_; l++) av[l] = a.at[min(row + i0 + 16u * l, m - 1u) * blocks * 8u + w];
			[[unroll]] for (uint l = 0u; l < 4u; l++) bv[l] = b.at[min(col + i0 + 16u * l, n - 1u) * blocks * 8u + w];
			ae = ea.at[min(row + id / depth, m - 1u) * blocks + e];
			be = eb.at[min(col + id / depth, n - 1u) * blocks + e];
		}
		if (p == first) continue;
		[[unroll]] for (uint q = 0u; q < depth; q++)
			if (p - depth + q < end) multiply(q, ti, tj);
	}
	[[unroll]] for (uint i = 0u; i < each_; i++)
		[[unroll]] for (uint j = 0u; j < 4u; j++) {
			uint r = row + place(ti, i), q = col + 4u * tj + j;
			if (r < m && q < n) c.at[r * ldc + q] = sum[i][j];
		}
}
