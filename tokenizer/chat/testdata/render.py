"""Renders chat templates with transformers. Each line of the standard input is a JSON object with "template" and "vars"; each line
of the output is one with "text" and what {% generation %} wrote ("said"), or with "error". Given a tokenizer.json, "ids" are the
text's, and "mask" says of each whether {% generation %} wrote it."""
import json
import sys

from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

tokenizer = PreTrainedTokenizerFast(tokenizer_file=sys.argv[1]) if len(sys.argv) > 1 else None
for line in sys.stdin:
    case = json.loads(line)
    v = case["vars"]
    try:
        messages, tools = v.pop("messages"), v.pop("tools", None)
        text, spans = render_jinja_template([messages], tools=tools, chat_template=case["template"], return_assistant_tokens_mask=True, **v)
        answer = {"text": text[0], "said": [text[0][a:b] for a, b in spans[0]]}
        if tokenizer:
            marked = tokenizer.apply_chat_template(messages, tools=tools, chat_template=case["template"], return_assistant_tokens_mask=True, return_dict=True, **v)
            answer |= {"ids": marked["input_ids"], "mask": marked["assistant_masks"]}
        print(json.dumps(answer), flush=True)
    except Exception as e:
        print(json.dumps({"error": str(e) or type(e).__name__}), flush=True)
