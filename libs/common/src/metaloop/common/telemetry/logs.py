"""Logs: events with keys, one line each on stderr, as JSON or for a reader's eyes. Other people's log lines take the same way."""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any, Literal, TypeAlias

import orjson
import structlog
from structlog.contextvars import bound_contextvars, merge_contextvars
from structlog.typing import FilteringBoundLogger, Processor

from metaloop.common.telemetry import fields

Level: TypeAlias = Literal["debug", "info", "warning", "error"]
Format: TypeAlias = Literal["json", "console"]

bound = bound_contextvars
"""A block in which every line of this task carries the given keys."""

_LEVELS: dict[Level, int] = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_SECRET_WORDS = ("token", "password", "secret", "authorization", "credential", "private_key")


def get_logger() -> FilteringBoundLogger:
    """A logger; it takes the form of the first configuration that is there when it is first used."""
    return structlog.get_logger()


def configure_logging(service: str, *, level: Level = "info", form: Format = "json") -> None:
    """From here on, log lines of `level` and above go to stderr, each with the service's name."""
    stream = sys.stderr
    structlog.configure(
        processors=[
            merge_contextvars,
            _named(service),
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _without_secrets,
            *_rendering(form, colors=stream.isatty()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(file=stream),
        cache_logger_on_first_use=True,
    )
    # The libraries' own lines below a warning are theirs to read.
    logging.basicConfig(handlers=[_Forward()], level=max(_LEVELS[level], logging.WARNING), force=True)
    logging.captureWarnings(capture=True)


def _rendering(form: Format, *, colors: bool) -> list[Processor]:
    match form:
        case "json":
            return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(serializer=_to_text)]
        case "console":
            return [structlog.dev.ConsoleRenderer(colors=colors)]


def _to_text(event: object, **_: object) -> str:
    return orjson.dumps(event, default=str, option=orjson.OPT_NON_STR_KEYS).decode()


def _named(service: str) -> Processor:
    def name_service(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event.setdefault(fields.SERVICE, service)
        return event

    return name_service


def _without_secrets(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A net below the rule that nothing secret is logged: a key that sounds like a secret loses its value."""
    for key in event:
        if any(word in key for word in _SECRET_WORDS):
            event[key] = "***"
    return event


class _Forward(logging.Handler):
    """Hands the standard library's log records on to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record under its logger's name."""
        exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
        structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name, exc_info=exc_info)
