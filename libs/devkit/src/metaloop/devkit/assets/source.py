"""The interface of a source of programs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from metaloop.devkit.errors import DevkitError


class SourceFailed(DevkitError):
    """A source does not have a program; the text is one line. The next source is tried."""


class Source(Protocol):
    """Somewhere to get programs from."""

    @property
    def name(self) -> str:
        """Its name in messages."""
        ...

    @property
    def offers(self) -> Sequence[str]:
        """The programs that it may have."""
        ...

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Put each wanted program into the folder, complete or not at all; raises `SourceFailed` if one is missing."""
        ...
