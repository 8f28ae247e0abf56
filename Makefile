# The two commands a newcomer needs are in README.md and need Go alone; these need more.

# Checkpoints and exports against transformers, safetensors and llama.cpp. The last line is the verdict.
.PHONY: interop
interop:
	tests/interop/run
