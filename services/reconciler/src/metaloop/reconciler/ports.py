"""What a sync needs from outside: the API server, events, hooks, subscriptions, and its worker's lease and slot."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Literal, Protocol

from metaloop.common.api.hook import Hook
from metaloop.common.bus.messages import RelatedRequest
from metaloop.common.http.body import Body
from metaloop.common.http.connection import Permit
from metaloop.common.json import JsonObject
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.observation import Related
from metaloop.reconciler.core.model import Observed


class Api(Protocol):
    """The requests of the API server for single objects. Each returns the object as it is now.

    Raises the errors of `metaloop.common.kube.errors`.
    """

    def acting_as(self, user: str) -> "Api":
        """The same requests on behalf of a user."""
        ...

    async def get(self, info: ResourceInfo, namespace: str, name: str) -> JsonObject:
        """The live object."""
        ...

    async def list_page(self, info: ResourceInfo, namespace: str = "", params: Mapping[str, str] | None = None) -> JsonObject:
        """One page of a list."""
        ...

    async def create(self, info: ResourceInfo, obj: JsonObject, *, params: Mapping[str, str] | None = None) -> JsonObject:
        """Creates `obj`."""
        ...

    async def replace(
        self, info: ResourceInfo, obj: JsonObject, subresource: str = "", *, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Replaces the object or its subresource, provided that it has the UID and resourceVersion of `obj`."""
        ...

    async def patch(  # noqa: PLR0913, PLR0917 - which object, what, and how
        self, info: ResourceInfo, namespace: str, name: str, body: bytes, content_type: str, params: Mapping[str, str] | None = None
    ) -> JsonObject:
        """Patches the object. An apply patch creates it if it does not exist."""
        ...

    async def delete(self, info: ResourceInfo, namespace: str, name: str, *, uid: str, resource_version: str = "") -> object:
        """Deletes the object in the background, provided that it has this UID (and this resourceVersion, if given)."""
        ...


class ApiServer(Protocol):
    """The API server, before it is known on whose behalf it is asked."""

    def permitted_by(self, permit: Permit) -> Api:
        """The requests of a sync. Each is sent only if `permit` does not raise immediately before."""
        ...


class Recorder(Protocol):
    """Records Kubernetes Events. It aggregates them, and neither blocks nor fails."""

    def record(self, regarding: JsonObject, event_type: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Record an event about an object."""
        ...


class Hooks(Protocol):
    """The hooks of all controllers."""

    async def call(self, observed: Observed, hook: Hook, bodies: Mapping[str, Body], *, slot: "Slot", lease: "LeaseGuard") -> list[bytes]:
        """The bodies of the answers to `bodies`, which are named by revision, in order. Meanwhile the slot is lent.

        Raises LeaseLost, HookThrottled, HookFailed, Unavailable or InvalidSpec.
        """
        ...


class Subscriptions(Protocol):
    """The watcher's subscriptions to related objects, as a worker reaches them."""

    async def related(self, shard: str, request: RelatedRequest) -> Related:
        """Subscribes a parent to the queries of `request`. Returns the objects that they select. Raises Unavailable."""
        ...


class LeaseGuard(Protocol):
    """A worker's right to sync one parent."""

    def check(self) -> None:
        """Raises LeaseLost if the right has ended. It is checked immediately before each request is sent."""
        ...

    @property
    def lent_seconds(self) -> float:
        """How long whoever is told so now may act on the holder's behalf; infinite for a right without end."""
        ...

    def on_extension(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have `listener` called whenever the right was extended, for the length of the block."""
        ...


class Slot(Protocol):
    """One job's share of CPU and API calls."""

    def waiting(self) -> AbstractAsyncContextManager[None]:
        """Lends the share to other jobs while this one waits for a webhook."""
        ...
