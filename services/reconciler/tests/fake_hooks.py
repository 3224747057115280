"""Hooks that are functions in this process. Their requests and answers are encoded as on the wire."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace

from metaloop.common.api.hook import Hook
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import LeaseLost
from metaloop.common.http.body import Body, whole
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.observation import Related
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.ports import LeaseGuard, Slot


@dataclass
class FakeHooks:
    """The hooks of a controller. `answer` returns the response to a request, and `rules` that of the customize hook."""

    answer: Callable[[JsonObject], JsonObject | bytes]
    rules: Callable[[JsonObject], JsonObject] = lambda _: {}
    requests: list[JsonObject] = field(default_factory=list)
    customized: list[JsonObject] = field(default_factory=list)

    async def call(self, observed: Observed, hook: Hook, bodies: Mapping[str, Body], *, slot: Slot, lease: LeaseGuard) -> list[bytes]:
        """The hook's answer to each body."""
        del observed
        requests = [loads(whole(body)) for body in bodies.values()]
        asked, answer = (self.customized, self.rules) if hook.name == "customize" else (self.requests, self.answer)
        lease.check()
        asked += requests
        async with slot.waiting():
            answers = [answer(request) for request in requests]
        return [body if isinstance(body, bytes) else dumps(body) for body in answers]


@dataclass
class FakeSubscriptions:
    """Records subscriptions, and answers each with `selected`."""

    selected: Related = field(default_factory=lambda: Related(fingerprint=""))
    told: list[RelatedRequest] = field(default_factory=list)

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """The selected objects."""
        del shard
        self.told.append(request)
        return replace(self.selected, fingerprint=request.fingerprint)


class OpenSlot:
    """A slot that no other job waits for."""

    @asynccontextmanager
    async def _nothing(self):
        yield

    def waiting(self):
        """Lends nothing."""
        return self._nothing()


@dataclass
class FakeLease:
    """A lease that is lost after a number of requests, or never. Each request checks it once."""

    requests_left: int = 1_000_000
    lent_seconds: float = 5.0
    listeners: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])

    @contextmanager
    def on_extension(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` when a test extends the lease."""
        self.listeners.append(listener)
        yield
        self.listeners.remove(listener)

    def extend(self, seconds: float) -> None:
        """The lease lasts for so long from now on."""
        self.lent_seconds = seconds
        for listener in self.listeners:
            listener()

    def check(self) -> None:
        """Raises LeaseLost after the last request."""
        self.requests_left -= 1
        if self.requests_left < 0:
            raise LeaseLost("the lease ran out")


@dataclass
class FakeRecorder:
    """Keeps the events."""

    told: list[tuple[str, str, str]] = field(default_factory=list)

    def record(self, regarding: JsonObject, event_type: str, reason: str, message: str) -> None:
        """Keeps the type, the reason and the message."""
        del regarding
        self.told.append((event_type, reason, message))
