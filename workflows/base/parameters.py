"""Luigi's parameters, with errors that name the parameter, the value found and what is wanted."""

import json
import math
import operator
import re
from typing import Any

import luigi

AUTO = "auto"


class Checked(luigi.Parameter[Any]):
    """A parameter that checks every value, from the command line or from Python, and says what is wanted.

    Args:
        wanted: what a value has to be.
        or_auto: whether the word `auto` is a value, too.
        options: of Luigi's class.
    """

    def __init__(
        self, wanted: str, *, default: Any = "", description: str = "", or_auto: bool = False, **options: Any
    ) -> None:
        super().__init__(default=default, **options)
        self.description = f"{description} (default: {default})"  # Luigi adds the range in its own words
        self.or_auto = or_auto
        self.wanted = f"{wanted}, or auto" if or_auto else wanted

    def convert(self, text: str) -> Any:
        """The value of a text. Raises: ValueError where it has none."""
        return super().parse(text)

    def parse(self, text: str) -> Any:
        return self.normalize(text)

    def normalize(self, value: Any) -> Any:
        if self.or_auto and value == AUTO:
            return AUTO
        try:
            return self.convert(str(value))
        except ValueError:
            raise ValueError(f"--{self.flag} {value}: wanted {self.wanted}") from None

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return (self._attribute_name or "value").replace("_", "-")


class WholeNumber(Checked, luigi.NumericalParameter[Any]):
    """A whole number, `least` or more."""

    def __init__(self, *, least: int = 0, **options: Any) -> None:
        wanted = f"a whole number, {least} or more"
        super().__init__(wanted, var_type=int, min_value=least, max_value=math.inf, **options)


class PositiveNumber(Checked, luigi.NumericalParameter[Any]):
    """A number above 0."""

    def __init__(self, **options: Any) -> None:
        bounds: dict[str, Any] = {"min_value": 0, "max_value": math.inf, "left_op": operator.lt}
        super().__init__("a number above 0, as 1e-5", var_type=float, **bounds, **options)


class Share(Checked, luigi.NumericalParameter[Any]):
    """A number from 0 to 1."""

    def __init__(self, **options: Any) -> None:
        bounds: dict[str, Any] = {"min_value": 0, "max_value": 1, "right_op": operator.le}
        super().__init__("a share between 0 and 1", var_type=float, **bounds, **options)


class OneOf(Checked, luigi.ChoiceParameter[Any]):
    """One of a few words."""

    def __init__(self, *choices: str, description: str = "", **options: Any) -> None:
        description = f"{', '.join(choices)}: {description}"
        super().__init__(f"one of {', '.join(choices)}", choices=choices, description=description, **options)

    def convert(self, text: str) -> Any:
        return luigi.ChoiceParameter.normalize(self, text)


class Matching(Checked):
    """A text that matches a regular expression."""

    def __init__(self, pattern: str, wanted: str, **options: Any) -> None:
        super().__init__(wanted, **options)
        self._pattern = re.compile(pattern, re.DOTALL)

    def convert(self, text: str) -> str:
        if not self._pattern.fullmatch(text):
            raise ValueError(text)
        return text


class Text(Matching):
    """A text that is not empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(".+", "a value that is not empty", **options)


class Size(Checked):
    """Bytes, with or without a unit."""

    def __init__(self, **options: Any) -> None:
        super().__init__("a size of 4096 bytes or more as 1000000, 256KiB or 4MiB", **options)

    def convert(self, text: str) -> int:
        match = re.fullmatch(r"(\d+)\s*(?:([KMG])(I?)B|B?)", text.upper())
        size = int(match[1]) * (1024 if match[3] else 1000) ** " KMG".index(match[2] or " ") if match else 0
        if size < 4096:
            raise ValueError(text)
        return size


class ListOf(Checked):
    """Values of another parameter, each once unless it `repeats`, with commas between them; a tuple."""

    def __init__(self, item: Checked, *, repeats: bool = False, **options: Any) -> None:
        each_once = "" if repeats else ", each once"
        super().__init__(f"{item.wanted}; several with commas between them{each_once}", **options)
        self._item = item
        self._repeats = repeats

    def convert(self, text: str) -> tuple[Any, ...]:
        values = tuple(self._item.convert(word.strip()) for word in text.split(","))
        if len(set(values)) < len(values) and not self._repeats:
            raise ValueError(text)
        return values

    def normalize(self, value: Any) -> Any:
        return super().normalize(value if isinstance(value, str) else self.serialize(value))

    def serialize(self, value: Any) -> str:
        return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


class Pairs(Checked):
    """NAME=VALUE, with names that match a regular expression; the flag may be repeated. A tuple of such texts."""

    def __init__(self, names: str, wanted: str, **options: Any) -> None:
        super().__init__(wanted, **options)
        self._pair = re.compile(f"({names})=.*", re.DOTALL)

    @classmethod
    def _parser_kwargs(cls, *names: Any) -> dict[str, Any]:
        return {**super()._parser_kwargs(*names), "action": "append"}

    def normalize(self, value: Any) -> tuple[str, ...]:
        """The pairs of a list, of its JSON, or of a text that is one."""
        if isinstance(value, str):
            value = json.loads(value) if value.startswith("[") else [value] * bool(value)
        names = set()
        for pair in value:
            match = self._pair.fullmatch(pair)
            if not match or match[1] in names:
                raise ValueError(f"--{self.flag} {pair}: wanted {self.wanted}")
            names.add(match[1])
        return tuple(value)

    def serialize(self, value: Any) -> str:
        return json.dumps(value) if value else ""
