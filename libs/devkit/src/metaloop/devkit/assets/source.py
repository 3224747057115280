"""What every source of programs has in common."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from metaloop.devkit.errors import DevkitError


class SourceFailed(DevkitError):
    """A source could not give what was wanted of it; its text is one line, and the next source gets its turn."""


class Source(Protocol):
    """A way to get programs."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    @property
    def offers(self) -> Sequence[str]:
        """The programs that it can give."""
        ...

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Put each wanted program into the folder, whole or not at all; `SourceFailed` when one can't be had."""
        ...
