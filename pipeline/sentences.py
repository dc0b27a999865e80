"""Sentence boundaries by language."""

import sentencex


def split(text: str, language: str) -> list[tuple[int, int]]:
    """Half-open spans of a text's sentences in code points, without blank edges and empty ones.

    ``language`` is a wiki's code ("en", "de", ...); codes that the splitter does not know use its general
    rules.
    """
    spans = []
    for boundary in sentencex.get_sentence_boundaries(language, text):
        start, end = boundary["start_index"], boundary["end_index"]
        sentence = text[start:end]
        start += len(sentence) - len(sentence.lstrip())
        end = start + len(sentence.strip())
        if start < end:
            spans.append((start, end))
    return spans
