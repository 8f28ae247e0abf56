# The two commands a newcomer needs are in README.md and need Go alone; these need more.

# Checkpoints and exports against transformers, safetensors and llama.cpp. The last line is the verdict.
.PHONY: interop
interop:
	tests/interop/run

# A run of strangers in network namespaces, on links of 100 Mb/s and 80 ms, with NATs. Needs root's rights; takes a quarter of an hour.
.PHONY: netns
netns:
	ENTRAIN_NETNS=long go test ./tests/netns -count=1 -v -timeout 40m
