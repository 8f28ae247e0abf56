#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Subtracts weight*x from y for the rows [first, first+rows), where one of the two has a row for each target: y is the head's gradient and x has the
// rows, or, with turned set, x is the head and y has the rows. Targets are spread over the workgroups of the second dimension, so that the rows of one
// target are subtracted in their order.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In x; Out y; Words tokens; In weight_; uint rows, first, n, seq, turned; };

void main() {
	uint i = gl_GlobalInvocationID.x, mine = gl_WorkGroupID.y, groups = gl_NumWorkGroups.y;
	if (i >= n) return;
	float weight = weight_.at[0];
	bool back = turned != 0u;
	for (uint r = back ? mine : 0u; r < rows; r += back ? groups : 1u) {
		uint q = first + r, next = tokens.at[q + q / seq + 1u], target = token(next);
		if (masked(next) || !back && target % groups != mine) continue;
		uint to = (back ? r : target) * n + i, from = (back ? target : r) * n + i;
		y.at[to] = sub(y.at[to], mul(weight, x.at[from]));
	}
}
