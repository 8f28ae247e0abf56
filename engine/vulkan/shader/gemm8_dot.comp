#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require

// The products of four bytes in one instruction: OpSDot, with the capabilities DotProduct and DotProductInput4x8BitPacked.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4450)
int dot4_(uint a, uint b, spirv_literal int format);

int dot4(uint a, uint b) { return dot4_(a, b, 0); }

#include "gemm8.glsl"
