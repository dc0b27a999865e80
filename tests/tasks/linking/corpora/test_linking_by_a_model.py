"""A model chooses the pages of a corpus, or finds its mentions, as it does for the command `link`."""

from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("marisa_trie", reason="mention tables are read with marisa-trie")

from pipeline import storage
from pipeline.storage.blocks import Block, PageMarker
from tasks.linking.corpora.linking import DocumentLinker
from tasks.linking.open import LinkerSettings
from tests.support.asked import Linking, lines

TEXTS = ["Ann met Bob.", "Bob, Ann and ab.", "None is here", "ab saw Ann", "Ann ann Bob ab Ann"]
OF_NER = ["Ann met Bob. Bob was born in Kentucky.", "Mr. Lincoln moved to Illinois! Ann did not."]


def linked(
    documents: Path, mentions: Path, folder: Path, **changes: Any
) -> tuple[list[list[tuple[int, int, str]]], storage.Result]:
    """The links of each paragraph that the stage's work finds in a file, and what it counts."""
    settings = LinkerSettings(str(mentions), finds_all=True, device="cpu", min_probability=0.0)
    threads = torch.get_num_threads()
    work = DocumentLinker({"documents": str(documents.parent), "settings": asdict(replace(settings, **changes))})
    marker = PageMarker(str(folder / "page"))
    result = work(Block(0, str(documents), 0, 1 << 20), str(folder / "linked"), marker)
    marker.close()
    torch.set_num_threads(threads)
    rows = storage.read_rows(str(folder / "linked/paragraphs/block-00000.parquet"))
    return [[tuple(each.values()) for each in row["links"]] for row in rows], result


@pytest.mark.parametrize(
    ("by", "settings", "flags"),
    [
        ("model", {}, []),
        ("model", {"is_global": True}, ["--global"]),
        ("ner", {}, []),
        ("ner", {"language": "none"}, ["--language", "none"]),
    ],
)
def test_as_the_command(
    tmp_path: Path, run: Linking, table: Path, models: Path, folder: Path, by: str, settings: Any, flags: Any
) -> None:
    model, texts = (models / "export/model", TEXTS) if by == "model" else (folder / "ner-luke", OF_NER)
    documents = tmp_path / "texts/a.jsonl"
    documents.parent.mkdir()
    documents.write_text(lines(*({"id": number, "text": text} for number, text in enumerate(texts))))
    answers, *_ = run("link", documents, "--mentions", table, f"--{by}", model, "--device", "cpu", *flags)
    found = [
        [
            (each["start"], each["end"], each["title"], each["probability"] and each["probability"] * each[share])
            for each in answer["mentions"]
            for share in ("label_probability" if by == "ner" else "link_probability",)
        ]
        for answer in answers
    ]
    sure = [probability for answer in found for *_, title, probability in answer if title]
    assert "A" in {title for answer in found for *_, title, _ in answer}
    for least in (0.0, (min(sure) + max(sure)) / 2):
        given = {by: str(model), "min_probability": least, **settings}
        rows, result = linked(documents, table, tmp_path, **given)
        assert rows == [[tuple(each[:3]) for each in answer if each[2] and each[3] >= least] for answer in found]
        assert sum(map(len, rows)) == result.rows["links"] > 0
        drops = Counter({"links:below_min_probability": sum(each < least for each in sure)})
        drops["links:no_page"] = sum(map(len, found)) - len(sure)
        assert result.drops == +drops
