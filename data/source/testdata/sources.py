"""Writes the source files of other programs that the tests read: docs.parquet, docs.jsonl.gz, llmc.bin, megatron.bin and megatron.idx.

pip install pyarrow numpy   (made with 26.0.1 and 2.4.6)
python3 sources.py

The tokens of llmc.bin and megatron.bin are 7 * i % 251 for i = 0..999. llm.c's header is that of write_datafile in its dev/data/data_common.py,
the index that of _IndexWriter in Megatron-LM's megatron/core/datasets/indexed_dataset.py: sequences of 400, 0, 350 and 250 tokens, of which the
second and third are one document.
"""
import gzip
import json
import struct

import numpy
import pyarrow
from pyarrow import parquet

DOCUMENTS = ["Document %d says é %s" % (i, "la " * (i * 37 % 211)) for i in range(500)]
DOCUMENTS[7] = None
DOCUMENTS[8] = ""

table = pyarrow.table({"id": list(range(500)), "text": DOCUMENTS, "tags": [["a", "b"]] * 500})
parquet.write_table(table, "docs.parquet", compression="zstd", row_group_size=150, data_page_size=1000, use_dictionary=False)

with gzip.GzipFile("docs.jsonl.gz", "wb", mtime=0) as f:
    for i, text in enumerate(DOCUMENTS):
        f.write((json.dumps({"id": i, "text": text}) + "\n").encode())

tokens = numpy.arange(1000) * 7 % 251
header = numpy.zeros(256, dtype="<i4")
header[:3] = 20240520, 1, len(tokens)
with open("llmc.bin", "wb") as f:
    f.write(header.tobytes() + tokens.astype("<u2").tobytes())

lengths = [400, 0, 350, 250]
with open("megatron.bin", "wb") as f:
    f.write(tokens.astype("<i4").tobytes())
with open("megatron.idx", "wb") as f:
    f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, 4, len(lengths), 4))
    f.write(numpy.array(lengths, dtype="<i4").tobytes())
    f.write(numpy.array([4 * sum(lengths[:i]) for i in range(4)], dtype="<i8").tobytes())
    f.write(numpy.array([0, 1, 3, 4], dtype="<i8").tobytes())
