// Sums along rows: 16 interleaved partial sums, then a tree (package exact). A workgroup takes 16 rows; 16 invocations share a row, one a lane.
#include "exact.glsl"

layout(local_size_x = 16, local_size_y = 16) in;

shared float lanes[16][16];

uint lane() { return gl_LocalInvocationID.x; }
uint row() { return group() * 16u + gl_LocalInvocationID.y; }

// fold adds the lanes of each row.
float fold(float v) {
	uint y = gl_LocalInvocationID.y, x = lane();
	barrier();
	lanes[y][x] = v;
	barrier();
	for (uint half_ = 8u; half_ > 0u; half_ /= 2u) {
		if (x < half_) lanes[y][x] = add(lanes[y][x], lanes[y][x + half_]);
		barrier();
	}
	return lanes[y][0];
}

// foldMax is the greatest lane of each row; NaN are passed over.
float foldMax(float v) {
	uint y = gl_LocalInvocationID.y, x = lane();
	barrier();
	lanes[y][x] = v;
	barrier();
	for (uint half_ = 8u; half_ > 0u; half_ /= 2u) {
		if (x < half_ && less(lanes[y][x], lanes[y][x + half_])) lanes[y][x] = lanes[y][x + half_];
		barrier();
	}
	return lanes[y][0];
}
