"""Log lines, spans and metrics name a thing by one key, which is defined in `telemetry/fields.py`."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from metaloop.common.telemetry import fields

_ROOT = Path(__file__).parents[2]
_LOGGERS = frozenset({"log", "_log"})
_LEVELS = frozenset({"debug", "info", "warning", "error", "exception", "critical"})
_OF_STRUCTLOG = frozenset({"exc_info"})
KEYS = frozenset(value for name, value in vars(fields).items() if name.isupper())


def sources() -> list[Path]:
    return sorted(chain(_ROOT.glob("libs/*/src/**/*.py"), _ROOT.glob("services/*/src/**/*.py")))


def log_calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls that write a log line, or make a block that may write one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (_is_of_a_logger(node.func) or _name(node.func) in {"crash_logged", "say"}):
            yield node


def _is_of_a_logger(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and function.attr in _LEVELS and _name(function.value) in _LOGGERS


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def literal_keys(call: ast.Call) -> set[str]:
    """The keys of a call that are written out, as keywords or within a dict."""
    keywords = {keyword.arg for keyword in call.keywords if keyword.arg is not None}
    dicts = [keyword.value for keyword in call.keywords if keyword.arg is None and isinstance(keyword.value, ast.Dict)]
    texts = {key.value for each in dicts for key in each.keys if isinstance(key, ast.Constant)}
    return {str(key) for key in keywords | texts} - _OF_STRUCTLOG - {"passing"}


def test_every_key_of_a_log_line_is_a_field():
    unknown = {
        f"{file.relative_to(_ROOT)}:{call.lineno}: {key}"
        for file in sources()
        for call in log_calls(ast.parse(file.read_text()))
        for key in literal_keys(call) - KEYS
    }

    assert unknown == set()


def test_no_two_fields_are_one_key():
    names = [name for name in vars(fields) if name.isupper()]

    assert len(KEYS) == len(names)


def test_key_that_is_written_out_is_found():
    [call] = log_calls(ast.parse('log.warning("x.happened", lease=1, **{"Pending": 2, fields.ERROR: 3})'))

    assert literal_keys(call) == {"lease", "Pending"}
