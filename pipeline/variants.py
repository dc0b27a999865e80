"""Wikis in several scripts: of ``-{zh-hans:...; zh-hant:...}-``, what a reader sees who has chosen none of them."""

import re
from collections import Counter
from collections.abc import Sequence

_CONVERSION = re.compile(r"-\{([^{}]*)\}-")
_FLAGS = frozenset("ADHNRT-")
_HIDDEN_FLAGS = frozenset("DHNT-")  # a rule for elsewhere, a description of it, a name of a variant
_MAX_DEPTH = 10  # as in MediaWiki


def choose_variants(text: str, variants: Sequence[str], drops: Counter[str]) -> str:
    """The text with one form of whatever has several; ``variants`` are a wiki's codes, the first of them preferred.

    Time is linear in the text.
    """

    def shown(conversion: re.Match[str]) -> str:
        kept = _shown(conversion[1], variants)
        if kept != conversion[1]:
            drops["markup:variants"] += 1
        return kept

    for _ in range(_MAX_DEPTH):
        text, found = _CONVERSION.subn(shown, text)
        if not found:
            break
    return text


def _shown(content: str, variants: Sequence[str]) -> str:
    before, bar, behind = content.partition("|")
    flags = {flag.strip() for flag in before.split(";")} if bar else set()
    if not flags <= _FLAGS | {"", *variants}:  # the bar is that of a link
        flags = set()
    rules = behind if flags else content
    if flags & _HIDDEN_FLAGS and "A" not in flags:
        return ""
    if "R" in flags or not flags.isdisjoint(variants):
        return rules
    forms = _forms(rules, variants)
    return next((forms[variant] for variant in variants if variant in forms), rules)


def _forms(rules: str, variants: Sequence[str]) -> dict[str, str]:
    """The form for each variant; none where the text is no list of rules. A semicolon may be part of a form."""
    forms: dict[str, list[str]] = {}
    latest: list[str] = []
    for piece in rules.split(";"):
        left, colon, form = piece.partition(":")
        code = left.rpartition("=>")[2].strip()
        if colon and code in variants:
            latest = forms[code] = [form]
        elif not latest:
            return {}
        elif piece.strip():
            latest.append(piece)
    return {code: ";".join(form).strip() for code, form in forms.items()}
