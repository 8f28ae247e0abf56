"""Loads the configuration and the tokenizer of a checkpoint with transformers, and prints what came of it as JSON.

pip install transformers
python3 load.py DIRECTORY TEXT
"""
import json
import sys

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

config = AutoConfig.from_pretrained(sys.argv[1])
generation = GenerationConfig.from_pretrained(sys.argv[1])
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
ids = tokenizer(sys.argv[2])["input_ids"]
rope = getattr(config, "rope_parameters", None) or {"rope_theta": config.rope_theta}
json.dump(
    {
        "class": type(config).__name__,
        "vocab": config.vocab_size,
        "head_dim": config.head_dim,
        "kv_heads": config.num_key_value_heads,
        "theta": rope["rope_theta"],
        "eps": config.rms_norm_eps,
        "tied": config.tie_word_embeddings,
        "bos": config.bos_token_id,
        "eos": config.eos_token_id,
        "sample": generation.do_sample,
        "length": tokenizer.model_max_length,
        "ids": ids,
        "text": tokenizer.decode(ids),
    },
    sys.stdout,
)
