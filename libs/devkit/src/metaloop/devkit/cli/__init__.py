"""The `metaloop` command."""

from metaloop.devkit.cli.app import main

__all__ = ["main"]
