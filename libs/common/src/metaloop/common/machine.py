"""What a process gets from its machine beside I/O: clocks and random numbers.

All services read them here and nowhere else. A simulation gives each of its processes a machine of its own, and so
decides what time it is and which numbers are drawn.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from datetime import UTC, datetime
from functools import partial
from random import Random
from typing import Final, Protocol


class Machine(Protocol):
    """The clocks of one machine, in seconds, and its source of random numbers."""

    @property
    def random(self) -> Random:
        """For jitter and identities, not for secrets."""
        ...

    def monotonic(self) -> float:
        """A clock that never goes back. It may stand still while the machine sleeps."""
        ...

    def boot_time(self) -> float:
        """Seconds since the machine started, counted also while it sleeps."""
        ...

    def wall_time(self) -> float:
        """Seconds since 1970. Somebody may set it, in both directions."""
        ...


_boot_time = partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic


class RealMachine:
    """This machine."""

    __slots__ = ()

    random: Random = Random()  # noqa: S311 - jitter and identities, not secrets
    monotonic = staticmethod(time.monotonic)
    wall_time = staticmethod(time.time)

    boot_time = staticmethod(_boot_time)
    """Seconds since the machine started, counted also while this process is stopped or the machine sleeps.

    A system without such a clock does not count its sleep.
    """


_REAL: Final = RealMachine()
_machine: ContextVar[Machine] = ContextVar("machine")


@contextmanager
def running_on(machine: Machine) -> Iterator[None]:
    """Have this task, and all that it starts in the block, read the clocks and numbers of another machine."""
    token = _machine.set(machine)
    try:
        yield
    finally:
        _machine.reset(token)


def context_on(machine: Machine) -> Context:
    """A context whose callbacks read the clocks and numbers of another machine."""
    context = Context()
    context.run(_machine.set, machine)
    return context


def monotonic() -> float:
    """A clock that never goes back, in seconds."""
    return _machine.get(_REAL).monotonic()


def boot_time() -> float:
    """Seconds since the machine started, counted also while it sleeps."""
    return _machine.get(_REAL).boot_time()


def wall_time() -> float:
    """Seconds since 1970."""
    return _machine.get(_REAL).wall_time()


def utc_now() -> datetime:
    """The wall clock's time as a date."""
    return datetime.fromtimestamp(_machine.get(_REAL).wall_time(), UTC)


def randomness() -> Random:
    """Where jitter and identities are drawn from."""
    return _machine.get(_REAL).random


def unique_token() -> str:
    """32 hexadecimal digits that nobody else draws."""
    return f"{randomness().getrandbits(128):032x}"
