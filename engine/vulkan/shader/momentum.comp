#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// state = decay*state + step*x, as vec.Kernel.Momentum. x has rows of width numbers one after another; those of the state begin stride numbers apart.
// most becomes the greatest magnitude of the state before, as bits.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { In x; Out state; Flags most; uint n, width, stride; float decay, step_; };

shared uint here;

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (gl_LocalInvocationIndex == 0u) here = 0u;
	barrier();
	if (t < n) {
		uint i = t / width * stride + t % width;
		float old = state.at[i];
		atomicMax(here, floatBitsToUint(old) & 0x7fffffffu);
		state.at[i] = add(mul(decay, old), mul(step_, x.at[t]));
	}
	barrier();
	if (gl_LocalInvocationIndex == 0u && here > 0u) atomicMax(most.at[0], here);
}
