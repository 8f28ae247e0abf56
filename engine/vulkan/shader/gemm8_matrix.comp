#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "exact.glsl"

// exact8.Gemm as gemm8 computes it, by the device's own products of small matrices (VK_KHR_cooperative_matrix): a block's products
// of bytes are added as integers, whose sum is exact in any order. Its product with the powers of two is exact, too, so the sum of
// a chain is rounded once for each block.
//
// A tile that holds what gemm8 computes otherwise is left to it: products that may overflow, exponents that stand for no number,
// and, where the device flushes subnormals, a C so small that a sum may be one.
layout(local_size_x_id = 1) in; // subgroups times their size
layout(constant_id = 0) const uint M = 16u; // of a small matrix: rows, columns and depth in bytes
layout(constant_id = 2) const uint N = 16u;
layout(constant_id = 3) const uint K = 32u;
layout(constant_id = 4) const uint down = 4u; // small matrices that a subgroup has, one below the other
layout(constant_id = 5) const uint across = 4u; // and side by side
layout(constant_id = 6) const uint groupsDown = 2u; // subgroups of the tile
layout(constant_id = 7) const uint groupsAcross = 2u;
layout(push_constant, scalar) uniform Args {
	Words a, ea, b, eb;
	Out c;
	Flags unsafe; // of each tile: 1 if it is left to gemm8
	uint m, n, blocks, ldc, acc, first, end; // of the blocks, those that are multiplied
};

const uint threads = gl_WorkGroupSize.x;
const uint depth = 2u; // blocks at a time
const uint high = groupsDown * down * M, wide = groupsAcross * across * N;
const uint stride = 4u * depth + 2u; // pairs of words of a row in shared memory: rows begin in different banks
const uint loadsA = high * 4u * depth / threads, loadsB = wide * 4u * depth / threads;
layout(buffer_reference, scalar, buffer_reference_align = 8) readonly buffer Pairs { uvec2 at[]; };
shared uvec2 at[high * stride];
shared uvec2 bt[wide * stride];
shared float xe[depth * high]; // 2^(e-133)
shared float ye[depth * wide];
shared int places[M * N];
shared uint greatest[2]; // exponents of A and B
shared uint wrong;

const uint most = 373u; // the greatest ea+eb of products that cannot overflow
const float integer = 12582912.0; // 1.5*2^23: it shows an integer of 22 bits in its lowest bits
#define Sums coopmat<int, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>

void main() {
	uint id = gl_LocalInvocationIndex, row = gl_WorkGroupID.y * high, col = gl_WorkGroupID.x * wide;
	uint flag = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
	uint top = gl_SubgroupID / groupsAcross * down * M, left = gl_SubgroupID % groupsAcross * across * N;
	if (id < 2u) greatest[id] = 0u;
	if (id == 0u) wrong = 0u;
	for (uint i = id; i < M * N; i += threads) places[i] = int(i);
	barrier();
	// Which elements an invocation has is the driver's affair: it reads which.
	Sums place;
	coopMatLoad(place, places, 0u, N, gl_CooperativeMatrixLayoutRowMajor);
	Sums sums[down * across]; // the bits of floats
	bool hard = false;
	[[unroll]] for (uint i = 0u; i < down; i++)
		[[unroll]] for (uint j = 0u; j < across; j++)
			[[unroll]] for (uint e = 0u; e < place.length(); e++) {
				uint r = row + top + i * M + uint(place[e]) / N, q = col + left + j * N + uint(place[e]) % N;
				float v = acc != 0u ? c.at[min(r, m - 1u) * ldc + min(q, n - 1u)] : 0.0;
				uint bits = floatBitsToUint(v) & 0x7fffffffu;
				hard = hard || (mode & guarded) != 0u && bits != 0u && bits < 24u << 23;
				sums[i * across + j][e] = floatBitsToInt(v);
			}
	Pairs a2 = Pairs(uvec2(a)), b2 = Pairs(uvec2(b));
	uint mostA = 0u, mostB = 0u, e0 = id % depth;
	uvec2 av[loadsA], bv[loadsB];
	for (uint p = first; p < end; p += depth) {
		// What is beyond an edge is not used.
		[[unroll]] for (uint l = 0u; l < loadsA; l++) {
			uint t = id + l * threads, w = min(4u * p + t % (4u * depth), 4u * end - 1u);
			av[l] = a2.at[min(row + t / (4u * depth), m - 1u) * blocks * 4u + w];
		}
		[[unroll]] for (uint l = 0u; l < loadsB; l++) {
			uint t = id + l * threads, w = min(4u * p + t % (4u * depth), 4u * end - 1u);
			bv[l] = b2.at[min(col + t / (4u * depth), n - 1u) * blocks * 4u + w];
		}
		barrier();
		[[unroll]] for (uint l = 0u; l < loadsA; l++) {
			uint t = id + l * threads;
			at[t / (4u * depth) * stride + t % (4u * depth)] = av[l];
		}
		[[unroll]] for (uint l = 0u; l < loadsB; l++) {
			uint t = id + l * threads;
			bt[t / (4u * depth) * stride + t % (4u * depth)] = bv[l];
		}
		for (uint t = id; t < depth * high; t += threads) {
			uint e = ea.at[min(row + t / depth, m - 1u) * blocks + min(p + t % depth, end - 1u)];
			mostA = max(mostA, e);
			xe[t % depth * high + t / depth] = uintBitsToFloat((e - 6u) << 23);
		}
		for (uint t = id; t < depth * wide; t += threads) {
			uint e = eb.at[min(col + t / depth, n - 1u) * blocks + min(p + t % depth, end - 1u)];
			mostB = max(mostB, e);
			ye[t % depth * wide + t / depth] = uintBitsToFloat((e - 6u) << 23);
		}
		barrier();
		[[unroll]] for (uint q = 0u; q < depth; q++) {
			if (p + q >= end) break;
			coopmat<int8_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> x[down * 32u / K];
			coopmat<int8_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> y[32u / K];
			[[unroll]] for (uint i = 0u; i < down; i++)
				[[unroll]] for (uint k = 0u; k < 32u / K; k++)
					coopMatLoad(x[i * (32u / K) + k], at, (top + i * M) * stride + 4u * q + k * K / 8u, stride, gl_CooperativeMatrixLayoutRowMajor);
			[[unroll]] for (uint j = 0u; j < across; j++) {
				[[unroll]] for (uint k = 0u; k < 32u / K; k++)
					coopMatLoad(y[k], bt, (left + j * N) * stride + 4u * q + k * K / 8u, stride, gl_CooperativeMatrixLayoutColumnMajor);
				[[unroll]] for (uint i = 0u; i < down; i++) {
					Sums dots = Sums(floatBitsToInt(integer));
					[[unroll]] for (uint k = 0u; k < 32u / K; k++) dots = coopMatMulAdd(x[i * (32u / K) + k], y[k], dots);
					[[unroll]] for (uint e = 0u; e < place.length(); e++) {
						float s = xe[q * high + top + i * M + uint(place[e]) / N], t = ye[q * wide + left + j * N + uint(place[e]) % N];
						float d = (intBitsToFloat(dots[e]) - integer) * s;
						sums[i * across + j][e] = floatBitsToInt(fma(d, t, intBitsToFloat(sums[i * across + j][e])));
					}
				}
			}
		}
	}
	atomicMax(greatest[0], mostA);
	atomicMax(greatest[1], mostB);
	if (hard) wrong = 1u;
	barrier();
	hard = wrong != 0u || greatest[0] + greatest[1] > most;
	if (id == 0u) unsafe.at[flag] = hard ? 1u : 0u;
	if (hard) return;
	[[unroll]] for (uint i = 0u; i < down; i++)
		[[unroll]] for (uint j = 0u; j < across; j++)
			[[unroll]] for (uint e = 0u; e < place.length(); e++) {
				uint r = row + top + i * M + uint(place[e]) / N, q = col + left + j * N + uint(place[e]) % N;
				if (r < m && q < n) c.at[r * ldc + q] = intBitsToFloat(sums[i * across + j][e]);
			}
}
