"""Hooks that are functions of this process; what they are sent and answer goes through the real wire."""

from collections.abc import Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from orjson import Fragment

from metaloop.common.errors import LeaseLost
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.reconciler.core.answer import sync_answer
from metaloop.reconciler.core.model import Answer, ChildGroup, Observed
from metaloop.reconciler.core.request import sync_request
from metaloop.reconciler.ports import Slot


@dataclass
class FakeHooks:
    """One sync hook: `answer` makes a response body, or its JSON, of a request."""

    answer: Callable[[JsonObject], JsonObject | bytes]
    requests: list[JsonObject] = field(default_factory=list)

    async def desired(self, observed: Observed, groups: tuple[ChildGroup, ...], *, slot: Slot) -> Answer:
        """What the function answers."""
        raw = observed.controller.raw
        request = loads(sync_request(observed, groups, version="v1", controller=Fragment(dumps(raw))))
        self.requests.append(request)
        async with slot.waiting():
            answered = self.answer(request)
        return sync_answer(answered if isinstance(answered, bytes) else dumps(answered), is_strict=False)


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
