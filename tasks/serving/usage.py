"""What a user of transformers gives to an exported model, and how its answers are read: a part of the model's card."""

import inspect

from tasks.ner.words import word_pattern
from tasks.questions.extractive_input import MAX_QUESTION

LUKE = """{imports}import torch
from transformers import {name}, LukeTokenizer

tokenizer = LukeTokenizer.from_pretrained("this folder")
model = {name}.from_pretrained("this folder").eval()
"""
LOGITS = """
@torch.inference_mode()
def logits(text, spans):
    return model(**tokenizer(text, entity_spans=spans, return_tensors="pt")).logits[0]
"""
# Places for passes of the model are found once: where a text is cut into sub-words depends on all spans.
PASSES = """
def passes(spans):  # as in training, where a pass of the model has at most 128 spans
    count = -(-len(spans) // 128)
    return [slice(n * len(spans) // count, (n + 1) * len(spans) // count) for n in range(count)]
"""
LOGITS_OF_SPANS = """
@torch.inference_mode()
def logits(text, spans):
    inputs = tokenizer(text, entity_spans=spans, return_tensors="pt")
    words = {name: value for name, value in inputs.items() if not name.startswith("entity")}
    entities = {name: value for name, value in inputs.items() if name not in words}
    parts = [{name: value[:, part] for name, value in entities.items()} for part in passes(spans)]
    return torch.cat([model(**words, **part).logits[0] for part in parts])
"""
ENCODE = """
def encode(piece):
    return tokenizer(piece, add_special_tokens=False)["input_ids"]

"""
# Without entities: the classifier beside the encoder gets the states of sub-words.
WORDS = """{imports}import torch
from safetensors.torch import load_file
from transformers import AutoTokenizer, {name}

tokenizer = AutoTokenizer.from_pretrained("this folder")
model = {name}.from_pretrained("this folder").eval()
head = load_file("this folder/head.safetensors")
{encode}def classify(ids, places):
    ids = [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
    first, end = torch.tensor(places).T + 1
    states = model(torch.tensor([ids])).last_hidden_state[0][{states}].flatten(-2)
    return torch.nn.functional.linear(states, head["weight"], head.get("bias"))
"""
# BertTokenizer knows no entities.
LUKE_OF_BERT = """import json

{imports}import torch
from transformers import AutoTokenizer, {name}

tokenizer = AutoTokenizer.from_pretrained("this folder")
model = {name}.from_pretrained("this folder").eval()
with open("this folder/entity_vocab.json", encoding="utf-8") as file:
    entities = json.load(file)
{encode}def classify(ids, places):
    ids = [tokenizer.cls_token_id, *ids, tokenizer.sep_token_id]
    titles = {titles}
    rows = [[*range(first + 1, end + 1)][:30] for first, end in places]
    longest = max(map(len, rows))
    return model(
        input_ids=torch.tensor([ids]),
        entity_ids=torch.tensor([[entities[title] for title in titles]]),
        entity_position_ids=torch.tensor([[row + [-1] * (longest - len(row)) for row in rows]]),{ends}
    ).logits[0]
"""
# Sub-words of a text, and which of them each mention (with its two markers) or span has: from the first to the end.
MENTIONS = """
@torch.inference_mode()
def logits(text, spans):
    marks = [((start, 1, -end, n), start, n) for n, (start, end) in enumerate(spans)]
    marks += [((end, 0, -start, -n), end, n) for n, (start, end) in enumerate(spans)]
    ids, places, last = [], [[] for _ in spans], 0
    for _, place, n in sorted(marks):  # of nested mentions the outer one opens first and closes last
        place -= text[:place].endswith(" ")
        ids += encode(text[last:place])
        places[n].append(len(ids))
        ids.append(tokenizer.convert_tokens_to_ids(("<ent>", "<ent2>")[n]))
        last = place
    ids += encode(text[last:])
    return classify(ids, [(first, close + 1) for first, close in places])
"""
WORDS_OF_SPANS = """
@torch.inference_mode()
def logits(text, spans):
    ids, before, done = [], {}, 0
    for place in sorted({place for span in spans for place in span}):
        cut = place - text[:place].endswith(" ")
        ids += encode(text[done:cut])
        done = cut
        before[place] = len(ids)
    ids += encode(text[done:])
    places = [(before[start], before[end]) for start, end in spans]
    return torch.cat([classify(ids, places[part]) for part in passes(spans)])
"""
ENDS = """
        entity_start_positions=torch.tensor([[first + 1 for first, _ in places]]),
        entity_end_positions=torch.tensor([[end for _, end in places]]),"""
TYPING = """
def answer(text, mention):
    probabilities = (logits(text, [mention]) / model.config.calibration_temperature).sigmoid()
    return {model.config.id2label[n]: share for n, share in enumerate(probabilities.tolist()) if share > 0.5}

print(answer("Ada Lovelace wrote the first program.", (0, 12)))
"""
RELATION = """
def answer(text, head, tail):
    probabilities = (logits(text, [head, tail]) / model.config.calibration_temperature).softmax(-1)
    return model.config.id2label[probabilities.argmax().item()], probabilities.max().item()

print(answer("Ada Lovelace was born in London.", (0, 12), (25, 31)))
"""
SPLITTER = f"""
{inspect.getsource(word_pattern)}
WORD = word_pattern()
"""
SPANS = """
def answer(sentence):
    words = [match.span() for match in WORD.finditer(sentence)]
    spans = [(start, end) for n, (start, _) in enumerate(words) for _, end in words[n : n + 16]]
    if not spans:
        return []
    scores = logits(sentence, spans)
    probabilities = (scores / model.config.calibration_temperature).softmax(-1).amax(-1).tolist()
    scores, classes = scores.max(-1)
    found = []
    for n in scores.argsort(descending=True, stable=True).tolist():
        start, end = spans[n]
        if classes[n] and all(end <= first or last <= start for first, last, *_ in found):
            found.append((start, end, model.config.id2label[classes[n].item()], probabilities[n]))
    return sorted(found)

print(answer("Ada Lovelace was born in London."))
"""
QUESTION = """import torch
from transformers import {name}, {tokenizer}

tokenizer = {tokenizer}.from_pretrained("this folder")
model = {name}.from_pretrained("this folder").eval()

@torch.inference_mode()
def answer(question, text):
    inputs = tokenizer(question, text, return_tensors="pt"{offsets})
    {places}output = model(**inputs)
    ids = inputs["input_ids"][0]
    begin = (ids == tokenizer.sep_token_id).nonzero()[-2].item() + 1  # of the passage
    scores = output.start_logits[0][:, None] + output.end_logits[0]
    has_text = torch.tensor([bool(tokenizer.decode([n]).strip()) for n in ids.tolist()])
    allowed = (has_text[:, None] & has_text).triu().tril(29)  # 30 tokens at most, from the first to the last
    allowed[:begin] = allowed[:, len(ids) - 1 :] = False
    scores = scores.masked_fill(~allowed, -torch.inf).flatten()
    probabilities = (scores / model.config.calibration_temperature).softmax(-1)
    first, last = divmod(scores.argmax().item(), len(ids))
    return {text}.strip(), probabilities.max().item()

print(answer("Where was Ada born?", "Ada Lovelace was born in London."))
"""
# How the answer's text is had: LukeTokenizer does not tell characters.
OF_LUKE = {
    "tokenizer": "LukeTokenizer",
    "offsets": "",
    "places": "",
    "text": "tokenizer.decode(ids[first : last + 1])",
}
OF_WORDS = {
    "tokenizer": "AutoTokenizer",
    "offsets": ", return_offsets_mapping=True",
    "places": 'places = inputs.pop("offset_mapping")[0].tolist()\n    ',
    "text": "text[places[first][0] : places[last][1]]",
}
CALIBRATED = """
Probabilities are those of the logits divided by `calibration_temperature` of config.json, which was fitted on dev.
Transformers' own pipelines do not divide, so that theirs are others; the answers are the same.
"""
ANSWERS = {
    "LukeForEntityClassification": TYPING,
    "LukeForEntityPairClassification": RELATION,
    "LukeForEntitySpanClassification": SPLITTER + SPANS,
}
GIVEN = {
    "LukeForEntityClassification": "the text and the mention's characters",
    "LukeForEntityPairClassification": "the text, and the characters of the head and the tail, in this order",
    "LukeForEntitySpanClassification": (
        "a sentence as plain text. It is split into words as `python -m tasks.predict --text` does, and all spans of "
        "up to 16 words are classified. Of a text of several sentences that command gives the model those around each, "
        "too"
    ),
    "LukeForQuestionAnswering": (
        f"the question, of at most {MAX_QUESTION} sub-words (`python -m tasks.predict` cuts a longer one), and the "
        "passage, not longer than the model's input together"
    ),
}


def usage(architecture: str, name: str, profile: str, *, is_bert: bool, has_entities: bool) -> str:
    """The section of a card in Markdown.

    `architecture` is transformers' LUKE for the task, `name` the class that the folder is loaded with.
    """
    program = program_of(architecture, name, is_bert=is_bert, has_entities=has_entities)
    given = f"Give it {GIVEN[architecture]}. {blanks(architecture, profile)}"
    if architecture == "LukeForEntityPairClassification" and has_entities and not is_bert:
        given += " But LukeTokenizer marks mentions that share words in another way, so that answers to these differ."
    return f"```python\n{program}```\n\n{given}\n{CALIBRATED}"


def program_of(architecture: str, name: str, *, is_bert: bool, has_entities: bool) -> str:
    """A Python program with a function `answer` and an example."""
    if architecture == "LukeForQuestionAnswering":
        return QUESTION.format(name=name, **(OF_LUKE if has_entities and not is_bert else OF_WORDS))
    is_of_spans = architecture == "LukeForEntitySpanClassification"
    imports = "import regex  # comes with transformers\n" if is_of_spans else ""
    if not has_entities:
        states = "torch.stack([first, end - 1], 1)" if is_of_spans else "first"
        begin = WORDS.format(imports=imports, name=name, encode=ENCODE, states=states)
    elif is_bert:
        titles = '["[MASK]"] * len(places)' if is_of_spans else '["[MASK]", "[MASK2]"][: len(places)]'
        ends = ENDS if is_of_spans else ""
        begin = LUKE_OF_BERT.format(imports=imports, name=name, encode=ENCODE, titles=titles, ends=ends)
    else:
        of_texts = PASSES + LOGITS_OF_SPANS if is_of_spans else LOGITS
        return LUKE.format(imports=imports, name=name) + of_texts + ANSWERS[architecture]
    of_texts = PASSES + WORDS_OF_SPANS if is_of_spans else MENTIONS
    return begin + of_texts + ANSWERS[architecture]


def blanks(architecture: str, profile: str) -> str:
    """What happens to blanks, and what the answers equal."""
    if profile == "fixed":
        return "A text is given as it is, without a blank before it: answers are those of `python -m tasks.predict`."
    if architecture == "LukeForEntitySpanClassification":
        return (
            "The model was trained with a blank before each word but punctuation marks, where this tokenizer puts one "
            "before them, too: answers can differ from those of `python -m tasks.predict`."
        )
    return "The tokenizer puts a blank before the text and after each mention, as in the training."
