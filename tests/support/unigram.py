"""A tokenizer of XLM-R's kind as small as the example data: pieces of its words, and a table that normalises texts."""

import math
import struct
import unicodedata
from collections import Counter
from itertools import combinations
from pathlib import Path

from tests.support import ROOT

BLANKS = "\t\n\r\x85\xa0\u1680\u2000\u2009\u200b\u2028\u202f\u3000\ufeff"
LETTERS = "ﬁ…①½Ⅷ㎏™´ｆｕｌＡ（、ｱｶﾞが゙がパ한ｎª"
JAPANESE = "私は東京に住む。東京タワーは、がっこうの前にある。アフリカが好き。"
LEAF, SHIFT, BLOCK = 1 << 8, 10, 256


def table() -> bytes:
    """Blanks and what NFKC changes, as SentencePiece has it: a double array over UTF-8, here with a block a node."""
    changes = {letter: unicodedata.normalize("NFKC", letter) for letter in [*LETTERS, "e\u0301", "か\u3099"]}
    changes |= {**dict.fromkeys(BLANKS, " "), "\x1c": "", "\xad": ""}
    encoded = {key.encode(): value.encode() + b"\0" for key, value in changes.items()}
    nodes = sorted({key[:end] for key in encoded for end in range(len(key) + 1)})
    base = {node: BLOCK * number for number, node in enumerate(nodes, 1)}
    units, texts = [0] * BLOCK * (len(nodes) + 1), b""
    units[0] = base[b""] << SHIFT
    for node in nodes[1:]:
        place = base[node[:-1]] ^ node[-1]
        units[place] = node[-1] | (place ^ base[node]) << SHIFT | LEAF * (node in encoded)
        units[base[node]] = len(texts) | 1 << 31
        texts += encoded.get(node, b"")
    return struct.pack(f"<I{len(units)}I", 4 * len(units), *units) + texts


def pieces() -> list[tuple[str, float]]:
    """Special tokens as fairseq orders them, letters, and the commonest parts of words with what they count for."""
    texts = [(ROOT / "examples" / name).read_text() for name in ("ner/train.txt", "relation_classification/train.json")]
    words = Counter(f"▁{word}" for word in " ".join([*"@#.é1()アガ", "fi", JAPANESE * 9, *texts]).split())
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for start, end in combinations(range(len(word) + 1), 2):
            if end - start <= 6:
                counts[word[start:end]] += count * (end - start)
    common = sorted(counts, key=lambda piece: (len(piece) > 1, -counts[piece], piece))[:1000]
    scored = [(piece, math.log(counts[piece] / counts.total())) for piece in dict.fromkeys([*common, "▁@", "▁#"])]
    return [*((token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")), *scored, ("<mask>", 0.0)]


def write_unigram(folder: Path) -> None:
    """Write tokenizer.json and tokenizer_config.json as transformers does."""
    from transformers import XLMRobertaTokenizer

    XLMRobertaTokenizer(vocab=pieces(), _spm_precompiled_charsmap=table()).save_pretrained(folder)


def write_sentencepiece(folder: Path, *, model_type: int = 1, byte_fallback: bool = False) -> None:
    """Write the same pieces as SentencePiece has them, by its own schema: without fairseq's padding and mask."""
    from transformers.convert_slow_tokenizer import import_protobuf

    model = import_protobuf().ModelProto()
    control, normal = 3, 1
    special = [("<unk>", 0.0, 2), ("<s>", 0.0, control), ("</s>", 0.0, control)]
    for piece, score, kind in [*special, *((*each, normal) for each in pieces()[4:-1])]:
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type, model.trainer_spec.byte_fallback = model_type, byte_fallback
    model.normalizer_spec.precompiled_charsmap = table()
    (folder / "sentencepiece.bpe.model").write_bytes(model.SerializeToString())
