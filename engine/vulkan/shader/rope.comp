#version 460
#extension GL_GOOGLE_include_directive : require
#include "exact.glsl"

// Turns the pairs (i, i+half) of the first heads of each row by the angles of its position, or back.
layout(local_size_x = 64) in;
layout(push_constant, scalar) uniform Args { Out x; In cosine, sine; uint rows, seq, width, heads, half_, back; };

void main() {
	uint t = group() * 64u + gl_LocalInvocationIndex;
	if (t >= rows * heads * half_) return;
	uint i = t % half_, h = t / half_ % heads, r = t / half_ / heads;
	uint p = r * width + h * 2u * half_ + i;
	float c = cosine.at[r % seq * half_ + i], s = sine.at[r % seq * half_ + i], a = x.at[p], b = x.at[p + half_];
	if (back == 0u) {
		x.at[p] = sub(mul(a, c), mul(b, s));
		x.at[p + half_] = add(mul(b, c), mul(a, s));
	} else {
		x.at[p] = add(mul(a, c), mul(b, s));
		x.at[p + half_] = sub(mul(b, c), mul(a, s));
	}
}
