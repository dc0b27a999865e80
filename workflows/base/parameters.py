"""Luigi parameters whose errors name the parameter, the value and what was wanted."""

import math
import os
import re
from typing import Any

import luigi

AUTO = "auto"
_UNITS = {
    "": 1,
    "B": 1,
    "KIB": 1 << 10,
    "MIB": 1 << 20,
    "GIB": 1 << 30,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}


def default_processes() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Checked(luigi.Parameter[Any]):
    """A parameter that turns text into a value, or says why it cannot."""

    wanted = "a value"

    def __init__(self, *, default: Any, description: str, **settings: Any) -> None:
        super().__init__(default=default, description=f"{description} (default: {default})", **settings)

    def convert(self, text: str) -> Any:
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        return self.normalize(text)

    def normalize(self, value: Any) -> Any:
        try:
            return self.convert(str(value))
        except ValueError:
            name = self._attribute_name or "value"
            raise ValueError(f"--{name.replace('_', '-')} {value}: wanted {self.wanted}") from None

    def serialize(self, value: Any) -> str:
        return str(value)


class IntegerParameter(_Checked):
    """A whole number from 0."""

    wanted = "a whole number, 0 or more"

    def convert(self, text: str) -> int:
        number = int(text)
        if number < 0:
            raise ValueError
        return number


class PositiveParameter(IntegerParameter):
    """A whole number from 1."""

    wanted = "a whole number, 1 or more"

    def convert(self, text: str) -> int:
        return super().convert(text) or _refuse()


class ShareParameter(_Checked):
    """A number from 0 to 1."""

    wanted = "a share between 0 and 1"

    def convert(self, text: str) -> float:
        share = float(text)
        return share if 0 <= share <= 1 else _refuse()


class CountParameter(PositiveParameter):
    """A whole number from 1, or `auto`."""

    wanted = "a whole number, 1 or more, or auto"

    def convert(self, text: str) -> Any:
        return text if text == AUTO else super().convert(text)


class NumberParameter(_Checked):
    """A number above 0."""

    wanted = "a number above 0, as 1e-5"

    def convert(self, text: str) -> Any:
        return float(text) if 0 < float(text) < math.inf else _refuse()


class RateParameter(NumberParameter):
    """A number above 0, or `auto`."""

    wanted = "a number above 0, as 1e-5, or auto"

    def convert(self, text: str) -> Any:
        return text if text == AUTO else super().convert(text)


class VocabSizeParameter(_Checked):
    """Entities in the vocabulary, or `auto`."""

    wanted = "a whole number, 4 or more ([PAD], [UNK], [MASK] and an entity), or auto"

    def convert(self, text: str) -> int | str:
        return text if text == AUTO else int(text) if int(text) >= 4 else _refuse()


class SizeParameter(_Checked):
    """Bytes, with or without a unit, or `auto`."""

    wanted = "a size of 4096 bytes or more as 1000000, 256KiB or 4MiB, or auto"

    def convert(self, text: str) -> int | str:
        if text == AUTO:
            return text
        match = re.fullmatch(r"(\d+)\s*([A-Za-z]*)", text)
        if not match or match[2].upper() not in _UNITS:
            _refuse()
        assert match is not None
        size = int(match[1]) * _UNITS[match[2].upper()]
        return size if size >= 4096 else _refuse()


class SparkMasterParameter(_Checked):
    """URL of a Spark master, or nothing."""

    wanted = "local, local[N], spark://HOST:PORT, yarn or k8s://..."

    def convert(self, text: str) -> str:
        pattern = r"|local(\[(\d+|\*)(, *\d+)?\])?|spark://[^:/]+:\d+.*|yarn|k8s://.+"
        return text if re.fullmatch(pattern, text) else _refuse()


class OneOf(_Checked):
    """One of a few words."""

    def __init__(self, *choices: str, **settings: Any) -> None:
        self.choices = choices
        self.wanted = "one of " + ", ".join(choices)
        settings["description"] = f"{', '.join(choices)}: {settings['description']}"
        super().__init__(**settings)

    def convert(self, text: str) -> str:
        return text if text in self.choices else _refuse()


class ListOf(_Checked):
    """Values of another parameter, each once, with commas between them; a tuple."""

    def __init__(self, item: _Checked, **settings: Any) -> None:
        self.item = item
        self.wanted = f"{item.wanted}; several with commas between them, each once"
        super().__init__(**settings)

    def convert(self, text: str) -> Any:
        values = tuple(self.item.convert(word.strip()) for word in text.split(","))
        return values if len(set(values)) == len(values) else _refuse()

    def normalize(self, value: Any) -> Any:
        return super().normalize(value if isinstance(value, str) else self.serialize(value))

    def serialize(self, value: Any) -> str:
        return ",".join(map(str, value))


class Text(_Checked):
    """Any text that is not empty."""

    wanted = "a value that is not empty"

    def convert(self, text: str) -> str:
        return text or _refuse()


class DeviceParameter(_Checked):
    """A torch device, or `auto`."""

    wanted = "auto, cpu, cuda or cuda:N"

    def convert(self, text: str) -> str:
        return text if re.fullmatch(r"auto|cpu|cuda(:\d+)?", text) else _refuse()


def _refuse() -> Any:
    raise ValueError
