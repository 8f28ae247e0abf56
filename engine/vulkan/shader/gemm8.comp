#version 460
#extension GL_GOOGLE_include_directive : require

// The products of four bytes on any device.
int dot4(uint a, uint b) {
	int sum = 0;
	for (int i = 0; i < 32; i += 8) sum += bitfieldExtract(int(a), i, 8) * bitfieldExtract(int(b), i, 8);
	return sum;
}

#include "gemm8.glsl"
