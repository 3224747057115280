"""The only place that configures logs, traces and metrics; `fields.py` spells every key once."""

from metaloop.common.telemetry.logs import configure_logging, get_logger

__all__ = ["configure_logging", "get_logger"]
