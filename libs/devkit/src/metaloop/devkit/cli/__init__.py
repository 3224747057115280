"""The `metaloop` command: what a user runs, and what outside suites rely on."""

from metaloop.devkit.cli.app import main

__all__ = ["main"]
