"""Holes in a sentence where something was cut: closed as a copy-editor would, and counted.

Only what stands beside a mark of something cut is touched. A bracket loses the parts that were cut, and goes where none
is left; a comma, colon or blank before other punctuation goes; a line of punctuation alone goes; and two words that
something parted stay two words:

    >>> close_holes(f"Berlin ({GONE}, {GONE}; born in 1237) is {GONE}, 15{GONE}September", frozenset(), Counter())
    'Berlin (born in 1237) is, 15 September'
"""

import re
from collections import Counter

from pipeline.wikitext.placeholders import CLOSE, CUT, FORMULA, GONE, KIND, OPEN, SPOKEN

Words = frozenset[str]
# Each begins with a character that is looked for fast; no two parts of one can match the same.
_DOUBLED = re.compile(f"{GONE}{GONE}+")
_RUN = re.compile(f"{GONE}(?: +{GONE})+")
_SLASHES = re.compile(rf"/ *{GONE}{KIND}* */")
_EMPTY_LINK = re.compile(f"( *)((?:{OPEN}{CLOSE})+)")
_BRACKETS = [
    re.compile(rf"\{opens}[^\{opens}\{shuts}\n{GONE}]*{GONE}[^\{opens}\{shuts}\n]*\{shuts}")
    for opens, shuts in ("[]", "（）", "()")
]
_LONGEST_LABEL = 3  # words of a label with a link, such as "in [[Polish language|Polish]]:"
_DEEPEST = 3  # brackets in brackets
_SEPARATOR = re.compile("([,;，；、،؛])")
_WORD = re.compile(r"\w+")
_CLOSED = "\x1d"  # a hole whose blanks and commas on the left go
_POINT = r"[,;!?)\]，；、。）،؛؟]|[.:](?!\w)"
_BEFORE_POINT = re.compile(rf"{GONE}(?:(?<=[ ,;:，、،؛]{GONE}) *| +)(?={_POINT})")
_AT_START = re.compile(rf"\n *{GONE} *(?:(?:{_POINT}) *{GONE}? *)+")
_NO_WORDS = re.compile(rf"\n[^\w\n{OPEN}{GONE}]*{GONE}[^\w\n{OPEN}]*(?=\n)")
# Hangul writes its particles on the word, so that no blank is missing before one.
_JOINT = re.compile(rf"{GONE}(?<=[\w{CLOSE}]{GONE})(?=[\w{OPEN}])(?![가-힣])")
_UNSPACED_JOINT = re.compile(rf"{GONE}(?<=[0-9A-Za-z]{GONE})(?=[0-9A-Za-z])")


def close_holes(
    text: str, lead_in: Words, drops: Counter[str], spoken: Words = frozenset(), *, unspaced: bool = False
) -> str:
    """Lines, with their marks, without the holes beside GONE and CUT; links stay links.

    `lead_in` are words in small letters that stand before a template alone, and go with it, and `spoken` those that
    stand beside a pronunciation; a link there stays without text. `unspaced` scripts have no blanks between words.
    """
    text = text.replace(CUT, "")
    if GONE not in text:
        return text
    text = _RUN.sub(f"{GONE} ", _DOUBLED.sub(GONE, f"\n{text}\n"))
    if KIND in text:
        text = _SLASHES.sub(GONE, text)
    for _ in range(_DEEPEST):
        before = text
        for brackets in _BRACKETS:
            text = brackets.sub(lambda found: _without_holes(found.group(), lead_in, spoken, drops), text)
        if text == before:
            break
    if KIND in text:
        text = _RUN.sub(f"{GONE} ", _DOUBLED.sub(GONE, text.replace(KIND, "")))
        text = _EMPTY_LINK.sub(r"\2\1", text) if f"{OPEN}{CLOSE}" in text else text
    text, at_start = _AT_START.subn("\n", text)
    text = _NO_WORDS.sub(lambda line: _empty(line.group(), drops), text)
    text, before_point = _BEFORE_POINT.subn(_CLOSED, text)
    if before_point:
        *pieces, last = text.split(_CLOSED)
        text = "".join([piece.rstrip(f" ,;:，、،؛{GONE}") for piece in pieces] + [last])
    drops["holes:punctuation"] += at_start + before_point
    return (_UNSPACED_JOINT if unspaced else _JOINT).sub(" ", text)[1:-1]


def _empty(line: str, drops: Counter[str]) -> str:
    if line.replace(GONE, "").strip():
        drops["holes:line"] += 1
    return "\n"


def _without_holes(bracket: str, lead_in: Words, spoken: Words, drops: Counter[str]) -> str:
    """A bracket without the parts that were cut; GONE where none is left."""
    pieces = _SEPARATOR.split(bracket[1:-1])
    kept: list[str] = []
    links = before = ""  # the links of the parts that go
    for separator, part in zip(["", *pieces[1::2]], pieces[::2], strict=True):
        if filled := _without_hole(part, spoken if SPOKEN in part else lead_in):
            kept += [links, separator, filled] if before else [links, filled.lstrip(" ")]
            links, before = "", filled
        else:
            links += f"{OPEN}{CLOSE}" * part.count(OPEN)
    inside = "".join(kept).strip(f" {GONE}{KIND}")
    if not before:
        drops["holes:brackets"] += 1
        return f"{links}{GONE}{KIND * bool(links)}"
    return f"{bracket[0]}{inside}{links}{bracket[-1]}"


def _without_hole(part: str, lead_in: Words) -> str:
    """A part of a bracket; "" where what it held was cut, and a label or a small word alone is left.

    The words beside a formula stay; a link goes with a pronunciation alone.
    """
    bare = part.replace(GONE, "").replace(KIND, "").strip()
    if bare == part.strip() or not bare:
        return part if bare else ""
    has_label_alone = bare.endswith((":", "："))
    words = _WORD.findall(bare.lower())
    has_text = OPEN in part and (SPOKEN not in part or len(words) > _LONGEST_LABEL)
    if has_text or FORMULA in part:
        return part.rstrip(f" :：{GONE}{KIND}") if has_label_alone else part
    return "" if has_label_alone or bare.lower() in lead_in or lead_in.issuperset(words) else part
