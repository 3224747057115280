"""What the stages need from outside: the API server, events, hooks, and the lease and CPU slot of the worker they run for."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.model import Answer, Observed, Shown
from metaloop.reconciler.core.rollout.revisions import Revision


class Api(Protocol):
    """One object at a time of the API server; what comes back is the object as it then is. Raises what `metaloop.common.kube.errors` draws."""

    async def get(self, info: ResourceInfo, namespace: str, name: str) -> JsonObject:
        """The live object."""
        ...

    async def create(self, info: ResourceInfo, obj: JsonObject, *, params: Mapping[str, str] | None = None) -> JsonObject:
        """Creates `obj`."""
        ...

    async def replace(
        self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Replaces the object, or only its subresource, if it still has `obj`'s UID and resourceVersion."""
        ...

    async def patch(  # noqa: PLR0913, PLR0917 - which object, what, and how
        self, info: ResourceInfo, namespace: str, name: str, body: bytes, content_type: str, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Patches the object; an apply patch creates it where it isn't there."""
        ...

    async def delete(self, info: ResourceInfo, namespace: str, name: str, *, uid: str, resource_version: str = "") -> object:
        """Asks for deletion in the background, if the object still has this UID, and this resourceVersion where one is given."""
        ...


class Recorder(Protocol):
    """Where Kubernetes Events go: aggregated, never in the caller's way, never failing."""

    def record(self, regarding: JsonObject, event_type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Notes that `message` is true of the object that it regards."""
        ...


class Hooks(Protocol):
    """The hooks of all controllers. A call raises HookThrottled, HookFailed, Unavailable or InvalidAnswer, each of them the end of a sync."""

    async def desired(self, observed: Observed, shown: Shown, live: Sequence[Revision], *, slot: "Slot") -> list[Answer]:
        """What the sync hook, or the finalize hook at its time, answers for each of a parent's revisions, asked at once; the slot is lent meanwhile."""
        ...

    async def interests(self, observed: Observed, *, slot: "Slot") -> tuple[RelatedQuery, ...]:
        """What the customize hook asks to follow; the slot is lent meanwhile."""
        ...


class Follower(Protocol):
    """The watcher, as the one who follows related objects."""

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """Has the interests of `request` followed from now on; what they select. Raises Unavailable."""
        ...


class LeaseGuard(Protocol):
    """A worker's right to go on with one parent."""

    def check(self) -> None:
        """Raises LeaseLost where the right has ended: to be asked before each write."""
        ...


class Slot(Protocol):
    """One job's share of CPU and API calls."""

    def waiting(self) -> AbstractAsyncContextManager[None]:
        """Lends the share to other jobs for as long as this one only waits for a webhook."""
        ...
