#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// x = x*keep - rate*sign(direction), as vec.Kernel.SignStep, of blocks of rows*cols, columns of them side by side; x has rows of stride numbers.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In direction; Out x; uint n, rows, cols, columns, stride; float keep, rate; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= n) return;
	uint size = rows * cols, b = t / size, r = t % size / cols, c = t % cols, at = (b / columns * rows + r) * stride + b % columns * cols + c;
	uint d = floatBitsToUint(direction.at[t]);
	float move = (d & 0x7fffffffu) == 0u ? 0.0 : uintBitsToFloat(floatBitsToUint(rate) | d & 0x80000000u);
	x.at[at] = sub(mul(x.at[at], keep), move);
}
