"""One parent with one child on a real API server. A test runs its syncs one by one, without a hook."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from builders import THINGS
from builders import observed as observed_of
from fake_hooks import FakeRecorder

from metaloop.common.api.rules import UpdateMethod
from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject, dumps, is_array, is_object
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.children_writer import ChildrenWriter, Effects
from metaloop.reconciler.core.children.changes import ApplyStrategy
from metaloop.reconciler.core.children.dynamic_apply import DynamicApply
from metaloop.reconciler.core.children.plan import plan_of
from metaloop.reconciler.core.children.server_side_apply import ServerSideApply
from metaloop.reconciler.core.model import ChildGroup, DesiredChild, Observed
from metaloop.reconciler.schemas import Schemas
from metaloop.reconciler.server_side_writer import ServerSideWriter

MANAGER = "metacontroller"
_TRIES = 20


@dataclass
class OneChild:
    """The child that a hook would desire, as it is on the API server."""

    kube: KubeClient
    schemas: Schemas
    parent: JsonObject
    info: ResourceInfo
    name: str
    strategy: str
    method: UpdateMethod = "InPlace"
    recorder: FakeRecorder = field(default_factory=FakeRecorder)

    def __post_init__(self) -> None:
        """All syncs write as one reconciler."""
        server_side = ServerSideWriter(recorder=self.recorder, field_manager=MANAGER)
        self._applier = ChildrenWriter(width=1, server_side=server_side, on_drift=lambda: None)

    @property
    def namespace(self) -> str:
        """The child's namespace."""
        return unstructured.namespace(self.parent) if self.info.namespaced else ""

    async def live(self) -> JsonObject | None:
        """The live child. None if it does not exist."""
        try:
            return await self.kube.get(self.info, self.namespace, self.name)
        except NotFound:
            return None

    async def existing(self) -> JsonObject:
        """The live child."""
        live = await self.live()
        assert live is not None
        return live

    async def sync(self, obj: JsonObject) -> Effects:
        """The effects of a sync that desires this object. After a conflict the sync is repeated, as the queue does."""
        for _ in range(_TRIES - 1):
            effects = await self.sync_seen(obj, await self.live())
            if not any(isinstance(failure.error, Conflict) for failure in effects.failures):
                return effects
        return await self.sync_seen(obj, await self.live())

    async def sync_seen(self, obj: JsonObject, found: JsonObject | None) -> Effects:
        """The effects of a sync that observed the child as it was `found`."""
        await self.schemas.wait_for([self.info])
        observed, desired = self._observed(found), self._desired(obj)
        plan = plan_of(observed, observed.groups, [desired], strategy=self._strategy_for(found))
        return await self._applier.carry_out(plan, observed=observed, api=self.kube)

    async def patch(self, change: JsonObject, *, manager: str = "somebody") -> JsonObject:
        """The child after somebody else changed it."""
        params: Mapping[str, str] = {"fieldManager": manager}
        return await self.kube.patch(self.info, self.namespace, self.name, dumps(change), MERGE_PATCH, params)

    def _strategy_for(self, found: JsonObject | None) -> ApplyStrategy:
        managed = managed_of(found) if found is not None else {}
        if self.strategy == "server-side-apply":
            return ServerSideApply(schemas=self.schemas.of, managed_fields=managed)
        return DynamicApply(schemas=self.schemas.of, managed_fields=managed)

    def _observed(self, found: JsonObject | None) -> Observed:
        objects = () if found is None else (as_watched(found),)
        group = ChildGroup(info=self.info, method=self.method, objects=objects)
        return replace(observed_of(group, info=THINGS), parent=self.parent)

    def _desired(self, obj: JsonObject) -> DesiredChild:
        return DesiredChild(info=self.info, method=self.method, namespace=self.namespace, name=self.name, obj=obj)


def entries_of(obj: JsonObject) -> list[JsonObject]:
    """An object's `managedFields`, without those of its status."""
    entries = unstructured.metadata(obj).get("managedFields")
    return [entry for entry in entries if is_object(entry) and not entry.get("subresource")] if is_array(entries) else []


def managed_of(obj: JsonObject) -> dict[str, JsonObject]:
    """Our entries in `managedFields`, as the watcher shows them."""
    ours = [entry for entry in entries_of(obj) if entry.get("manager") == MANAGER and entry.get("operation") == "Apply"]
    return {unstructured.uid(obj): entry for entry in ours}


def as_watched(obj: JsonObject) -> JsonObject:
    """The object as the watcher shows it."""
    return unstructured.without_metadata(obj, {"managedFields"})
