"""The way from reconcilers to the gateway's HTTP application, without sockets: one ASGI call for each request."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

from metaloop.common.http.answer import Answer
from metaloop.common.http.body import Body, OpenBody, whole
from metaloop.common.http.connection import NoAnswer, Permit, always
from metaloop.common.http.peer import NoConnection
from metaloop.simulation.network import GATEWAY, Network, Port
from metaloop.simulation.processes import Process
from metaloop.simulation.webhooks import caller

_NOTICED_SECONDS: Final = 4.0
"""How long the gateway takes to notice that a caller vanished without a word: its keep-alive."""
_CALLER_NOTICES_SECONDS: Final = 30.0
"""How long a caller takes to notice that the gateway vanished without a word: its keep-alive."""
_RESET_SECONDS: Final = 2.0
"""How long a caller that reaches the gateway again takes to notice that the connection is gone: until it sends more."""
_APART_SECONDS: Final = 1e-6


@dataclass(slots=True, eq=False)
class _Exchange:
    """One request on its way through the gateway, and its answer."""

    headers: bytes
    is_open: bool
    """Whether more may follow what was sent of the body."""
    reply: "asyncio.Future[Answer]"
    is_disconnected: bool = False
    """Whether the gateway knows that the connection is gone."""
    cuts: int = 0
    """How often caller and gateway were parted."""
    kept: Answer | None = None
    """The answer that arrives once they are no longer."""
    status: int = 0
    answer_headers: tuple[tuple[bytes, bytes], ...] = ()
    _arrived: deque[bytes] = field(default_factory=deque[bytes])
    _due: float = 0.0
    """When the last part arrives that was sent."""
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def receive(self) -> MutableMapping[str, Any]:
        """ASGI's receive: the parts of the request as they arrive, then the caller's disconnection."""
        while not self._arrived and not self.is_disconnected:
            self._news.clear()
            await self._news.wait()
        if self.is_disconnected:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._arrived.popleft(), "more_body": self.is_open}

    def send(self, part: bytes, network: Network) -> float:
        """Send a part of the body; returns when it arrives, after all parts before it."""
        self._due = max(self._due + _APART_SECONDS, asyncio.get_running_loop().time() + network.trip())
        network.at(self._due, self._take, part)
        return self._due

    def disconnect(self) -> None:
        """The caller is gone, as the gateway sees it."""
        self.is_disconnected = True
        self._news.set()

    def _take(self, part: bytes) -> None:
        self._arrived.append(part)
        self._news.set()

    def scope(self, method: str, target: str) -> dict[str, Any]:
        """ASGI's scope."""
        lines = [line.partition(b": ") for line in self.headers.split(b"\r\n") if line]
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": target,
            "raw_path": target.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": [(name.lower(), value) for name, _, value in lines],
            "client": ("caller", 1),
            "server": ("gateway", 80),
        }


class GatewayPeer:
    """`Asked` over the model's network: the gateway as one reconciler reaches it, or one of several in turn."""

    def __init__(self, gateways: Sequence[Process], port: Port, network: Network) -> None:
        self._gateways = gateways
        self._port = port
        self._network = network
        self._turn = 0

    async def ask(
        self, method: str, target: str, headers: bytes, body: Body | OpenBody | None = None, *, permit: Permit = always
    ) -> Answer:
        """The answer to one request. Raises NoConnection and NoAnswer."""
        gateway = self._running()
        if gateway is None or not self._port.reaches(GATEWAY):
            raise NoConnection("no gateway can be reached")
        exchange = _Exchange(headers, isinstance(body, OpenBody), asyncio.get_running_loop().create_future())
        theirs = gateway.port
        permit()
        listener = self._notice(exchange, theirs)
        self._port.on_change.append(listener)
        theirs.on_change.append(listener)
        try:
            with self._sent(exchange, b"" if body is None else body) as arrives:
                self._network.at(arrives, self._arrive, gateway, theirs, exchange, (method, target))
                return await exchange.reply
        finally:
            self._port.on_change.remove(listener)
            with suppress(ValueError):
                theirs.on_change.remove(listener)
            self._network.later(self._network.trip() if self._port.reaches(GATEWAY) else 0.0, exchange.disconnect)

    @contextmanager
    def _sent(self, exchange: _Exchange, body: Body | OpenBody) -> Iterator[float]:
        """Send a body for the length of the block. Yields when its beginning arrives."""
        arrivals: list[float] = []

        def send(part: bytes) -> None:
            if not exchange.reply.done() and self._port.reaches(GATEWAY):
                arrivals.append(exchange.send(part, self._network))

        if not isinstance(body, OpenBody):
            send(whole(body))
            yield arrivals[0]
            return
        send(whole(body.beginning))
        with body.follow(send):
            yield arrivals[0]

    def _running(self) -> Process | None:
        self._turn += 1
        running = [each for each in self._gateways if each.is_running]
        return running[self._turn % len(running)] if running else None

    def _notice(self, exchange: _Exchange, theirs: Port) -> Callable[[], None]:
        def notice() -> None:
            if not theirs.is_alive:
                self._network.later(self._network.trip(), _break, exchange)
            elif not self._port.is_alive:
                self._network.later(self._network.trip(), exchange.disconnect)
            elif not self._port.reaches(GATEWAY):
                exchange.cuts += 1
                self._network.later(_NOTICED_SECONDS, self._give_up, exchange, exchange.cuts, exchange.disconnect)
                self._network.later(_CALLER_NOTICES_SECONDS, self._give_up, exchange, exchange.cuts, lambda: _break(exchange))
            elif exchange.is_disconnected:
                self._network.later(_RESET_SECONDS, _break, exchange)
            elif exchange.kept is not None:
                self._network.later(self._network.trip(), self._return, exchange, exchange.kept)

        return notice

    def _give_up(self, exchange: _Exchange, cut: int, act: Callable[[], None]) -> None:
        """Act where the two were parted all the time since."""
        if exchange.cuts == cut and not self._port.reaches(GATEWAY):
            act()

    def _arrive(self, gateway: Process, theirs: Port, exchange: _Exchange, request: tuple[str, str]) -> None:
        if not theirs.is_alive or gateway.service is None or exchange.is_disconnected:
            _break(exchange)
            return
        app = gateway.service.app
        name = f"{self._port.process}#{self._port.number}"

        async def serve() -> None:
            caller.set(name)
            await app(exchange.scope(*request), exchange.receive, send)
            await asyncio.sleep(self._network.trip())

        async def send(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                exchange.status, exchange.answer_headers = message["status"], tuple(message["headers"])
            elif not message.get("more_body"):
                answer = Answer(exchange.status, exchange.answer_headers, message["body"])
                self._network.later(self._network.trip(), self._return, exchange, answer)

        gateway.spawn(lambda: asyncio.get_running_loop().create_task(serve(), name="http request"))

    def _return(self, exchange: _Exchange, answer: Answer) -> None:
        if not self._port.reaches(GATEWAY):
            exchange.kept = answer
        elif not exchange.reply.done():
            exchange.reply.set_result(answer)


def _break(exchange: _Exchange) -> None:
    if not exchange.reply.done():
        exchange.reply.set_exception(NoAnswer("the connection ended before the answer"))
