"""Prints what Hugging Face's safetensors library reads in a file: name, type, shape and hexadecimal data of each tensor, a line each.

pip install safetensors
python3 read.py FILE
"""
import sys

from safetensors import deserialize

with open(sys.argv[1], "rb") as f:
    for name, t in sorted(deserialize(f.read())):
        print(name, t["dtype"], t["shape"], bytes(t["data"]).hex())
