"""The webhooks of a run, below the gateway: functions that answer after a while, or not at all."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeAlias

from metaloop.common.http.body import whole
from metaloop.common.json import JsonObject, dumps, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.hookgateway.core.credentials import Credentials
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.core.verdict import Answer
from metaloop.hookgateway.errors import ConnectFailed, ConnectionLost
from metaloop.hookgateway.exchange import Bounds, Request
from metaloop.hookgateway.pool import Connections, OpenPool
from metaloop.simulation.history import History
from metaloop.simulation.network import Network, Port

Hook: TypeAlias = Callable[[JsonObject], JsonObject]
"""Answers a request."""

HOST: Final = "hooks.example"

caller: ContextVar[str] = ContextVar("caller")
"""The reconciler whose call a gateway makes."""


class CallEnd(Enum):
    """How a call to a webhook ends."""

    ANSWERED = "answered"
    FAILED = "failed"
    """Status 500."""
    MALFORMED = "malformed"
    """Status 200, with a body that is no answer."""
    LOST = "lost"
    """The webhook did its work, and the connection breaks."""
    REFUSED = "refused"
    """Nobody accepts the connection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFate:
    """What becomes of one call."""

    end: CallEnd = CallEnd.ANSWERED
    seconds: float = 0.01
    """How long the webhook works."""


class CallFaults(Protocol):
    """Decides what goes wrong with calls."""

    def of_call(self, path: str) -> CallFate:
        """What becomes of a call."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HookCall:
    """A call that a webhook works on."""

    path: str
    parent: JsonObject
    request: JsonObject
    caller: str
    began: float

    @property
    def unit(self) -> tuple[str, str]:
        """The unit of work: the controller's hooks, and the parent or the part of it."""
        return self.path.rpartition("/")[0], unit_of(unstructured.uid(self.parent), unstructured.text(self.request, "mapKey"))


def unit_of(parent: str, part: str) -> str:
    """What identifies a parent, or a part of it, by its UID and the key of the part."""
    return f"{parent}#{part}" if part else parent


@dataclass(slots=True, kw_only=True)
class Webhooks:
    """All webhooks, by the path of their URL."""

    network: Network
    faults: CallFaults
    history: History
    hooks: dict[str, Hook] = field(default_factory=dict[str, Hook])
    live: list[HookCall] = field(default_factory=list[HookCall])
    """The calls that webhooks work on now."""
    on_begin: list[Callable[[HookCall], None]] = field(default_factory=list[Callable[[HookCall], None]])
    on_answer: list[Callable[[HookCall, JsonObject], None]] = field(default_factory=list[Callable[[HookCall, JsonObject], None]])
    calls: int = 0

    def url(self, path: str, hook: Hook) -> str:
        """The URL of a hook that is answered by a function."""
        self.hooks[path] = hook
        return f"http://{HOST}{path}"

    def opened(self, port: Port) -> OpenPool:
        """How the gateway of a process connects to them."""

        def opened(_: Endpoint, credentials: Credentials) -> Connections:
            return _Connections(self, port, credentials)

        return opened

    async def answer(self, request: Request) -> Answer:
        """The answer of the webhook that the request is for. Raises the HookError of what failed."""
        path = request.url.path
        fate = self.faults.of_call(path)
        if fate.end is CallEnd.REFUSED or path not in self.hooks:
            raise ConnectFailed(f"no connection to {HOST}: connection refused")
        sent = loads(whole(request.body))
        assert is_object(sent)  # noqa: S101 - the services' own request
        with self._working(path, sent) as call:
            await asyncio.sleep(fate.seconds)
            return self._ended(call, fate.end)

    def _ended(self, call: HookCall, end: CallEnd) -> Answer:
        match end:
            case CallEnd.LOST:
                raise ConnectionLost(f"{HOST} closed the connection before the end of its answer")
            case CallEnd.FAILED:
                return _answer(500, b"the model fails this call")
            case CallEnd.MALFORMED:
                return _answer(200, b'{"children": 7}')
            case _:
                answered = self.hooks[call.path](call.request)
                for listener in self.on_answer:
                    listener(call, answered)
                return _answer(200, dumps(answered))

    @contextmanager
    def _working(self, path: str, sent: JsonObject) -> Iterator[HookCall]:
        parent = unstructured.child_object(sent, "parent") or unstructured.child_object(sent, "object")
        call = HookCall(path=path, parent=parent, request=sent, caller=caller.get(), began=asyncio.get_running_loop().time())
        self.calls += 1
        self.history.note("webhook", f"{path} {unstructured.name(parent)} for {call.caller}")
        for listener in self.on_begin:
            listener(call)
        self.live.append(call)
        try:
            yield call
        finally:
            self.live.remove(call)


class _Connections:
    """A gateway's connections to a webhook."""

    def __init__(self, webhooks: Webhooks, port: Port, credentials: Credentials) -> None:
        self.credentials = credentials
        self._webhooks = webhooks
        self._port = port

    async def answer_to(self, request: Request, *, bounds: Bounds) -> Answer:
        """The answer. Raises the HookError of what failed."""
        del bounds
        await asyncio.sleep(self._webhooks.network.trip())
        if not self._port.is_alive:
            raise ConnectionLost("this process is gone")
        answer = await self._webhooks.answer(request)
        await asyncio.sleep(self._webhooks.network.trip())
        return answer

    async def retire(self) -> None:
        """Do nothing: there is nothing to close."""


def _answer(status: int, body: bytes) -> Answer:
    return Answer(status=status, body=body, coding="", etag="", retry_after="")
