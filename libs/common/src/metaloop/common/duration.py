"""Converts a duration in Go's syntax (`10s`, `1m30s`, `500ms`) to seconds."""

import re
from typing import Final

_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+)")


def seconds_of(text: str) -> float | None:
    """The seconds of a Go duration, which may be negative; None for any other text."""
    if text in {"0", "+0", "-0"}:
        return 0.0
    whole = _WHOLE.fullmatch(text)
    if whole is None:
        return None
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in _PART.findall(whole[2]))
    return -seconds if whole[1] == "-" else seconds
