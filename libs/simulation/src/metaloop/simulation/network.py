"""What lies between the parts of a run: each process has a port, and a plan of faults decides what passes it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from random import Random
from typing import Final, Protocol

from metaloop.common.kube.transport import Request
from metaloop.common.machine import context_on

API, BUS, GATEWAY = "api", "bus", "gateway"
"""What a process can be cut off from."""


class _NoMachine:
    """The network has no clocks: what reads one there should run in a process."""

    @property
    def random(self) -> Random:
        """Nothing."""
        raise RuntimeError("random numbers are drawn outside of any process")

    def monotonic(self) -> float:
        """Nothing."""
        raise RuntimeError("a clock is read outside of any process")

    boot_time = wall_time = monotonic


_OUTSIDE: Final = context_on(_NoMachine())
"""Callbacks of the network and of the models belong to no process."""


@dataclass(slots=True, eq=False)
class Port:
    """A process as its peers see it, from its start to its end. A process that starts again gets another port."""

    process: str
    number: int = 0
    """How often the process was started before."""
    is_alive: bool = True
    cut_off_from: set[str] = field(default_factory=set[str])
    on_change: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """Called after it was cut off, connected again, or died."""

    def reaches(self, peer: str) -> bool:
        """Whether anything passes between this process and a peer."""
        return self.is_alive and peer not in self.cut_off_from

    def cut(self, peer: str) -> None:
        """Let nothing pass between this process and a peer."""
        self.cut_off_from.add(peer)
        self._tell()

    def join(self, peer: str) -> None:
        """Let everything pass again."""
        self.cut_off_from.discard(peer)
        self._tell()

    def die(self) -> None:
        """The process is gone. Whatever it does from now on reaches nobody."""
        self.is_alive = False
        self._tell()

    def _tell(self) -> None:
        for listener in tuple(self.on_change):
            listener()


class Answered(Enum):
    """What becomes of a request to the API server."""

    SERVED = "served"
    REFUSED = "refused"
    """It is not executed, and the answer says so."""
    FAILED = "failed"
    """It is executed, and the answer says that it failed."""
    LOST = "lost"
    """It is executed, and the connection breaks before the answer."""
    UNSENT = "unsent"
    """The connection breaks before it is executed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFate:
    """What becomes of a request to the API server."""

    answered: Answered = Answered.SERVED
    code: int = 0
    """The status of a refused or failed one."""
    delay_seconds: float = 0.0
    """How long it is under way in addition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageFate:
    """What becomes of a message on the bus: after how many seconds each copy of it arrives; none where it is lost."""

    delays: tuple[float, ...] = (0.0,)


NORMAL: Final = RequestFate()
DELIVERED: Final = MessageFate()


class Faults(Protocol):
    """Decides what goes wrong. It is asked about each request, message and call."""

    def of_request(self, process: str, request: Request) -> RequestFate:
        """What becomes of a request."""
        ...

    def after_write(self, process: str, request: Request) -> None:
        """A write was executed, and its answer is not under way yet."""
        ...

    def of_message(self, sender: str, subject: tuple[str, ...]) -> MessageFate:
        """What becomes of a message on the bus."""
        ...

    def of_watch_event(self, process: str) -> float:
        """How many seconds late an event of a watch is."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """Delays, which are drawn from one seed, and faults."""

    random: Random
    faults: Faults
    shortest_seconds: float = 0.0005
    longest_seconds: float = 0.005

    def trip(self) -> float:
        """How long something is under way in one direction."""
        return self.random.uniform(self.shortest_seconds, self.longest_seconds)

    def later(self, seconds: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        """Have the network call something after so many seconds, whatever becomes of the process that asked for it."""
        return self.at(asyncio.get_running_loop().time() + seconds, call, *args)

    def at(self, due: float, call: Callable[..., object], *args: object) -> asyncio.TimerHandle:
        """Have the network call something at a time of the event loop."""
        return asyncio.get_running_loop().call_at(due, call, *args, context=_OUTSIDE)
