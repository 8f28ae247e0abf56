"""Makes tiny random models of the classes of transformers that entrain imports, says what they compute, and checks what
entrain writes of them.

    python3 relatives.py DIR TOKENIZER.json

For each model it writes DIR/NAME, a model in BF16 shards, and twice, of all tokens and of those that a mask leaves (labels of -100, as
in chats), DIR/NAME[-masked].json with a batch of tokens, their labels, the logits of its first sequence and the loss, and
DIR/NAME[-masked].grad with the gradient. Then it says "made". For each line "NAME PATH" on its standard input it then loads the model
in PATH and prints by how much its logits differ from those of DIR/NAME, its weights' type and its class. The line "adapters TOKENS.json"
leaves the lines after it to adapters.py, which need not import all of that again.
"""
import json
import os
import shutil
import sys

import adapters
import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, Ernie4_5Config, GraniteConfig, LlamaConfig, MistralConfig, Phi3Config, Qwen2Config, Qwen3Config, SeedOssConfig

out, tokenizer = sys.argv[1:]
torch.set_num_threads(1)
with open(tokenizer) as f:
    vocab = max(300, 1 + max(json.load(f)["model"]["vocab"].values()))
shape = dict(
    vocab_size=vocab, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=128, bos_token_id=None, eos_token_id=0, initializer_range=0.15,
)
llama3 = dict(rope_type="llama3", rope_theta=500000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)
granite = dict(embedding_multiplier=12.0, attention_multiplier=0.4, residual_multiplier=0.22, logits_scaling=0.5)
configs = {
    "llama2": LlamaConfig(**shape, rms_norm_eps=1e-5),
    "llama3": LlamaConfig(**shape, rms_norm_eps=1e-5, rope_parameters=llama3),
    "llama32-tied": LlamaConfig(**shape, head_dim=32, rope_parameters=llama3, tie_word_embeddings=True),
    "linear": LlamaConfig(**shape, rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=4.0)),
    "dynamic": LlamaConfig(**shape, rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=4.0)),
    "mistral": MistralConfig(**shape, sliding_window=24),
    "phi": Phi3Config(**shape, pad_token_id=None, sliding_window=24),  # llama.cpp wants "</s>" in what it sees named "phi3"
    "mistral-no-window": MistralConfig(**shape, sliding_window=None, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen2": Qwen2Config(**shape, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen2-tied": Qwen2Config(**shape, tie_word_embeddings=True),
    "qwen2-llama3": Qwen2Config(**shape, head_dim=24, rope_parameters=llama3),
    "qwen3-linear": Qwen3Config(**shape, head_dim=24, rope_parameters=dict(rope_type="linear", rope_theta=1e6, factor=2.0)),
    "qwen3": Qwen3Config(**shape, head_dim=24, rope_parameters=dict(rope_type="default", rope_theta=1e6)),
    "qwen3-tied": Qwen3Config(**shape, head_dim=16, tie_word_embeddings=True),
    "granite": GraniteConfig(**shape, **granite),
    "granite-tied": GraniteConfig(**shape, **granite, tie_word_embeddings=True),
    "ernie": Ernie4_5Config(**shape, head_dim=24, pad_token_id=None),
    "seed": SeedOssConfig(**shape, head_dim=24, pad_token_id=None),
}


def folded(config, grads):
    """Returns the gradients with respect to the parameters that an import makes of the model's."""
    if config.model_type == "granite":
        norm = 1 / config.logits_scaling / (config.embedding_multiplier if config.tie_word_embeddings else 1)
        factors = {"embed_tokens": config.embedding_multiplier, "q_proj": config.attention_multiplier * 4, "o_proj": config.residual_multiplier,
                   "down_proj": config.residual_multiplier, "model.norm": norm}
        return {k: g / next((f for name, f in factors.items() if name in k), 1) for k, g in grads.items()}
    if config.model_type == "ernie4_5":
        heads = {k: g.view(-1, config.head_dim, g.shape[1]) for k, g in grads.items() if "q_proj" in k or "k_proj" in k}
        return grads | {k: torch.cat([g[:, 0::2], g[:, 1::2]], dim=1).reshape(-1, g.shape[2]) for k, g in heads.items()}
    return grads


def load(path):
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


logits = {}
torch.manual_seed(1)
tokens = torch.randint(0, vocab, (2, 97))
masked = tokens.masked_fill(torch.rand(tokens.shape) < torch.tensor([[0.8], [0.3]]), -100)
for name, config in configs.items():
    model = AutoModelForCausalLM.from_config(config)
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:  # biases begin at 0 and gains at 1: what is skipped would not show
                p += torch.randn_like(p) * 0.3
    path = os.path.join(out, name)
    model.to(torch.bfloat16).save_pretrained(path, max_shard_size="60KB")
    shutil.copy(tokenizer, os.path.join(path, "tokenizer.json"))
    model = load(path)
    for kind, labels in {"": tokens, "-masked": masked}.items():
        model.zero_grad()
        answer = model(tokens, labels=labels)
        logits[name] = answer.logits[0, :-1].detach()
        answer.loss.backward()
        save_file(folded(config, {k: p.grad for k, p in model.named_parameters()}), os.path.join(out, name + kind + ".grad"))
        with open(os.path.join(out, name + kind + ".json"), "w") as f:
            json.dump({"tokens": tokens.flatten().tolist(), "labels": labels.flatten().tolist(),
                       "logits": logits[name].flatten().tolist(), "loss": answer.loss.item()}, f)
print("made", *configs, flush=True)

for line in sys.stdin:
    name, path = line.split()
    if name == "adapters":
        adapters.serve(path)
        break
    model = load(path)
    with torch.no_grad():
        worst = (model(tokens[:1, :-1]).logits[0] - logits[name]).abs().max().item()
    with open(os.path.join(path, "config.json")) as f:
        dtype = json.load(f)["dtype"]
    print(worst, dtype, type(model).__name__ == type(AutoModelForCausalLM.from_config(configs[name])).__name__, flush=True)
