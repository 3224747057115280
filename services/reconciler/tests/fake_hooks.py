"""Hooks that are functions of this process; what they are sent and answer goes through the real wire."""

from collections.abc import Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from metaloop.common.api.hook import Hook
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import LeaseLost
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.observation import Related
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.ports import Slot


@dataclass
class FakeHooks:
    """The hooks of a controller: `answer` makes a response body, or its JSON, of a request; `rules` does for the customize hook."""

    answer: Callable[[JsonObject], JsonObject | bytes]
    rules: Callable[[JsonObject], JsonObject] = lambda _: {}
    requests: list[JsonObject] = field(default_factory=list)
    customized: list[JsonObject] = field(default_factory=list)

    async def call(self, observed: Observed, hook: Hook, bodies: Mapping[str, bytes], *, slot: Slot) -> list[bytes]:
        """What the function of this hook answers to each body."""
        del observed
        requests = [loads(body) for body in bodies.values()]
        asked, answer = (self.customized, self.rules) if hook.name == "customize" else (self.requests, self.answer)
        asked += requests
        async with slot.waiting():
            answers = [answer(request) for request in requests]
        return [body if isinstance(body, bytes) else dumps(body) for body in answers]


@dataclass
class FakeSubscriptions:
    """A watcher that follows what it is told to; `selected` is what it finds."""

    selected: Related = field(default_factory=lambda: Related(fingerprint=""))
    told: list[RelatedRequest] = field(default_factory=list)

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """What is selected."""
        del shard
        self.told.append(request)
        return replace(self.selected, fingerprint=request.fingerprint)


class OpenSlot:
    """A slot that nobody else waits for."""

    @asynccontextmanager
    async def _nothing(self):
        yield

    def waiting(self):
        """Lends nothing to nobody."""
        return self._nothing()


@dataclass
class FakeLease:
    """A lease that is lost after so many checks, or never."""

    checks_left: int = 1_000_000

    def check(self) -> None:
        """Raises LeaseLost once it ran out."""
        self.checks_left -= 1
        if self.checks_left < 0:
            raise LeaseLost("the lease ran out")


@dataclass
class FakeRecorder:
    """Keeps what it was told."""

    told: list[tuple[str, str, str]] = field(default_factory=list)

    def record(self, regarding: JsonObject, event_type: str, reason: str, message: str) -> None:
        """Keeps type, reason and message."""
        del regarding
        self.told.append((event_type, reason, message))
