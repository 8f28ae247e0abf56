"""Says what PEFT makes of adapters that entrain writes.

serve takes a file of tokens. For each line "BASE ADAPTERS MERGED OUT" on standard input it loads the model BASE with the adapters,
writes OUT.json with the logits of the first sequence and the loss, and OUT.grad with the gradients of the adapters, and prints by how
much the logits of the model MERGED differ from those, and how many parameters PEFT trains.
"""
import json
import sys

import torch
from peft import PeftModel
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM


def load(path):
    return AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()


def serve(list):
    with open(list) as f:
        tokens = torch.tensor(json.load(f)).reshape(2, -1)
    for line in sys.stdin:
        base, adapters, merged, out = line.split()
        model = PeftModel.from_pretrained(load(base), adapters, is_trainable=True).eval()
        answer = model(tokens[:, :-1])
        logits = answer.logits[0].detach()
        loss = torch.nn.functional.cross_entropy(answer.logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        grads = {k.replace(".default", ""): p.grad for k, p in model.named_parameters() if p.requires_grad}
        save_file(grads, out + ".grad")
        with open(out + ".json", "w") as f:
            json.dump({"tokens": tokens.flatten().tolist(), "logits": logits.flatten().tolist(), "loss": loss.item()}, f)
        with torch.no_grad():
            worst = (load(merged)(tokens[:1, :-1]).logits[0] - logits).abs().max().item()
        print(worst, sum(p.numel() for p in model.parameters() if p.requires_grad), flush=True)
