"""Logs: one line per event on stderr, with keys, as JSON or for people.

The log records of libraries take the same path.
"""

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
"""A block in which every log line of this task carries the given keys."""

_LEVELS: dict[Level, int] = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_SECRET_WORDS = ("token", "password", "secret", "authorization", "credential", "private_key")


def get_logger() -> FilteringBoundLogger:
    """A logger. Its configuration is fixed at its first use."""
    return structlog.get_logger()


def configure_logging(service: str, *, level: Level = "info", form: Format = "json") -> None:
    """From now on write log lines of `level` and above to stderr, each with the service's name."""
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
    # Libraries log warnings and errors only, whatever our own level.
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
    """Mask the value of each key that sounds like a secret: a second line of defence, since none must be logged."""
    for key in event:
        if any(word in key for word in _SECRET_WORDS):
            event[key] = "***"
    return event


class _Forward(logging.Handler):
    """Forwards the log records of the standard library to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Log the record with its logger's name."""
        exc_info = record.exc_info if record.exc_info and record.exc_info[0] else None
        structlog.get_logger().log(record.levelno, record.getMessage(), logger=record.name, exc_info=exc_info)
