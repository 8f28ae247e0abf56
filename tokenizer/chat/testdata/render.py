"""Renders chat templates with transformers. Each line of the standard input is a JSON object with "template" and "vars"; each line
of the output is one with "text", or with "error". Given a tokenizer.json, "ids" are the text's."""
import json
import sys

from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

tokenizer = PreTrainedTokenizerFast(tokenizer_file=sys.argv[1]) if len(sys.argv) > 1 else None
for line in sys.stdin:
    case = json.loads(line)
    v = case["vars"]
    try:
        text, _ = render_jinja_template([v.pop("messages")], tools=v.pop("tools", None), chat_template=case["template"], **v)
        ids = tokenizer.encode(text[0], add_special_tokens=False) if tokenizer else []
        print(json.dumps({"text": text[0], "ids": ids}), flush=True)
    except Exception as e:
        print(json.dumps({"error": str(e) or type(e).__name__}), flush=True)
