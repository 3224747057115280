"""What the stages need from outside: the API server, events, hooks, and the lease and CPU slot of the worker they run for."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from metaloop.common.api.hook import Hook
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Related
from metaloop.reconciler.core.model import Observed


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
    """The hooks of all controllers."""

    async def call(self, observed: Observed, hook: Hook, bodies: Mapping[str, bytes], *, slot: "Slot") -> list[bytes]:
        """The bodies of a hook's answers to these, in their order; each stands under the name of its revision. The slot is lent meanwhile.

        Raises HookThrottled, HookFailed, Unavailable or InvalidSpec.
        """
        ...


class Subscriptions(Protocol):
    """The watcher, as the one that follows related objects: a worker's link to it."""

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """Has the queries of `request` followed from now on; what they select. Raises Unavailable."""
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
