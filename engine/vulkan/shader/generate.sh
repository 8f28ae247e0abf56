#!/bin/sh
# Compiles the shaders to SPIR-V, which the program embeds: users need no compiler. It needs glslang and spirv-tools
# (Debian: glslang-tools spirv-tools). The committed files are what glslang 12.0 gives, compressed: SPIR-V shrinks to
# a third.
set -e
cd "$(dirname "$0")"
# By a newer one, 16.6, which knows GL_KHR_cooperative_matrix.
"${NEWER_GLSLANG:-glslang}" -V --target-env vulkan1.2 --quiet -g0 -o gemm8_matrix.spv gemm8_matrix.comp
for f in *.comp; do
	[ "$f" != gemm8_matrix.comp ] || continue
	glslangValidator -V --target-env vulkan1.2 --quiet -o "${f%.comp}.spv" "$f"
	# No optimization: it joins operations on floats that are not yet decorated.
	spirv-opt --strip-debug "${f%.comp}.spv" -o "${f%.comp}.spv"
	spirv-val --target-env vulkan1.2 --scalar-block-layout "${f%.comp}.spv"
done
# Without name and time, the same module gives the same file.
gzip -9nf *.spv
