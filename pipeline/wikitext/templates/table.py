"""The rules of a wiki's templates, by their names."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from pipeline.mediawiki.languages import TEMPLATE, base_language, read_table
from pipeline.mediawiki.numbers import number_format
from pipeline.mediawiki.site import SiteInfo
from pipeline.mediawiki.wiki_rules import parse_rules
from pipeline.wikitext.templates.bodies import compile_body
from pipeline.wikitext.templates.functions import FUNCTIONS
from pipeline.wikitext.templates.rules import Rule, Wiki, compile_rule

EVERYWHERE = "any"  # the tables of all wikis
_KNOWN_NAMES = 1 << 16
LONGEST_KNOWN = 500  # characters of a name that is remembered: a page may have longer ones, but no title
_MOST_REDIRECTS = 4  # of a template, one after another

DumpTemplates = Callable[[str], tuple[str, str] | None]
"""The body of a name's page in the dump, and the name that it redirects to, one of which is empty."""


def silent(arguments: object) -> str:
    """The rule of a template that shows no text in running text."""
    return ""


def fold(name: str, prefixes: Collection[str] = ("template",), *, keeps_case: bool = False) -> str:
    """A template's name as the tables file it: without its namespace (`prefixes` name it), the first letter small.

    With `keeps_case` the first letter stays, as in titles of wikis where it tells pages apart.
    """
    name = " ".join(name.replace("_", " ").split())
    prefix, colon, rest = name.partition(":")
    if colon and prefix.strip().lower() in prefixes:
        name = rest.strip()
    return name if keeps_case else name[:1].lower() + name[1:]


class TemplateTable:
    """The rules of a wiki's templates; where there is none, what the dump's own template pages say.

    `lead_in` are small words that stand before a template alone, and go with it. Where titles keep their case, the
    dump's templates are told apart by the case of their first letter, too.
    """

    def __init__(self, site: SiteInfo, dumped: DumpTemplates | None = None) -> None:
        tables, own = read_table("templates"), parse_rules(site.rules).get("templates")
        self._dumped, self._prefixes = dumped, site.spellings(TEMPLATE)
        self._keeps_case = site.case == "case-sensitive"
        # A language's tables win over those of all, and the user's over both.
        codes = EVERYWHERE, base_language(site.language)
        found: list[Mapping[str, Any]] = [tables[code] for code in codes if code in tables]
        months = found[-1].get("months", ())
        found += [own] if own else []
        names: dict[str, str] = _merged(found, "languages")
        self.wiki = Wiki(site.language, site.name, names, months, number_format(site.language))
        self.lead_in = frozenset(word.lower() for table in found for word in table.get("lead_in", ()))
        self._rules: dict[str, Rule] = {}
        for function, words in read_table("magic_words")["variables"].items():
            rule = self._compile(f"={function}")
            self._rules |= {f"{fold(word)}:".lower(): rule for word in words}
            self._rules |= {fold(word): rule for word in words if function.startswith("variable")}
        self._begins: dict[str, Rule] = {}
        self._patterns: dict[re.Pattern[str], str] = {}
        self._ends = tuple(ending for table in found for ending in table.get("silent_ends", ()))
        for table in found:
            self._rules |= dict.fromkeys(_names([table], "silent"), silent)
            self._begins |= dict.fromkeys(_names([table], "silent_begins"), silent)
            self._rules |= {fold(name): self._compile(rule) for name, rule in _texts(table)}
            begins, patterns = table.get("begins", {}), table.get("patterns", {})
            self._begins |= {fold(name): self._compile(rule) for name, rule in begins.items()}
            self._patterns |= {re.compile(pattern): rule for pattern, rule in patterns.items()}
        for name, other in _merged(found, "same").items():
            if known := self._rules.get(fold(other)):
                self._rules.setdefault(fold(name), known)
        self.spoken = frozenset(_names(found, "spoken"))
        self._rules |= dict.fromkeys(self.spoken, compile_rule("{1}"))
        self._longest = sorted(self._begins, key=len, reverse=True)
        self._by_name: dict[str, tuple[str, Rule | None]] = {}

    @staticmethod
    def _compile(text: str) -> Rule:
        if not text.startswith("=") or text == "=":
            return compile_rule(text)
        name, _, option = text[1:].partition(" ")
        function = FUNCTIONS[name]
        return lambda arguments: function(arguments, option)

    def find(self, raw: str) -> tuple[str, Rule | None]:
        """(the folded name, the rule or None) of a template whose name is written so; remembers what it was asked.

        The name is the one at which the dump's redirects end.
        """
        if (found := self._by_name.get(raw)) is None:
            name = fold(raw, self._prefixes, keeps_case=self._keeps_case)
            folded = fold(name, ())
            rule = self._rule(folded)
            found = self._in_dump(name, self._dumped) if rule is None and self._dumped else (folded, rule)
            if len(self._by_name) == _KNOWN_NAMES:
                self._by_name.clear()
            if len(raw) <= LONGEST_KNOWN:
                self._by_name[raw] = found
        return found

    def _in_dump(self, name: str, dumped: DumpTemplates) -> tuple[str, Rule | None]:
        """The rule of the body or of the name to which redirects lead; a circle of them has none."""
        for _ in range(_MOST_REDIRECTS + 1):
            if (found := dumped(name)) is None:
                break
            body, target = found
            if not target:
                return name, compile_body(body) if body.strip() else silent
            name = target
            if rule := self._rule(folded := fold(name, ())):
                return folded, rule if rule is silent else _called(folded, rule)
        return name, None

    def _rule(self, name: str) -> Rule | None:
        if rule := self._rules.get(name):
            return rule
        if ":" in name:  # a parser function, whose first argument follows the colon
            return self._rules.get(name[: name.index(":") + 1].lower())
        begins = next((begins for begins in self._longest if name.startswith(begins)), None)
        if begins is not None:
            return self._begins[begins]
        if name.endswith(self._ends):
            return silent
        found = ((pattern.fullmatch(name), rule) for pattern, rule in self._patterns.items())
        return next((self._compile(match.expand(rule)) for match, rule in found if match), None)


def _called(name: str, rule: Rule) -> Rule:
    """The rule where the template is called by another name."""
    return lambda arguments: rule(arguments.called(name))


def _texts(table: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, rule) of a table's templates: first those of which many have one form."""
    for rule, names in table.get("forms", {}).items():
        yield from ((name, rule) for name in names)
    yield from table.get("text", {}).items()


def _names(tables: Iterable[Mapping[str, Any]], key: str) -> list[str]:
    """The names in a list of all tables; a beginning keeps its last blank."""
    names = [name for table in tables for name in table.get(key, ())]
    return [fold(name) + " " * name.endswith(" ") for name in names]


def _merged(tables: Iterable[Mapping[str, Any]], key: str) -> dict[str, Any]:
    return {name: value for table in tables for name, value in table.get(key, {}).items()}
