"""Formats that users have: each is read, fine-tuned on by the command, and says what the file it was made from says."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.finetuning.registry import TASKS
from tasks.io.data_folder import SPLITS, split_file
from tasks.ner import task as ner
from tasks.ner.columns import ColumnFile
from tasks.ner.spans import tags_of_spans
from tasks.questions import cloze_format, extractive_format
from tasks.relations import relation_format
from tasks.score import main as score
from tests.support.fine_tuned import EXAMPLES, pretrained
from tests.support.stages import run_forked, run_luigi, run_of, write_run
from workflows import FineTune
from workflows.stages.task_stage import data_identity

Rows = Sequence[dict[str, Any]]


def tables_of(folder: Path, **tuning: Any) -> dict[str, Any]:
    """The tables of a run that fine-tunes tiny weights, which are written into the folder."""
    pretrained(folder)
    given = {"weights": {"luke": str(folder / "weights")}, "preset": "tiny", **tuning}
    tokenizer = {"tokenizer": str(folder / "tokenizer")}
    return {"sequences": tokenizer, "fine_tuning": given, "machine": {"device": "cpu"}}


def examples(task: str, split: str) -> Any:
    return TASKS[task].read(split_file(EXAMPLES / task, split))


def numbered(file: extractive_format.Dataset) -> extractive_format.Dataset:
    """The questions with numbers as their ids."""
    return replace(
        file, examples=tuple(replace(each, id=str(number)) for number, each in enumerate(file.examples))
    )


def content(task: str, file: Any) -> list[Any]:
    """What a file says, however it is written."""
    if task == "ner":
        return [(sentence.words, sentence.spans) for sentence in file.sentences]
    if task == "relation_classification":
        return sorted((each.text, each.head, each.tail, each.relation) for each in file.examples)
    if task == "cloze_qa":
        return [(each.question, each.passage, each.entities, set(each.answers)) for each in file.examples]
    return [(each.id, each.question, each.passage, each.page, each.answers) for each in file.examples]


# Rows as Hugging Face has them


def tag_rows(file: ColumnFile, field: str = "ner_tags") -> Rows:
    return [{"tokens": list(each.words), field: [row[-1] for row in each.rows]} for each in file.sentences]


def question_rows(file: extractive_format.Dataset) -> Rows:
    return [
        {
            "id": each.id, "title": each.page or "", "context": each.passage, "question": each.question,
            "answers": {"text": [t for _, t in each.answers], "answer_start": [n for n, _ in each.answers]},
        }
        for each in file.examples
    ]  # fmt: skip


def cloze_rows(file: cloze_format.Dataset) -> Rows:
    return [
        {
            "passage": each.passage, "query": each.question, "entities": sorted(set(each.texts())),
            "entity_spans": [{"text": each.passage[a:b], "start": a, "end": b} for a, b in each.entities],
            "answers": sorted({text for _, text in each.answers}), "idx": {"passage": 0, "query": number},
        }
        for number, each in enumerate(file.examples)
    ]  # fmt: skip


def marked_rows(file: relation_format.Dataset) -> Rows:
    return [{"sentence": marked(each), "relation": each.relation} for each in file.examples]


def marked(example: relation_format.Example) -> str:
    """The text with <e1> and <e2>."""
    text = example.text
    spans = ((*example.head, "e1"), (*example.tail, "e2"))
    for start, end, name in sorted(spans, reverse=True):  # from the right, so that no place moves
        text = f"{text[:start]}<{name}>{text[start:end]}</{name}>{text[end:]}"
    return text


# Writers: a folder, the name of the split, and its examples


def write_lines(folder: Path, split: str, rows: Rows) -> None:
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def table_of(rows: Rows, classes: str = "") -> Any:
    """A data set whose column `classes` holds numbers, with their names."""
    import datasets

    data = datasets.Dataset.from_list(list(rows))
    if classes:
        values = [row[classes] for row in rows]
        names = sorted({name for value in values for name in ([value] if isinstance(value, str) else value)})
        label: Any = datasets.ClassLabel(names=names)
        feature = label if isinstance(values[0], str) else datasets.Sequence(label)
        data = data.cast_column(classes, feature)
    return data


def write_parquet(folder: Path, split: str, rows: Rows, classes: str = "") -> None:
    """Two files, as the hub has large tables."""
    data = table_of(rows, classes)
    for number in range(2):
        data.shard(2, number, contiguous=True).to_parquet(
            str(folder / f"{split}-{number:05}-of-00002.parquet")
        )


def write_saved(folder: Path, split: str, rows: Rows, classes: str = "") -> None:
    """Two Arrow files, as `save_to_disk` writes large data sets."""
    table_of(rows, classes).save_to_disk(str(folder / split), num_shards=2)


def write_conllu(folder: Path, split: str, file: ColumnFile) -> None:
    blocks = [
        "".join(
            f"{number}\t{row[0]}\t{row[0].lower()}" + 6 * "\t_" + f"\tNER={row[-1]}\n"
            for number, row in enumerate(sentence.rows, start=1)
        )
        for sentence in file.sentences
    ]
    (folder / f"{split}.conllu").write_text(
        "\n".join(f"# sent_id = {n}\n{block}" for n, block in enumerate(blocks))
    )


def write_headed(folder: Path, split: str, file: ColumnFile) -> None:
    """Columns named in the first line, the tag in the middle."""
    blocks = ["".join(f"{row[0]}\t{row[-1]}\tX\n" for row in sentence.rows) for sentence in file.sentences]
    (folder / f"{split}.tsv").write_text("word\tNER\tpos\n" + "\n".join(blocks))


def write_letters(letters: str) -> "Writer":
    """Writes tags that say where an entity begins, goes on, ends, and is a single word, in these letters."""
    names = dict(zip("BIESO", letters, strict=True))

    def write(folder: Path, split: str, file: ColumnFile) -> None:
        blocks = []
        for sentence in file.sentences:
            tags = tags_of_spans(sentence.spans, len(sentence.words), "IOBES")
            lines = zip(sentence.words, tags, strict=True)
            blocks.append("".join(f"{word} x y {names[tag[0]]}{tag[1:]}\n" for word, tag in lines))
        (folder / f"{split}.txt").write_text("\n".join(blocks))

    return write


def write_numbers(folder: Path, split: str, file: ColumnFile) -> None:
    """JSON lines whose tags are numbers, and a file with their names."""
    rows = tag_rows(file)
    names = sorted({tag for row in rows for tag in row["ner_tags"]})
    write_lines(folder, split, [{**row, "ner_tags": [*map(names.index, row["ner_tags"])]} for row in rows])
    (folder / "labels.txt").write_text("\n".join(names))


def write_squad2(folder: Path, split: str, file: extractive_format.Dataset) -> None:
    """As SQuAD 2.0 is written, without impossible questions; ids are numbers."""
    paragraphs = [
        {
            "context": row["context"],
            "qas": [
                {
                    "id": int(row["id"]), "question": row["question"], "is_impossible": False,
                    "answers": [
                        {"text": text, "answer_start": start}
                        for text, start in zip(*row["answers"].values(), strict=True)
                    ],
                }
            ],
        }
        for row in question_rows(file)
    ]  # fmt: skip
    titles = [each.page for each in file.examples]
    articles = [
        {"title": title, "paragraphs": [each]} for title, each in zip(titles, paragraphs, strict=True)
    ]
    (folder / f"{split}.json").write_text(json.dumps({"version": "v2.0", "data": articles}))


def write_fewrel(folder: Path, split: str, file: relation_format.Dataset) -> None:
    by_relation: dict[str, list[Any]] = {}
    for each in file.examples:
        values = each.record.values
        places = [[*range(values[f"{role}_start"], values[f"{role}_end"] + 1)] for role in ("subj", "obj")]
        mentions = {name: ["", "Q1", [place]] for name, place in zip("ht", places, strict=True)}
        by_relation.setdefault(each.relation, []).append({"tokens": values["token"], **mentions})
    (folder / f"{split}.json").write_text(json.dumps(by_relation))


def write_semeval(folder: Path, split: str, file: relation_format.Dataset) -> None:
    texts = (
        f'{number}\t"{marked(each)}"\n{each.relation}\nComment:\n\n'
        for number, each in enumerate(file.examples, start=1)
    )
    (folder / f"{split}.txt").write_text("".join(texts))


# Folders of a task, whose splits have formats of their own
Writer = Callable[[Path, str, Any], None]
FOLDERS: Mapping[str, Sequence[Writer]] = {
    "ner": (
        write_conllu,
        write_headed,
        lambda folder, split, file: write_saved(folder, split, tag_rows(file, "NER"), "NER"),
    ),
    "relation_classification": (
        write_fewrel,
        write_semeval,
        lambda folder, split, file: write_parquet(folder, split, marked_rows(file), "relation"),
    ),
    "cloze_qa": (
        lambda folder, split, file: write_saved(folder, split, cloze_rows(file)),
        lambda folder, split, file: write_parquet(folder, split, cloze_rows(file)),
        lambda folder, split, file: write_lines(folder, split, cloze_rows(file)),
    ),
    "extractive_qa": (
        lambda folder, split, file: write_saved(folder, split, question_rows(file)),
        lambda folder, split, file: write_parquet(folder, split, question_rows(file)),
        lambda folder, split, file: write_lines(folder, split, question_rows(file)),
    ),
    "ner, other tags": (write_letters("BILUO"), write_letters("BMESO"), write_numbers),
    "extractive_qa, numbered": (
        write_squad2,
        write_squad2,
        lambda folder, split, file: write_lines(
            folder, split, [{**row, "id": int(row["id"])} for row in question_rows(file)]
        ),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", FOLDERS)
def test_commands_take_formats_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    data, task = tmp_path / "data", kind.partition(",")[0]
    data.mkdir()
    flag = ["--tag-column", "NER"] if kind == "ner" else []
    read: Any = TASKS[task].read
    for split, write in zip(SPLITS, FOLDERS[kind], strict=True):
        wanted = examples(task, split)
        wanted = numbered(wanted) if kind.endswith("numbered") else wanted
        write(data, split, wanted)
        found = read(split_file(data, split), **({"tag_column": "NER"} if flag else {}))
        assert content(task, found) == content(task, wanted)
    write_run(tmp_path, **tables_of(tmp_path, epochs=1, tag_column="NER" if flag else ""))
    luigi = run_luigi if kind == "ner" else run_forked
    result = luigi("FineTune", "--task", task, "--data", data, "--workdir", ".", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    [model] = tmp_path.glob("finetune-*")
    metrics = json.loads((model / "metrics.json").read_text())
    for split in ("dev", "test"):
        gold, [predictions] = split_file(data, split), model.glob(f"predictions-{split}.*")
        score([task, str(gold), str(predictions), *flag])
        assert json.loads(capsys.readouterr().out)["f1"] == metrics[split]["f1"]
    if kind == "ner":
        dev = str(data / "dev.tsv")
        score(["ner", dev, dev, *flag, "--predicted-column", "NER"])
        assert json.loads(capsys.readouterr().out)["f1"] == 1.0


def test_the_tag_column_and_the_files_of_splits_are_in_the_identity(tmp_path: Path) -> None:
    """A data set of `save_to_disk` has all its rows in folders inside."""
    data = tmp_path / "data"
    data.mkdir()
    for split in SPLITS:
        write_saved(data, split, tag_rows(examples("ner", split), "NER"), "NER")
    first, plain = (
        FineTune(settings=run_of(tmp_path, **tables_of(tmp_path, data={"ner": str(data)}, tag_column=column)))
        for column in ("NER", "")
    )
    assert first.bytes_parameters()["tag_column"] == "NER"
    names = {f"{split}/data-{number:05}-of-00002.arrow" for split in SPLITS for number in range(2)}
    assert names <= first.bytes_parameters()["data"].keys()
    assert plain.hash8 != first.hash8
    before = data_identity(str(data))
    write_saved(data, "dev", tag_rows(examples("ner", "test"), "NER"), "NER")
    changed = {name for name, digest in data_identity(str(data)).items() if before[name] != digest}
    assert changed == {f"dev/data-{number:05}-of-00002.arrow" for number in range(2)}


def test_classes_may_be_numbers_with_a_label_file(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("person\nplace\n")
    path = tmp_path / "train.jsonl"
    path.write_text('{"sent": "Ada met Bob.", "start": 0, "end": 3, "labels": [0, 1]}\n')
    assert TASKS["entity_typing"].read(path).examples[0].types == ("person", "place")
    path.write_text('{"tokens": ["Ada", "Pell", "met"], "ner_tags": [1, 2, 0]}\n')
    (tmp_path / "labels.txt").write_text("O\nB-PER\nI-PER\n")
    file = ner.TASK.read(path)
    assert file.sentences[0].spans == ((0, 2, "PER"),)
    assert ner.TASK.label_names({"train": file}, ("O", "B-PER", "I-PER")) == ("O", "PER")
    (tmp_path / "train").mkdir()
    table_of([{"tokens": ["Ada", "met"], "ner_tags": [1, 0]}]).save_to_disk(str(tmp_path / "train"))
    [table] = tmp_path.glob("train/data-*.arrow")
    assert ner.TASK.read(table).sentences[0].spans == ((0, 1, "PER"),)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "split", "written", "message"),
    [
        ("ner", "train", b"Ada B-PER\n\xff O\n", "byte 10 is not UTF-8; convert the file to UTF-8"),
        ("extractive_qa", "test", b'{"data": ' + b"[" * 100_000, ": nested too deep; wanted a JSON object"),
    ],
)
def test_the_command_says_what_is_wrong_in_a_line(
    tmp_path: Path, task: str, split: str, written: bytes, message: str
) -> None:
    """`tests/tasks/test_hostile_files.py` has many more."""
    shutil.copytree(EXAMPLES / task, tmp_path / "data")
    path = split_file(tmp_path / "data", split)
    path.write_bytes(written)
    write_run(tmp_path, **tables_of(tmp_path, data={task: "data"}))
    result = run_forked("FineTune", "--task", task, "--workdir", ".", cwd=tmp_path)
    assert result.returncode == 30
    [line] = result.stderr.splitlines()
    assert line.startswith(f"ERROR: FineTune: {path}")
    assert message in line
