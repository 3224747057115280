"""Hooks that are functions of this process; what they are sent and answer goes through the real wire."""

from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

from orjson import Fragment

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.errors import LeaseLost
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.observation import Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.hooks.answer import sync_answer
from metaloop.reconciler.core.hooks.customize import interests_in
from metaloop.reconciler.core.hooks.request import Asked, customize_request, sync_request
from metaloop.reconciler.core.kinds.registry import variant_of
from metaloop.reconciler.core.model import Answer, Observed, Shown
from metaloop.reconciler.core.parent.finalizer import hook_to_ask
from metaloop.reconciler.core.rollout.revisions import Revision
from metaloop.reconciler.ports import Slot


@dataclass
class FakeHooks:
    """The hooks of a controller: `answer` makes a response body, or its JSON, of a request; `rules` does for the customize hook."""

    answer: Callable[[JsonObject], JsonObject | bytes]
    rules: Callable[[JsonObject], JsonObject] = lambda _: {}
    requests: list[JsonObject] = field(default_factory=list)
    customized: list[JsonObject] = field(default_factory=list)

    async def desired(self, observed: Observed, shown: Shown, live: Sequence[Revision], *, slot: Slot) -> list[Answer]:
        """What the function answers for each revision."""
        keys = variant_of(observed.controller.id).keys
        finalizing = hook_to_ask(observed).name == "finalize"
        asked = Asked(controller=Fragment(dumps(observed.controller.raw)), keys=keys, finalizing=finalizing)
        requests = [loads(sync_request(replace(observed, parent=each.parent), shown, asked=asked)) for each in live]
        self.requests += requests
        async with slot.waiting():
            answers = [self.answer(request) for request in requests]
        bodies = [answer if isinstance(answer, bytes) else dumps(answer) for answer in answers]
        return [sync_answer(body, is_strict=False, keys=keys) for body in bodies]

    async def interests(self, observed: Observed, *, slot: Slot) -> tuple[RelatedQuery, ...]:
        """What the rules ask to follow."""
        request = loads(customize_request(observed, controller=Fragment(dumps(observed.controller.raw))))
        self.customized.append(request)
        async with slot.waiting():
            answered = self.rules(request)
        return interests_in(dumps(answered), observed, version="v1", is_strict=False)


@dataclass
class FakeFollower:
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
