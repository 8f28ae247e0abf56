"""Writes python.safetensors and mixed.safetensors with Hugging Face's own library.

pip install safetensors numpy   (made with safetensors 0.8.0, numpy 2.4.6)
python3 write.py
"""
import numpy as np
from safetensors import TensorSpec, serialize
from safetensors.numpy import save_file

# The values are multiples of 1/4, which every type here holds exactly.
save_file(
    {
        "z.weight": np.arange(6, dtype=np.float32).reshape(2, 3) / 4,
        "a.weight": -np.arange(4, dtype=np.float32) / 4,
        "m.bias": np.array([-0.0], dtype=np.float32),
        "é<&>": np.full((1, 2, 1), 2.5, dtype=np.float32),
    },
    "python.safetensors",
    metadata={"format": "pt"},
)

f32 = np.arange(6, dtype=np.float32) / 4
f16 = np.arange(6, dtype=np.float16) / 4
bf16 = (f32.view(np.uint32) >> 16).astype(np.uint16)


def spec(dtype, shape, array):
    return TensorSpec(dtype=dtype, shape=shape, data_ptr=array.ctypes.data, data_len=array.nbytes)


with open("mixed.safetensors", "wb") as f:
    f.write(
        serialize(
            {"half": spec("float16", [6], f16), "brain": spec("bfloat16", [3, 2], bf16), "full": spec("float32", [2, 3], f32)},
            metadata={"note": "three types"},
        )
    )
