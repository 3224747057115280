"""A cluster with one parent. A test runs its syncs one by one."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from builders import CONFIG_MAPS, THINGS, a_controller, a_parent
from fake_api import FakeApi
from fake_hooks import FakeHooks, FakeLease, FakeRecorder, FakeSubscriptions, OpenSlot
from known_schemas import GuessedSchemas

from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects import unstructured
from metaloop.common.observation import Granted, Observation, ObservedGroup, Related
from metaloop.common.report import SyncReport
from metaloop.reconciler.children_writer import ChildrenWriter
from metaloop.reconciler.cluster_reader import ClusterReader
from metaloop.reconciler.core.children.deletion_guard import DEFAULT_LIMITS
from metaloop.reconciler.core.kinds.registry import SYNCS
from metaloop.reconciler.deletion_guards import DeletionGuards
from metaloop.reconciler.large_parents import LargeParents
from metaloop.reconciler.observe import Observer
from metaloop.reconciler.parent_writer import ParentWriter
from metaloop.reconciler.server_side_writer import ServerSideWriter
from metaloop.reconciler.strategies import Strategies
from metaloop.reconciler.sync import Dependencies, Syncer

_THREAD = ThreadPoolExecutor(1)
"""Where the syncs of large parents compute."""


def a_syncer(
    api: FakeApi,
    hooks: FakeHooks,
    recorder: FakeRecorder,
    *,
    subscriptions: FakeSubscriptions | None = None,
    guards: DeletionGuards | None = None,
) -> Syncer:
    """A syncer that uses these fakes."""
    server_side = ServerSideWriter(recorder=recorder, field_manager="metacontroller")
    return Syncer(
        dependencies=Dependencies(
            api=api,
            children=ChildrenWriter(width=2, server_side=server_side, on_drift=lambda: None),
            hooks=hooks,
            parents=ParentWriter(),
            subscriptions=subscriptions or FakeSubscriptions(),
            recorder=recorder,
            strategies=Strategies(schemas=GuessedSchemas(), default="dynamic-apply"),
            guards=guards or DeletionGuards(limits=DEFAULT_LIMITS),
            cluster=ClusterReader(Discovery(api), uid="cluster", width=2),  # type: ignore[arg-type]
        ),
        observer=Observer(KINDS),
        syncs=SYNCS,
        large=LargeParents(_THREAD),
    )


class Sync:
    """A cluster with one parent, a hook, and a watcher whose cache is always current."""

    def __init__(
        self,
        hook: Callable[[JsonObject], JsonObject | bytes],
        *,
        parent: JsonObject | None = None,
        controller: JsonObject | None = None,
        guards: DeletionGuards | None = None,
    ) -> None:
        self.api = FakeApi()
        self.hooks = FakeHooks(hook)
        self.recorder = FakeRecorder()
        self.controller = controller or a_controller()
        self.related: Related | None = None
        self.api.put(THINGS, parent or a_parent())
        self.subscriptions = FakeSubscriptions()
        self._syncer = a_syncer(self.api, self.hooks, self.recorder, subscriptions=self.subscriptions, guards=guards)

    @property
    def parent(self) -> JsonObject:
        return self.api.all_of(THINGS)[0]

    @property
    def children(self) -> dict[str, JsonObject]:
        return {unstructured.name(obj): obj for obj in self.api.all_of(CONFIG_MAPS)}

    def observe(self) -> Granted:
        groups = [ObservedGroup(info=CONFIG_MAPS, objects=self.api.all_of(CONFIG_MAPS))]
        observation = Observation(
            controller=self.controller, parent_resource=THINGS, parent=self.parent, children=groups, related=self.related
        )
        return Granted(lease="lease-1", lease_seconds=5.0, observation=observation)

    async def run(self, granted: Granted | None = None, *, lease: FakeLease | None = None) -> SyncReport:
        self.api.requests.clear()
        return await self._syncer.sync(granted or self.observe(), OpenSlot(), lease or FakeLease())
