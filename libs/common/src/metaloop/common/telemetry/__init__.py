"""Logs, traces and metrics. Only this package configures them; `fields.py` defines their keys."""

from metaloop.common.telemetry.logs import configure_logging, get_logger

__all__ = ["configure_logging", "get_logger"]
