"""Templates without a rule: an argument that reads as running text is most likely shown.

>>> guess(Arguments("refsouh|Le pont fut construit par des moines au bord de la rivière|date=2010"))
'Le pont fut construit par des moines au bord de la rivière'
>>> guess(Arguments("see|Bridges of monks")) is None
True
"""

import re

from pipeline.wikitext.templates.rules import Arguments

_LEAST_WORDS, _LEAST_LETTERS = 6, 24  # in scripts with and without blanks between words
_LONGEST_OTHER = 40  # characters of the arguments beside the text
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_LINK = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]\n]*)\]\]")
_NO_TEXT = re.compile(
    r"\n[*#:;|!{]|//|www\.|\b\w+=|\.(?:jpe?g|png|svg|gif|tiff?|og[agv]|webm|wav|mp3|pdf)\b", re.IGNORECASE
)
_SENTENCE = re.compile(r"[.!?…。！？؟।։။][\s\"'”’»)」』\]]*$")
MAY_BE_TEXT = re.compile(r"\s*\|(?![^\[\]{}|=<>]{0,40}=)")  # behind a name: the first argument has none


def guess(arguments: Arguments) -> str | None:
    """Return the argument that reads as running text, of a template that stands alone on its line a whole sentence.

    All other arguments are short. None where there is no such argument.
    """
    numbered = [value for key, value in arguments.items() if key.isdecimal() and key != "0"]
    text = arguments.shown(max(numbered, key=len, default=""))
    if len(text) < _LEAST_LETTERS or (text.isascii() and text.count(" ") < _LEAST_WORDS - 1):
        return None
    others = sum(map(len, arguments.values())) - len(arguments["0"]) - len(text)
    if others > _LONGEST_OTHER or _NO_TEXT.search(f"\n{text}") or (arguments.alone and not _SENTENCE.search(text)):
        return None
    words = _WORD.findall(_LINK.sub(r"\1", text))
    unspaced = not text.isascii() and any(len(word) >= _LEAST_LETTERS // 2 for word in words)
    enough = len(words) >= _LEAST_WORDS or (unspaced and sum(map(len, words)) >= _LEAST_LETTERS)
    return text if enough and 2 * sum(word[0].isupper() for word in words) < len(words) else None
