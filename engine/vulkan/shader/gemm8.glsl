#include "exact.glsl"

// C = A*Bᵀ or C += A*Bᵀ as exact8.Gemm, of what quantize made of A (m, k) and B (n, k): each element is one chain over the blocks of k, c = fma(sum of
// the products of bytes, 2^(ea+eb-266), c).
//
// The sum of bytes has 20 bits and the scale is a power of two, so their product is exact, and it makes no difference whether the device fuses it with
// the sum. Two cases are left to hard: products that may overflow, and, where the device flushes subnormals, a C that is so small that a sum may be one.
// All products are multiples of 2^-124, so a chain that begins with a multiple of 2^-126 has only such sums.
layout(local_size_x = 256) in;
layout(constant_id = 0) const uint each_ = 4u;
layout(push_constant, scalar) uniform Args {
	Words a, ea, b, eb;
	Out c;
	uint m, n, blocks, ldc, acc, first, end; // of the blocks, those that are multiplied
};

const uint depth = 2u; // blocks at a time
const uint wide = 16u * each_;
shared uint at[8u * depth][wide + 1u];
shared uint bt[8u * depth][wide + 1u];
shared uint xe[depth][wide];
shared uint ye[depth][wide];

const uint most = 373u; // the greatest ea+eb of products that cannot overflow

float hard(int dot_, uint e, float c) {
	if (e >= 1024u) return noNumber;
	float d = float(dot_);
	if ((mode & guarded) != 0u) return mad_(d, uintBitsToFloat((e - 139u) << 23), c);
	if (e <= most || dot_ == 0) return c + d * uintBitsToFloat((min(e, most) - 139u) << 23);
	// What is lost of a small c is less than half a unit of d, which is exact.
	return (c * power2(-24) + d * uintBitsToFloat((e - 163u) << 23)) * power2(24);
}

void main() {
	uint row = gl_WorkGroupID.y * wide, col = gl_WorkGroupID.x * wide, id = gl_LocalInvocationIndex, ti = id / 16u * each_, tj = id % 16u;
	float sum[each_][each_];
	bool small = false;
	for (uint i = 0u; i < each_; i++)
		for (uint j = 0u; j < each_; j++) {
			uint r = row + ti + i, q = col + tj + 16u * j;
			sum[i][j] = acc != 0u && r < m && q < n ? c.at[r * ldc + q] : 0.0;
			uint bits = floatBitsToUint(sum[i][j]) & 0x7fffffffu;
			small = small || (mode & guarded) != 0u && bits != 0u && bits < 24u << 23;
		}
	for (uint p = first; p < end; p += depth) {
		uint d = min(depth, end - p);
		barrier();
		for (uint t = id; t < wide * 8u * depth; t += 256u) {
			uint i = t / (8u * depth), q = t % (8u * depth);
			at[q][i] = row + i < m && q < 8u * d ? a.at[((row + i) * blocks + p) * 8u + q] : 0u;
			bt[q][i] = col + i < n && q < 8u * d ? b.at[((col + i) * blocks + p) * 8u + q] : 0u;
		}
		for (uint t = id; t < wide * depth; t += 256u) {
			uint i = t / depth, q = t % depth;
			xe[q][i] = row + i < m && q < d ? ea.at[(row + i) * blocks + p + q] : 71u;
			ye[q][i] = col + i < n && q < d ? eb.at[(col + i) * blocks + p + q] : 71u;
		}
		barrier();
		for (uint q = 0u; q < d; q++) {
			int dots[each_][each_];
			for (uint i = 0u; i < each_; i++)
				for (uint j = 0u; j < each_; j++) dots[i][j] = 0;
			for (uint w = 8u * q; w < 8u * q + 8u; w++) {
				uint x[each_], y[each_];
				for (uint i = 0u; i < each_; i++) {
					x[i] = at[w][ti + i];
					y[i] = bt[w][tj + 16u * i];
				}
				for (uint i = 0u; i < each_; i++)
					for (uint j = 0u; j < each_; j++) dots[i][j] += dot4(x[i], y[j]);
			}
			uint x[each_], y[each_], mx = 0u, my = 0u;
			for (uint i = 0u; i < each_; i++) {
				x[i] = xe[q][ti + i];
				y[i] = ye[q][tj + 16u * i];
				mx = max(mx, x[i]);
				my = max(my, y[i]);
			}
			bool easy = !small && mx + my <= most;
			for (uint i = 0u; i < each_; i++)
				for (uint j = 0u; j < each_; j++)
					sum[i][j] = easy ? sum[i][j] + float(dots[i][j]) * uintBitsToFloat((x[i] + y[j] - 139u) << 23) : hard(dots[i][j], x[i] + y[j], sum[i][j]);
		}
	}
	for (uint i = 0u; i < each_; i++)
		for (uint j = 0u; j < each_; j++) {
			uint r = row + ti + i, q = col + tj + 16u * j;
			if (r < m && q < n) c.at[r * ldc + q] = sum[i][j];
		}
}
