#version 460
#extension GL_GOOGLE_include_directive : require
#include "rows.glsl"

// Turns logits into their gradient: with m = max(l), e = Exp(l - m) and z = sum(e), l = e*(weight/z), at the target less weight
// unless shares is set. out_ gets z and l[target] - m of each row, from which the host makes the loss. A row whose target
// is masked has a gradient of zeros and no loss: z is 1, of which the logarithm is 0.
layout(push_constant, scalar) uniform Args { Out l; Words tokens; Out out_; In weight_; uint rows, first, n, seq, shares; };

void main() {
	uint r = row();
	float weight = weight_.at[0];
	bool here = r < rows;
	uint base = r * n, q = first + r, next = here ? tokens.at[q + q / seq + 1u] : 0u, target = token(next);
	float most = -infinity;
	if (here)
		for (uint i = lane(); i < n; i += 16u) {
			float v = l.at[base + i];
			if (less(most, v)) most = v;
		}
	most = foldMax(most);
	float above = here ? sub(l.at[base + target], most) : 0.0;
	barrier();
	float sum = 0.0;
	if (here)
		for (uint i = lane(); i < n; i += 16u) {
			float e = exp_(sub(mul(l.at[base + i], 1.0), most));
			l.at[base + i] = e;
			sum = add(sum, e);
		}
	float z = fold(sum);
	if (!here) return;
	float k = div_(weight, z);
	for (uint i = lane(); i < n; i += 16u) {
		float v = mul(l.at[base + i], k);
		l.at[base + i] = masked(next) ? 0.0 : i == target && shares == 0u ? sub(v, weight) : v;
	}
	if (lane() == 0u) {
		out_.at[2u * q] = masked(next) ? 1.0 : z;
		out_.at[2u * q + 1u] = masked(next) ? 0.0 : above;
	}
}
