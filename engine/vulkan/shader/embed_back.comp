#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Adds each row's gradient to its token's, in the order of the rows. order holds the rows sorted by token, those of one token in their order; a
// workgroup takes 64 columns of one token, whose rows are order[first[w]] to order[first[w+1]].
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In dx; Out dtable; Words tokens, order, first; uint groups, n, seq; };

void main() {
	uint w = group();
	if (w >= groups) return;
	uint from = first.at[w], to = first.at[w + 1u];
	if (from == to) return;
	uint r0 = order.at[from], t = token(tokens.at[r0 + r0 / seq]);
	uint i = gl_GlobalInvocationID.z * 64u + gl_LocalInvocationIndex;
	if (i >= n) return;
	float sum = dtable.at[t * n + i];
	for (uint p = from; p < to; p++) sum = add(sum, dx.at[order.at[p] * n + i]);
	dtable.at[t * n + i] = sum;
}
