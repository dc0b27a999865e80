"""What a user of transformers gives to an exported model, and how its answers are read: a part of the model's card."""

from model.exchange.card import GIVEN_BY_HAND
from tasks.task import InputSettings

START = """```python
import torch
from transformers import {architecture}, LukeTokenizer

tokenizer = LukeTokenizer.from_pretrained("this folder")
model = {architecture}.from_pretrained("this folder").eval()
{code}```
"""
TYPING = """
text, mention = "Ada Lovelace wrote the first program.", (0, 12)
inputs = tokenizer(text, entity_spans=[mention], return_tensors="pt")
with torch.inference_mode():
    probabilities = model(**inputs).logits[0].sigmoid()
print([model.config.id2label[n] for n, share in enumerate(probabilities) if share > 0.5])
"""
RELATION = """
text, head, tail = "Ada Lovelace was born in London.", (0, 12), (25, 31)
inputs = tokenizer(text, entity_spans=[head, tail], return_tensors="pt")
with torch.inference_mode():
    probabilities = model(**inputs).logits[0].softmax(-1)
print(model.config.id2label[probabilities.argmax().item()])
"""
SPANS = """
text = "Ada Lovelace was born in London."
words = [(0, 3), (4, 12), (13, 16), (17, 21), (22, 24), (25, 31), (31, 32)]
spans = [(a, b) for i, (a, _) in enumerate(words) for _, b in words[i : i + 16]]
inputs = tokenizer(text, entity_spans=spans, return_tensors="pt")
with torch.inference_mode():
    probabilities = model(**inputs).logits[0].softmax(-1)
for span, best in zip(spans, probabilities.argmax(-1).tolist()):
    if best:
        print(text[slice(*span)], model.config.id2label[best])
"""
QUESTION = """
question, text = "Where was Ada born?", "Ada Lovelace was born in London."
inputs = tokenizer(question, text, return_tensors="pt")
with torch.inference_mode():
    output = model(**inputs)
first, last = output.start_logits.argmax(), output.end_logits.argmax()
print(tokenizer.decode(inputs["input_ids"][0, first : last + 1]))
"""
CODE = {
    "LukeForEntityClassification": TYPING,
    "LukeForEntityPairClassification": RELATION,
    "LukeForEntitySpanClassification": SPANS,
    "LukeForQuestionAnswering": QUESTION,
}
GIVEN = {
    "LukeForEntityClassification": "the text and the mention's characters",
    "LukeForEntityPairClassification": "the text, and the characters of the head and the tail, in this order",
    "LukeForEntitySpanClassification": (
        "the text, and the characters of all spans of up to 16 words, at most 128 of them at once; a sentence with "
        "more is asked again with the next ones. Spans do not overlap: of those that do, the one with the highest "
        "logit stands. Words end at blanks and around punctuation marks"
    ),
    "LukeForQuestionAnswering": (
        "the question and the passage. An answer has at most 30 tokens of the passage; of all its pairs of a start and "
        "an end, in this order, the one with the highest sum of logits stands"
    ),
}


def usage(architecture: str, inputs: InputSettings, *, is_bert: bool) -> str:
    """The section of a card for a model of this architecture, in Markdown."""
    if is_bert:
        return GIVEN_BY_HAND
    code = START.format(architecture=architecture, code=CODE[architecture])
    return f"{code}\nGive it {GIVEN[architecture]}. {blanks(architecture, inputs.profile)}\n"


def blanks(architecture: str, profile: str) -> str:
    """What happens to blanks, and what the answers equal."""
    if profile == "fixed":
        return "The text is given as it is, without a blank before it: answers are those of `python -m tasks.predict`."
    if architecture == "LukeForEntitySpanClassification":
        return (
            "The model was trained with a blank before each word but punctuation marks, where this tokenizer puts one "
            "before them, too: answers can differ from those of `python -m tasks.predict`."
        )
    return "The tokenizer puts a blank before the text and after each mention, as in the training."
