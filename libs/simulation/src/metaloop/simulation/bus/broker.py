"""The broker of the model: subscriptions by subject, and a connection for each process, which comes back by itself."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass
from typing import Final, TypeAlias

from metaloop.common.errors import NobodyThere, Unavailable
from metaloop.common.job import JobKey
from metaloop.common.report import SyncReport
from metaloop.simulation.bus.stream import Stream
from metaloop.simulation.network import BUS, Network, Port

Subject: TypeAlias = tuple[str, ...]
Reply: TypeAlias = Callable[["Wire", bytes], None]
"""Sends an answer over the connection of who answers."""
Handler: TypeAlias = Callable[[bytes, Reply], None]
"""Takes a message, and where its answer goes."""
Act: TypeAlias = Callable[[], object]

RECONNECT_SECONDS: Final = 0.25
_APART_SECONDS: Final = 1e-6
"""Timers that are due at the same time may fire in any order."""


@dataclass(frozen=True, slots=True, eq=False)
class _Subscription:
    wire: "Wire"
    handler: Handler
    context: Context
    """What the handler runs in: that of the process that subscribed."""


class Broker:
    """The server. It may be down; what it stores may be lost."""

    def __init__(self, network: Network, *, ack_wait_seconds: float) -> None:
        self.network = network
        self.stream = Stream(ack_wait_seconds=ack_wait_seconds, later=network.later)
        self.is_up = True
        self.on_report: list[Callable[[Port, SyncReport], None]] = []
        """Called with each report that a watcher took, and the watcher's port."""
        self.on_grant: list[Callable[[Port, JobKey], None]] = []
        """Called with each key that a watcher grants to a worker, and the watcher's port."""
        self._subscriptions: dict[Subject, list[_Subscription]] = {}
        self._wires: list[Wire] = []

    def connect(self, port: Port) -> "Wire":
        """The connection of one process."""
        wire = Wire(self, port)
        self._wires.append(wire)
        return wire

    def stop(self) -> None:
        """The broker dies, and keeps what it stored."""
        self.is_up = False
        self._tell()

    def start(self) -> None:
        """The broker is back; connections follow a moment later."""
        self.is_up = True
        self._tell()

    def publish(self, sender: "Wire", subject: Subject, message: bytes, reply: Reply) -> bool:
        """Pass a message on to everybody who listens; returns whether anybody does."""
        listeners = [each for each in self._subscriptions.get(subject, ()) if each.wire.is_connected]
        for each in listeners:
            each.wire.receive(sender.port.process, subject, lambda each=each: each.handler(message, reply), each.context)
        return bool(listeners)

    def subscribe(self, wire: "Wire", subject: Subject, handler: Handler) -> Act:
        """Pass the messages of a subject on to `handler` from now on; returns what ends that."""
        subscription = _Subscription(wire, handler, copy_context())
        listening = self._subscriptions.setdefault(subject, [])
        listening.append(subscription)
        return lambda: listening.remove(subscription)

    def _tell(self) -> None:
        self._wires = [wire for wire in self._wires if wire.port.is_alive]
        for wire in self._wires:
            wire.check()


class Wire:
    """The connection of one process. What it sends arrives in order, and waits while the broker is away."""

    def __init__(self, broker: Broker, port: Port) -> None:
        self.broker = broker
        self.port = port
        self.is_connected = broker.is_up and port.reaches(BUS)
        self._listeners: list[tuple[Callable[[], None], Context]] = []
        self._outbox: list[tuple[Subject, Act]] = []
        self._returning: asyncio.TimerHandle | None = None
        self._sent_until = self._received_until = 0.0
        """When the last message in each direction arrives that is under way."""
        port.on_change.append(self.check)

    @contextmanager
    def on_reconnect(self, listener: Callable[[], None]) -> Iterator[None]:
        """Have `listener` called after each reconnection, for the length of the block."""
        entry = (listener, copy_context())
        self._listeners.append(entry)
        try:
            yield
        finally:
            self._listeners.remove(entry)

    @contextmanager
    def listening(self, subject: Subject, handler: Handler) -> Iterator[None]:
        """Have `handler` called with the messages of a subject, for the length of the block."""
        end = self.broker.subscribe(self, subject, handler)
        try:
            yield
        finally:
            end()

    async def request(self, subject: Subject, message: bytes, *, timeout_seconds: float) -> bytes:
        """The first answer to a request. Raises NobodyThere, or Unavailable where there is none in time."""

        def answer(answerer: Wire, data: bytes) -> None:
            answerer.send(("answer", *subject), lambda: self.receive(answerer.port.process, ("answer", *subject), lambda: settle(data)))

        def settle(result: bytes | None) -> None:
            if not answered.done():
                answered.set_result(result)

        def arrive() -> None:
            if not self.broker.publish(self, subject, message, answer):
                self.receive("broker", ("nobody", *subject), lambda: settle(None))

        if not self.is_connected:
            raise Unavailable("the broker can't be reached")
        answered: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
        self.send(subject, arrive)
        try:
            async with asyncio.timeout(timeout_seconds):
                found = await answered
        except TimeoutError as late:
            raise Unavailable(f"no answer to {'.'.join(subject)} within {timeout_seconds:g} s") from late
        if found is None:
            raise NobodyThere(f"nobody listens to {'.'.join(subject)}")
        return found

    async def ask_broker(self, what: str, act: Act, *, timeout_seconds: float = 2.0) -> None:
        """Return once `act` has happened at the broker. Raises Unavailable."""

        def arrive() -> None:
            act()
            self.receive("broker", (what,), lambda: None if done.done() else done.set_result(None))

        if not self.is_connected:
            raise Unavailable("the broker can't be reached")
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.send((what,), arrive)
        try:
            async with asyncio.timeout(timeout_seconds):
                await done
        except TimeoutError as late:
            raise Unavailable(f"no answer to {what} within {timeout_seconds:g} s") from late

    def send(self, subject: Subject, arrive: Act) -> None:
        """Have `arrive` happen at the broker: a moment later, or once it can be reached again."""
        if not self.port.is_alive:
            return
        if not self.is_connected:
            self._outbox.append((subject, arrive))
            return
        fate = self.broker.network.faults.of_message(self.port.process, subject)
        self._sent_until = self._pass(fate.delays, self._sent_until, lambda: arrive() if self.broker.is_up else None)

    def receive(self, sender: str, subject: Subject, arrive: Act, context: Context | None = None) -> None:
        """Have `arrive` happen at this process, if it is connected by then."""
        fate = self.broker.network.faults.of_message(f"{sender} → {self.port.process}", subject)
        loop = asyncio.get_running_loop()

        def arrived() -> None:
            if self.is_connected:
                loop.call_soon(arrive, context=context)

        self._received_until = self._pass(fate.delays, self._received_until, arrived)

    def check(self) -> None:
        """See whether the broker can be reached: it may be away, or back in a moment."""
        reaches = self.broker.is_up and self.port.reaches(BUS)
        if not reaches:
            self.is_connected = False
        elif not self.is_connected and self._returning is None:
            self._returning = self.broker.network.later(RECONNECT_SECONDS, self._return)

    def _return(self) -> None:
        self._returning = None
        if not (self.broker.is_up and self.port.reaches(BUS)):
            return
        self.is_connected = True
        kept, self._outbox = self._outbox, []
        for subject, arrive in kept:
            self.send(subject, arrive)
        for listener, context in tuple(self._listeners):
            asyncio.get_running_loop().call_soon(listener, context=context)

    def _pass(self, delays: tuple[float, ...], until: float, arrive: Act) -> float:
        """Have each copy of a message arrive; returns when the last does that is in order. A late one is overtaken."""
        network, now = self.broker.network, asyncio.get_running_loop().time()
        for delay in delays:
            due = max(until + _APART_SECONDS, now + network.trip())
            network.at(due + delay, arrive)
            until = due
        return until
