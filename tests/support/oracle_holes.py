"""The oracle's holes: the rules of `pipeline.wikitext.holes`, walked over a line character by character."""

from pipeline.mediawiki.site import SiteInfo
from pipeline.wikitext.templates.table import TemplateTable

HOLE = "\ue000"  # where something was cut
Line = list[tuple[str, int]]
"""Characters, each with the number of its link, or -1."""
OPENING, SHUTTING = "(（[", ")）]"
SEPARATORS = ",;，；、،؛"
POINTS = ",;!?)]，；、。）،؛؟"


def closed(line: Line, language: str, unspaced: bool) -> Line:
    """A line without its holes."""
    if not any(char == HOLE for char, _ in line):
        return line
    lead_in = TemplateTable(SiteInfo(language, "", "first-letter", ())).lead_in
    for _ in range(3):
        line = brackets(line, lead_in)
    line = at_start(line)
    if not any(char.isalnum() or char == "_" or link >= 0 for char, link in line):
        return []
    line = points(line)
    return joints(line, unspaced)


def brackets(line: Line, lead_in: frozenset[str]) -> Line:
    """Each innermost bracket with a hole loses the parts that were cut; one without any goes."""
    out: Line = []
    place = 0
    while place < len(line):
        end = bracket_end(line, place)
        inside = line[place + 1 : end] if end else []
        if any(char == HOLE for char, _ in inside):
            kept = stripped(parts_left(inside, lead_in))
            out += [line[place], *kept, line[end]] if kept else [(HOLE, -1)]
            place = end + 1
        else:
            out.append(line[place])
            place += 1
    return out


def bracket_end(line: Line, start: int) -> int:
    """The place where the bracket that opens here is closed; 0 where it is none, or another opens first."""
    for place in range(start + 1, len(line)) if line[start][0] in OPENING else ():
        if line[place][0] in SHUTTING:
            return place
        if line[place][0] in OPENING:
            return 0
    return 0


def parts_left(inside: Line, lead_in: frozenset[str]) -> Line:
    parts: list[tuple[Line, Line]] = [([], [])]  # (separator, part)
    for each in inside:
        if each[0] in SEPARATORS:
            parts.append(([each], []))
        else:
            parts[-1][1].append(each)
    left: Line = []
    for separator, part in parts:
        bare = "".join(char for char, _ in part if char != HOLE).strip()
        has_hole = bare != "".join(char for char, _ in part).strip()
        has_link = any(link >= 0 for _, link in part)
        is_label = bare.endswith((":", "："))
        words = "".join(char if char.isalnum() or char == "_" else " " for char in bare.lower()).split()
        if not bare:
            continue
        if has_hole and has_link and is_label:
            while part[-1][0] in f" :：{HOLE}":
                part.pop()
        elif has_hole and not has_link and (is_label or bare.lower() in lead_in or lead_in.issuperset(words)):
            continue
        left += [*(separator if left else []), *part]
    return left


def stripped(part: Line) -> Line:
    while part and part[0][0] in f" {HOLE}":
        part = part[1:]
    while part and part[-1][0] in f" {HOLE}":
        part = part[:-1]
    return part


def is_point(line: Line, place: int) -> bool:
    """Return whether punctuation stands here that ends what is before it."""
    char = line[place][0] if place < len(line) else ""
    behind = line[place + 1][0] if place + 1 < len(line) else " "
    return (bool(char) and char in POINTS) or (char in tuple(".:") and not (behind.isalnum() or behind == "_"))


def at_start(line: Line) -> Line:
    """A line that begins with a hole loses the punctuation behind it."""
    place = behind = 0
    has_hole = False
    while place < len(line):
        if line[place][0] in f" {HOLE}":
            has_hole = has_hole or line[place][0] == HOLE
        elif not (has_hole and is_point(line, place)):
            break
        place += 1
        behind = place if has_hole else 0
    return line[behind:]


def points(line: Line) -> Line:
    """Before punctuation a hole takes blanks and commas along."""
    out: Line = []
    for place, each in enumerate(line):
        if each[0] == HOLE:
            behind = place
            while behind < len(line) and line[behind][0] in f" {HOLE}":
                behind += 1
            before = next((char for char, _ in reversed(out) if char != HOLE), "")
            if is_point(line, behind) and before and before in " ,;:，、،؛":
                while out and out[-1][0] in f" ,;:，、،؛{HOLE}" and out[-1][1] < 0:
                    out.pop()
                out.append(each)
                continue
        if each[0] == " " and out and out[-1][0] == HOLE and is_point(line, next_char(line, place)):
            continue
        out.append(each)
    return out


def next_char(line: Line, place: int) -> int:
    while place < len(line) and line[place][0] in f" {HOLE}":
        place += 1
    return place


def joints(line: Line, unspaced: bool) -> Line:
    """A hole between two words leaves a blank, any other nothing."""

    def is_word(place: int, step: int) -> bool:
        while 0 <= place < len(line) and line[place][0] == HOLE:
            place += step
        char, link = line[place] if 0 <= place < len(line) else ("", -1)
        if unspaced:
            return char.isascii() and char.isalnum()
        return char.isalnum() or char == "_" or (bool(char) and link >= 0)

    out: Line = []
    for place, each in enumerate(line):
        if each[0] != HOLE:
            out.append(each)
        elif is_word(place - 1, -1) and is_word(place + 1, 1) and (not out or out[-1][0] != " "):
            out.append((" ", -1))
    return out
