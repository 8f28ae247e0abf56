"""Makes a tiny Llama that entrain has never seen: random weights, grouped heads, BF16 in shards, a byte-level BPE trained by tokenizers.

    python3 foreign.py DIR CORPUS
"""
import sys

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

out, corpus = sys.argv[1:]
words = Tokenizer(models.BPE())
words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
words.decoder = decoders.ByteLevel()
trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<|endoftext|>", "<|user|>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
words.train([corpus], trainer)
PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|endoftext|>").save_pretrained(out)

torch.manual_seed(1)
config = LlamaConfig(
    vocab_size=words.get_vocab_size(), hidden_size=96, intermediate_size=160, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2,
    max_position_embeddings=256, rope_theta=250000.0, rms_norm_eps=1e-6, tie_word_embeddings=True, bos_token_id=None, eos_token_id=0,
    initializer_range=0.3,  # far above a trained model's: what one side rounds and the other does not shows
)
LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(out, max_shard_size="300KB")
print(f"transformers: made a Llama of {sum(p.numel() for p in LlamaForCausalLM(config).parameters())} parameters in BF16")
