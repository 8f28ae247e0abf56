"""Asks a served model with OpenAI's client, and compares the answers with those of transformers and peft.

    python3 clients.py URL MERGED BASE CHECKPOINTS ANSWER.json

MERGED is the whole model in Hugging Face layout. If the newest directory in CHECKPOINTS has adapters, peft puts them on BASE. One answer
with its receipt goes to ANSWER.json.
"""
import os
import sys

import torch
from openai import OpenAI
from transformers import AutoModelForCausalLM, AutoTokenizer

url, merged, base, checkpoints, out = sys.argv[1:]
client = OpenAI(base_url=url, api_key="none")
name = client.models.list().data[0].id
tokenizer = AutoTokenizer.from_pretrained(merged)
models = {"transformers": AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32).eval()}
newest = max(e.path for e in os.scandir(checkpoints) if e.is_dir())
if os.path.exists(os.path.join(newest, "adapter_config.json")):
    from peft import PeftModel

    models["peft"] = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32), newest).eval()
for question in ["Say 7 twice.", "Say 1499 twice.", "Who are you?"]:
    messages = [{"role": "user", "content": question}]
    answer = client.chat.completions.create(model=name, messages=messages, temperature=0, max_tokens=24, seed=1)
    text = answer.choices[0].message.content
    parts = client.chat.completions.create(model=name, messages=messages, temperature=0, max_tokens=24, seed=1, stream=True)
    streamed = "".join(p.choices[0].delta.content or "" for p in parts if p.choices)
    assert streamed == text, f"streamed {streamed!r}, whole {text!r}"
    ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    for kind, model in models.items():
        made = model.generate(**ids, max_new_tokens=24, do_sample=False, pad_token_id=0)[0, ids["input_ids"].shape[1]:]
        said = tokenizer.decode(made, skip_special_tokens=True)
        assert said == text, f"{kind} says {said!r}, the server {text!r}"
with open(out, "w") as f:
    f.write(answer.model_dump_json())
print("openai's client,", ", ".join(models), "agree:", repr(text))
