"""Makes a tiny random Qwen2 with a chat template, and conversations to fine-tune it on.

    python3 chats.py DIR CHATS.jsonl CORPUS
"""
import json
import sys

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM

out, chats, corpus = sys.argv[1:]
words = Tokenizer(models.BPE())
# For every model of this class, Transformers cuts texts this way and ignores tokenizer.json.
cut = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
words.pre_tokenizer = pre_tokenizers.Sequence([
    pre_tokenizers.Split(Regex(cut), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
])
words.decoder = decoders.ByteLevel()
special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
words.train([corpus], trainers.BpeTrainer(vocab_size=800, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<|im_end|>", pad_token="<|endoftext|>")
tokenizer.chat_template = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
tokenizer.save_pretrained(out)
torch.manual_seed(1)
config = Qwen2Config(
    vocab_size=words.get_vocab_size(), hidden_size=64, intermediate_size=160, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=512, tie_word_embeddings=True, bos_token_id=None, eos_token_id=2,
)
Qwen2ForCausalLM(config).to(torch.bfloat16).save_pretrained(out)
with open(chats, "w") as f:
    for i in range(1500):
        messages = [{"role": "user", "content": f"Say {i} twice."}, {"role": "assistant", "content": f"{i} {i}"}]
        f.write(json.dumps({"messages": messages}) + "\n")
