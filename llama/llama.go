// Package llama implements a transformer of the Llama family: its parameters, forward pass,
// gradient, and text generation.
//
// Tokens become vectors of Hidden floats. Each layer adds to them, first by attention, then by a
// gated feed-forward net. A last normalization and the head turn them into Vocab logits:
//
//	x  = embed[token]
//	x += o·attention(rope(q·norm(x)), rope(k·norm(x)), v·norm(x))      once a layer
//	x += down·(silu(gate·norm(x)) * (up·norm(x)))                      once a layer
//	logits = head·norm(x)
//
// norm is RMSNorm; rope is rotary embedding in the rotate-half layout; attention is causal, with
// Heads/KVHeads query heads for each key and value head; no weight has a bias. This is
// LlamaForCausalLM in transformers, and the tensors have its names and shapes, [out, in] row-major,
// so a checkpoint is a copy of the parameters. Config can change four things, as related
// architectures do: Rope stretches the angles (Llama 3), Window bounds how far back attention
// reaches (Mistral), Bias adds to q, k and v of norm(x) (Qwen2), and QKNorm normalizes each head of
// q and k before rope (Qwen3). The tensors:
//
//	model.embed_tokens.weight                       [Vocab, Hidden]
//	model.layers.N.input_layernorm.weight           [Hidden]
//	model.layers.N.self_attn.q_proj.weight          [Heads·HeadDim, Hidden]
//	model.layers.N.self_attn.k_proj.weight          [KVHeads·HeadDim, Hidden]
//	model.layers.N.self_attn.v_proj.weight          [KVHeads·HeadDim, Hidden]
//	model.layers.N.self_attn.q_proj.bias            [Heads·HeadDim]        if Bias
//	model.layers.N.self_attn.k_proj.bias            [KVHeads·HeadDim]      if Bias
//	model.layers.N.self_attn.v_proj.bias            [KVHeads·HeadDim]      if Bias
//	model.layers.N.self_attn.q_norm.weight          [HeadDim]              if QKNorm
//	model.layers.N.self_attn.k_norm.weight          [HeadDim]              if QKNorm
//	model.layers.N.self_attn.o_proj.weight          [Hidden, Heads·HeadDim]
//	model.layers.N.post_attention_layernorm.weight  [Hidden]
//	model.layers.N.mlp.gate_proj.weight             [FFN, Hidden]
//	model.layers.N.mlp.up_proj.weight               [FFN, Hidden]
//	model.layers.N.mlp.down_proj.weight             [Hidden, FFN]
//	model.norm.weight                               [Hidden]
//	lm_head.weight                                  [Vocab, Hidden]      not if Tied
//
// If Tied, the head is model.embed_tokens.weight.
//
// All arithmetic is that of package exact, in an order that is part of the definition. The gradient
// of a set of sequences has the same bits on every machine, for any number of workers, and however
// the sequences are divided into calls of Grad. Besides package exact, these rules fix the order:
//
//   - The gradient of a matrix is one chain over the tokens of all sequences, in their order,
//     continued from call to call.
//   - The gradient of a norm's gains, or of a bias, is summed over blocks of 64 tokens of a
//     sequence, each from +0, and the sums are added in order; those of the norms of heads block
//     by block, in each head by head.
//   - The gradient of an embedding adds its tokens' gradients in order. When the head is tied to
//     the embedding, a sequence's part from the head comes first, then its part from the
//     embedding, then the next sequence; so a tied model computes one sequence at a time.
//   - In attention, keys and values get their gradient from the query heads of their group in
//     ascending order, and within each head from the queries in order.
//
// Forward and backward passes are side by side, one operation per file. New allocates all memory;
// steps allocate none. Memory grows linearly with the sequence length: attention recomputes its
// scores in the backward pass, 64 queries at a time, and logits exist for a few rows at a time. A
// Model made by NewRecomputing holds the activations of only some layers. Memory returns the total.
package llama
