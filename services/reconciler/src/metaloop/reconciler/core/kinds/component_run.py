"""One pass over the objects of a component: what it knows so far, and the waves and removals that it carries out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from math import inf
from typing import Final, cast

from metaloop.common.api.component import ComponentController, Intervals
from metaloop.common.api.references import Reference
from metaloop.common.errors import InvalidParent
from metaloop.common.json import JsonObject, JsonValue, dumps_sorted
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.selector import Requirement, Selector
from metaloop.common.observation import Related
from metaloop.common.related_query import RelatedQuery
from metaloop.reconciler.core.children.plan import NO_LONGER_DESIRED
from metaloop.reconciler.core.component.cluster import Address, Cluster, KindName
from metaloop.reconciler.core.component.identity import Marks, ObjectKey, key_of, owner_id
from metaloop.reconciler.core.component.inventory import Item
from metaloop.reconciler.core.component.managed_types import ANY, ManagedType
from metaloop.reconciler.core.component.order import NAMESPACE, grouped
from metaloop.reconciler.core.component.progress import NOTHING_STATED, HookStatus, Progress
from metaloop.reconciler.core.component.references import ReferenceContents, addresses_of, contents_of, queries_of
from metaloop.reconciler.core.component.removal import Occasion, Removal, candidates, completing, deleting, going, removal_of
from metaloop.reconciler.core.component.storage import CONFIG_MAPS
from metaloop.reconciler.core.component.target import Target
from metaloop.reconciler.core.component.waves import (
    NOT_WRITTEN_FOR_LONG,
    STAGES,
    ObjectPlan,
    Rules,
    Wave,
    after_write,
    due_purges,
    observed,
    planned,
    priority_of,
    waves_of,
)
from metaloop.reconciler.core.effects import Done, Effects, describe
from metaloop.reconciler.core.kinds.component_inventory import InventoryStore
from metaloop.reconciler.core.kinds.component_readiness import judge
from metaloop.reconciler.core.model import ChildGroup, CreateChild, DeleteChild, Observed, Plan
from metaloop.reconciler.core.steps import Steps, describe_cluster, find_foreign, read_objects, subscribe_related, write_children
from metaloop.reconciler.errors import WritesFailed

_NAMESPACE_KIND: Final = KindName("v1", NAMESPACE.kind)
_COMPONENT_DELETED: Final = "the component is deleted"


@dataclass(slots=True, kw_only=True)
class ComponentRun:
    """What a pass knows. Its steps change it, so that it is true however the pass ends."""

    observed: Observed
    rules: Rules
    progress: Progress
    items: dict[ObjectKey, Item] = field(default_factory=dict[ObjectKey, Item])
    """The inventory. Empty until it is read."""
    intervals: Intervals = field(default_factory=Intervals)
    stated: HookStatus = NOTHING_STATED
    """What the hooks stated of the status so far."""
    references: tuple[Reference, ...] = ()
    contents: tuple[ReferenceContents, ...] = ()
    """What the component refers to."""
    cluster: Cluster = field(default_factory=lambda: Cluster(uid=""))
    live: dict[ObjectKey, JsonObject] = field(default_factory=dict[ObjectKey, JsonObject])
    """The objects that exist, as far as they were looked at."""
    former: JsonObject = field(default_factory=dict[str, JsonValue])
    """The status of the component when the pass began."""
    is_silent: bool = False
    """Whether no events are recorded about the component."""
    reapply_seconds: float = inf
    """When the first object is due to be written again although it looks up to date."""
    waiting: dict[ObjectKey, str] = field(default_factory=dict[ObjectKey, str])
    """What is not ready, and why."""
    infos: dict[ObjectKey, ResourceInfo] = field(default_factory=dict[ObjectKey, ResourceInfo])
    store: InventoryStore = field(init=False)
    """The inventory as it is stored."""
    placement: JsonObject = field(init=False)
    """Where objects are deployed to. It stays the same while there are any."""
    acting_as: str = ""
    """The user on whose behalf its objects are read and written. Empty: our own."""
    creates_namespaces: bool = False
    """Whether namespaces are created that objects need, and that are not among them."""

    def __post_init__(self) -> None:
        """Take from the status where the inventory is stored, and where objects were deployed to."""
        self.store = InventoryStore.of(self.observed.parent)
        self.placement = unstructured.child_object(unstructured.child_object(self.observed.parent, "status"), "placement")

    def require_placement(self, namespace: str) -> None:
        """Raise InvalidParent if objects were deployed to another namespace before: they would have to move."""
        former = self.placement.get("namespace", namespace)
        if self.items and former != namespace:
            field = (self.controller.parent_fields.namespace or "metadata.namespace").removeprefix(".")
            raise InvalidParent(field, f"can't change from {former} to {namespace} while objects are deployed")
        self.placement = {"namespace": namespace}

    def load(self) -> Steps[None]:
        """Read the inventory. Raises InvalidParent if a part of it is gone."""
        self.items = yield from self.store.load(self.observed)

    @property
    def controller(self) -> ComponentController:
        """The controller of the component."""
        return cast("ComponentController", self.observed.controller)

    def additional_types(self) -> tuple[ManagedType, ...]:
        """The managed types that the controller lists."""
        return tuple([ManagedType(each.group, ANY, each.kind) for each in self.controller.managed_types])

    # -- looking -------------------------------------------------------------------------------------------------------

    def describe(self, kinds: Iterable[KindName] = ()) -> Steps[Marks]:
        """Find out which of these kinds are served, and of those in the inventory. Returns the component's marks."""
        in_inventory = [KindName(item.api_version, item.key.kind) for item in self.items.values()]
        self.cluster = yield from describe_cluster({*kinds, *in_inventory})
        return Marks(prefix=self.controller.prefix, owner_id=owner_id(self.cluster.uid, self.observed.parent))

    def resolve(self, references: Sequence[Reference]) -> Steps[None]:
        """Find the contents of the objects that the component refers to. Raises ReferenceMissing.

        The subscription begins before anything is read, so that no later change is missed.
        """
        self.references = (*references,)
        if not references:
            return
        marks = yield from self.describe()
        self.rules = replace(self.rules, marks=marks)
        self.infos = self._infos_of(())
        related = yield from self._subscribed()
        found = {key_of(obj): obj for group in related.groups for obj in group.objects}
        missing = {key: address for key, address in addresses_of(references).items() if key not in found}
        read = yield from read_objects([*missing.values()])
        found |= {key: obj for key, obj in zip(missing, read, strict=True) if obj is not None}
        self.contents = contents_of(references, found, is_deleting=self.observed.is_deleting)

    def look(self, targets: Iterable[Target]) -> Steps[None]:
        """Subscribe to the objects in the inventory, and take those that are observed as they are."""
        self.infos = self._infos_of(targets)
        related = yield from self._subscribed()
        objects = (obj for group in related.groups for obj in group.objects)
        # What the component refers to is observed too, but perhaps later than its own objects are.
        own = (obj for obj in objects if not self.references or self.rules.marks.ownership(obj) == "ours")
        self.live = {key_of(obj): obj for obj in own}

    def _subscribed(self) -> Steps[Related]:
        """What is observed of the objects in the inventory, and of those that the component refers to."""
        queries = [*queries_of(self.references), *self._queries()]
        fingerprint = sha256(dumps_sorted([query.to_wire() for query in queries])).hexdigest()
        related = self.observed.related
        if related is None or related.fingerprint != fingerprint:
            related = yield from subscribe_related(fingerprint, queries)
            self.observed = replace(self.observed, related=related)
        return related

    def _infos_of(self, targets: Iterable[Target]) -> dict[ObjectKey, ResourceInfo]:
        infos = {target.key: target.info for target in targets if target.info is not None}
        for key, item in self.items.items():
            info = self.cluster.by_kind(item.api_version, key.kind)
            if info is not None:
                infos.setdefault(key, info)
        return infos

    def _queries(self) -> list[RelatedQuery]:
        """One query for each kind in the inventory: for the objects with our label."""
        marks = self.rules.marks
        labels = Selector((Requirement(marks.owner_key, "In", (marks.owner_label,)),))
        own = {CONFIG_MAPS.id} if self.store.uses_config_maps else set[ResourceId]()
        resources = sorted({self.infos[key].id for key in self.items if key in self.infos} | own)
        return [RelatedQuery(resource=each, labels=labels, watched=self.observed.controller.watched) for each in resources]

    def read(self, keys: Iterable[ObjectKey]) -> Steps[None]:
        """Read those of these objects that are not among the observed ones. They may exist without our label."""
        missing = [key for key in keys if key not in self.live and key in self.infos]
        addresses = [Address(self.infos[key], key.namespace, key.name) for key in missing]
        found = yield from read_objects(addresses, acting_as=self.acting_as)
        self.live |= {key: obj for key, obj in zip(missing, found, strict=True) if obj is not None}

    # -- waves ---------------------------------------------------------------------------------------------------------

    def apply(self, targets: Sequence[Target]) -> Steps[None]:
        """Apply wave by wave, up to the first that is not ready. `waiting` says then why."""
        yield from self._finish_purges(targets)
        waves = [*waves_of(targets, self.rules.managed_types)]
        applied: list[Target] = []
        for wave in waves:
            if self.waiting:
                return
            yield from self._apply_wave(wave)
            applied += [target for stage in STAGES for target in wave.stages[stage]]
            if not self.waiting:
                yield from self._purge(due_purges(applied, self.items, wave=wave.order, is_last=wave is waves[-1]))

    def _apply_wave(self, wave: Wave) -> Steps[None]:
        for stage in STAGES:
            for _, members in grouped(wave.stages[stage], priority_of):
                yield from self._apply_together(members)
            if self.waiting:
                return

    def _apply_together(self, members: Sequence[Target]) -> Steps[None]:
        """Write those objects that have to be, all at once. Raises WritesFailed or NameTaken."""
        yield from self.read(target.key for target in members if self.items[target.key].phase != "Completed")
        plans = [planned(target, self.items[target.key], self.live.get(target.key), self.rules) for target in members]
        yield from self._ensure_namespaces([plan for plan in plans if isinstance(plan.action, CreateChild)])
        writes = Plan(
            deletions=tuple([plan.action for plan in plans if isinstance(plan.action, DeleteChild)]),
            writes=tuple([plan.action for plan in plans if plan.action is not None and not isinstance(plan.action, DeleteChild)]),
        )
        if not writes:
            yield from self._settle(plans)
            return
        effects = yield from self._write(writes)
        done = {id(each.action): each for each in effects.done}
        failed = {failure.what for failure in effects.failures}
        yield from self._settle([self._after(plan, done) for plan in plans if plan.action is None or describe(plan.action) not in failed])
        if effects.failures:
            raise WritesFailed(effects.failures)

    def _after(self, plan: ObjectPlan, done: Mapping[int, Done]) -> ObjectPlan:
        """What is left of a plan. If its action was left out as a no-op write, the object is as observed."""
        if plan.action is None:
            return plan
        written = done.get(id(plan.action))
        if written is not None:
            return after_write(plan, written.written, self.rules)
        # Only what was due for another write counts as written: all else is found to be a no-op with each pass.
        item = plan.item if plan.action.reason == NOT_WRITTEN_FOR_LONG else self.items[plan.target.key]
        return observed(plan.target, item, self.live[plan.target.key], self.rules)

    def _settle(self, plans: Sequence[ObjectPlan]) -> Steps[None]:
        for plan in (yield from judge(plans, self.controller.status_hook, self.observed)):
            key = plan.target.key
            self.items[key] = plan.item
            if not plan.is_ready:
                self.waiting[key] = f"{key}: {plan.message or plan.item.phase}"

    def _ensure_namespaces(self, created: Sequence[ObjectPlan]) -> Steps[None]:
        """Create the namespaces that new objects need, if they are missing. They are nobody's then, and stay."""
        own = {key.name for key in self.items if (key.group, key.kind) == NAMESPACE}
        needed = sorted({plan.target.key.namespace for plan in created} - own - {"", self.observed.namespace})
        if not needed or not self.creates_namespaces:
            return
        cluster = yield from describe_cluster({_NAMESPACE_KIND})
        info = cluster.resources[_NAMESPACE_KIND]
        found = yield from read_objects([Address(info, "", name) for name in needed], acting_as=self.acting_as)
        missing = [name for name, obj in zip(needed, found, strict=True) if obj is None]
        if missing:
            manifests: list[JsonObject] = [{"apiVersion": "v1", "kind": info.kind, "metadata": {"name": name}} for name in missing]
            actions = tuple([CreateChild(info=info, obj=each, reason="an object needs it") for each in manifests])
            effects = yield from self._write(Plan(writes=actions))
            if effects.failures:
                raise WritesFailed(effects.failures)

    # -- purges --------------------------------------------------------------------------------------------------------

    def _purge(self, due: Sequence[ObjectKey]) -> Steps[None]:
        """Delete objects that served their purpose. The next wave waits until they are gone."""
        for key in due:
            self.items[key] = replace(self.items[key], phase="ScheduledForCompletion")
        yield from self._delete_completed(due)

    def _finish_purges(self, targets: Sequence[Target]) -> Steps[None]:
        """Go on with purges that an earlier pass began."""
        begun = [target.key for target in targets if self.items[target.key].phase in {"ScheduledForCompletion", "Completing"}]
        yield from self._delete_completed(begun)

    def _delete_completed(self, keys: Sequence[ObjectKey]) -> Steps[None]:
        yield from self.read(keys)
        for key in keys:
            is_present = key in self.live and self.rules.marks.ownership(self.live[key]) == "ours"
            self.items[key] = completing(self.items[key], is_present=is_present)
            if is_present:
                self.waiting[key] = f"{key}: it is purged"
        present = [key for key in keys if self.items[key].phase == "Completing"]
        yield from self._delete(present, reason="it is purged")

    # -- removal -------------------------------------------------------------------------------------------------------

    def remove(self, occasion: Occasion) -> Steps[None]:
        """Delete what has to go, up to the first that is not gone at once. `waiting` says then what is left."""
        while wave := candidates(self.items, occasion, self.rules.managed_types):
            yield from self.read(item.key for item in wave)
            removal = removal_of(wave, self.live, self.rules.marks, occasion=occasion)
            for key in removal.forget:
                del self.items[key]
            if removal.is_over:
                continue
            yield from self._carry_out(removal, occasion)
            break
        for item in going(self.items, occasion):
            self.waiting.setdefault(item.key, f"{item.key}: it is being deleted")

    def _carry_out(self, removal: Removal, occasion: Occasion) -> Steps[None]:
        blocked = yield from self._blocked(removal.delete)
        if blocked:
            self.waiting |= dict.fromkeys(removal.delete, f"deletion is blocked by {', '.join(blocked)}")
            return
        yield from self._delete(removal.delete, reason=NO_LONGER_DESIRED if occasion == "apply" else _COMPONENT_DELETED)
        for key in (*removal.delete, *removal.pending):
            self.items[key] = deleting(self.items[key])

    def _blocked(self, keys: Sequence[ObjectKey]) -> Steps[list[str]]:
        """Instances of the types that are about to go, and that others made."""
        types = [each for key in keys for each in self.items[key].managed_types]
        return (yield from self.find_foreign(types))

    def _delete(self, keys: Sequence[ObjectKey], *, reason: str) -> Steps[None]:
        doomed = [key for key in keys if not unstructured.is_deleting(self.live[key])]
        if not doomed:
            return
        actions = tuple([DeleteChild(info=self.infos[key], obj=self.live[key], reason=reason) for key in doomed])
        effects = yield from self._write(Plan(deletions=actions), self._groups())
        if effects.failures:
            raise WritesFailed(effects.failures)

    def find_foreign(self, types: Iterable[ManagedType]) -> Steps[list[str]]:
        """The first instances of types that are not the component's."""
        marks = self.rules.marks
        return (yield from find_foreign(types, label=marks.owner_key, value=marks.owner_label, acting_as=self.acting_as))

    def _write(self, plan: Plan, groups: tuple[ChildGroup, ...] = ()) -> Steps[Effects]:
        return (yield from write_children(self.observed, plan, groups, acting_as=self.acting_as))

    def _groups(self) -> tuple[ChildGroup, ...]:
        """The objects of the component by resource, as the deletion guards count them."""
        by_info: dict[ResourceInfo, list[JsonObject]] = {}
        for key in self.items:
            if key in self.live and key in self.infos:
                by_info.setdefault(self.infos[key], []).append(self.live[key])
        return tuple([ChildGroup(info=info, method="InPlace", objects=tuple(objects)) for info, objects in by_info.items()])
