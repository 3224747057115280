"""Durations in Go's syntax."""

import pytest

from metaloop.common.duration import seconds_of


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("500ms", 0.5),
        ("10s", 10.0),
        ("1m30s", 90.0),
        ("1.5h", 5400.0),
        (".5s", 0.5),
        ("2h0.5m", 7230.0),
        ("1us", 1e-6),
        ("-3s", -3.0),
        ("+3s", 3.0),
        ("0", 0.0),
    ],
)
def test_duration_is_converted_to_seconds(text: str, seconds: float) -> None:
    assert seconds_of(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "10", "s", "10 s", "1d", "s10", "1..5s", "--1s", "1s-2s"])
def test_other_text_is_not_a_duration(text: str) -> None:
    assert seconds_of(text) is None
