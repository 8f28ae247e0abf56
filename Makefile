# The two commands a newcomer needs are in README.md and need Go alone; these need more.

# The program. The tag leaves out the trace pages of gRPC, which CometBFT brings along: their HTML templates call methods by name,
# for which the linker keeps every exported method, 13 MB of them.
.PHONY: entrain
entrain:
	CGO_ENABLED=0 go build -trimpath -tags grpcnotrace ./cmd/entrain

# Binaries for all platforms, packages, man pages, completions and checksums, in dist. It needs Go, GNU tar and ar.
.PHONY: release
release:
	.ci/release dist

# Its size and the number of its packages, against their limits.
.PHONY: size
size:
	.ci/size

# Checkpoints, exports and served models against transformers, peft, OpenAI's client, lm-evaluation-harness and llama.cpp. The last line is
# the verdict.
.PHONY: interop
interop:
	tests/interop/run
	tests/interop/finetune

# A run of strangers in network namespaces, on links of 100 Mb/s and 80 ms, with NATs. Needs root's rights; takes a quarter of an hour.
.PHONY: netns
netns:
	ENTRAIN_NETNS=long go test ./tests/netns -count=1 -v -timeout 40m

# The coordinator as a program for Solana's virtual machine, in chain/solana/bin. The script says what it needs.
.PHONY: solana
solana:
	chain/solana/build

# The coordinator's tests on that machine, and what its messages cost there. They need python3 with solders.
.PHONY: solana-test
solana-test: solana
	ENTRAIN_SOLANA=$(CURDIR)/chain/solana/bin go test ./coordinator ./chain/solana -run Solana -count=1 -v
