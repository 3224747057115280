"""What happened in a run, as lines that people read and that two runs of one seed must share."""

import asyncio
from hashlib import sha256


class History:
    """The lines of one run, in order, each with its virtual time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.violations: list[str] = []

    def note(self, who: str, what: str) -> None:
        """Add a line."""
        self.lines.append(f"{asyncio.get_running_loop().time():10.3f} {who:<14} {what}")

    def violation(self, what: str) -> None:
        """Note that an invariant does not hold."""
        self.violations.append(what)
        self.note("VIOLATION", what)

    @property
    def digest(self) -> str:
        """What only equal histories share."""
        return sha256("\n".join(self.lines).encode()).hexdigest()[:16]

    def tail(self, count: int) -> str:
        """The last lines as text."""
        return "\n".join(self.lines[-count:])
