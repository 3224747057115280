"""What differs for a controller of Metacontroller once Metaloop serves it.

Rules:

- Nothing here reads a cluster: it is given what the cluster holds.
- A finding says what somebody should do, or look at, and on which object. What both do alike is no finding.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from metaloop.common.api import LAST_APPLIED_ANNOTATION, MAX_CONCURRENT_ANNOTATION
from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import parse_controller
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JSONDecodeError, JsonObject, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.watcher.core.instance import Instance
from metaloop.watcher.core.watchset import instance_of

_LONGEST_RESYNC_SECONDS: Final = 1800.0
"""Above it, Metacontroller ignores the period."""
_NAMED: Final = 3
"""How many objects a finding names."""


class Level(StrEnum):
    """What a finding asks for."""

    BLOCKS = "blocks"
    """Metaloop does not serve the controller, or some of its parents, before this is changed."""
    PREPARE = "prepare"
    """Something has to be done before the move."""
    DIFFERS = "differs"
    """Metaloop behaves otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is different, and what to do about it."""

    level: Level
    message: str

    def __str__(self) -> str:
        """One line for people."""
        return f"{self.level}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerFacts:
    """What a cluster holds of one controller."""

    raw: JsonObject
    served: Mapping[ResourceId, ResourceInfo]
    """What the API server serves."""
    parents: Sequence[JsonObject] = ()
    """The objects that the controller selects, or that have its finalizer."""
    children: Sequence[JsonObject] = ()
    """All objects of its child resources."""
    revisions: Sequence[JsonObject] = ()
    """All ControllerRevisions."""


def findings_of(facts: ControllerFacts) -> list[Finding]:
    """What differs for a controller, what is needed first, and what would stop it. In order of urgency."""
    try:
        controller = parse_controller(facts.raw)
    except InvalidSpec as problem:
        return [_blocks(f"Metaloop does not serve it: {problem}")]
    found = [finding for check in _CHECKS for finding in check(controller, facts)]
    return sorted(found, key=lambda finding: [*Level].index(finding.level))


def _unservable(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    found = instance_of(controller, facts.served)
    if not isinstance(found, Instance):
        yield _blocks(f"Metaloop does not serve it: {found}")


def _children_elsewhere(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    """Metacontroller creates such children and never sees them again. Metaloop refuses the answer."""
    namespaced = [facts.served[rule.resource].namespaced for rule in controller.parents if rule.resource in facts.served]
    wide = [rule.resource for rule in controller.children if rule.resource in facts.served and not facts.served[rule.resource].namespaced]
    if wide and all(namespaced) and namespaced:
        yield _blocks(
            f"its parents are namespaced, and {', '.join(map(str, wide))} is cluster-scoped: an answer with such a child is refused"
        )
    parents = {unstructured.uid(parent): unstructured.namespace(parent) for parent in facts.parents}
    astray = [child for child in _owned(facts) if parents[_owner_uid(child)] not in {"", unstructured.namespace(child)}]
    if astray:
        yield _blocks(f"children in another namespace than their parent, which Metaloop refuses: {_named(astray)}")


def _credentials(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    """In Metaloop, only the gateway calls webhooks, and it may read nothing by itself."""
    del controller
    for kind, namespace, name in sorted(set(_references(facts.raw.get("spec")))):
        yield Finding(
            level=Level.PREPARE,
            message=f"its webhook needs the {kind} {namespace}/{name}: allow the gateway to list and watch it (metaloop-hook-credentials)",
        )


def _resync(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    del controller
    period = unstructured.child_object(facts.raw, "spec").get("resyncPeriodSeconds")
    if not isinstance(period, int | float):
        return
    if period <= 0:
        yield _differs(f"resyncPeriodSeconds is {period}: Metacontroller syncs each second, Metaloop never by itself")
    elif period > _LONGEST_RESYNC_SECONDS:
        yield _differs(f"resyncPeriodSeconds is {period}: Metacontroller ignores periods above 30 minutes, Metaloop keeps them")


def _concurrency(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    del controller
    if facts.parents and MAX_CONCURRENT_ANNOTATION not in unstructured.annotations(facts.raw):
        yield _differs(
            f"its webhook gets more calls at once than Metacontroller's five: annotate it with {MAX_CONCURRENT_ANNOTATION}: "
            '"5" if it cannot take them'
        )


def _finalizers(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    held = [parent for parent in facts.parents if controller.finalizer in unstructured.finalizers(parent)]
    if held and controller.hooks.finalize is None:
        yield _differs(f"it has no finalize hook any more: {controller.finalizer} is taken off {_named(held)}")
    waiting = [parent for parent in held if unstructured.is_deleting(parent)]
    if waiting and controller.hooks.finalize is not None:
        yield _differs(f"its finalize hook is called at once for parents that are being deleted: {_named(waiting)}")


def _last_applied(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    """Both keep the same annotation in the same form."""
    del controller
    owned = _owned(facts)
    bare = [child for child in owned if LAST_APPLIED_ANNOTATION not in unstructured.annotations(child) and not _is_applied(child)]
    if bare:
        yield _differs(f"children without a record of what was applied: fields that the hook leaves out stay on them: {_named(bare)}")
    broken = [child for child in owned if not _is_readable(unstructured.annotations(child).get(LAST_APPLIED_ANNOTATION, "{}"))]
    if broken:
        yield Finding(level=Level.PREPARE, message=f"children whose {LAST_APPLIED_ANNOTATION} is no JSON object: {_named(broken)}")


def _rollouts(controller: Controller, facts: ControllerFacts) -> Iterator[Finding]:
    """Metacontroller's rollouts of several children stop after the first; Metaloop finishes them."""
    del controller
    uids = {unstructured.uid(parent): parent for parent in facts.parents}
    owners = Counter(_owner_uid(revision) for revision in facts.revisions)
    unfinished = [parent for uid, parent in uids.items() if owners[uid] > 1]
    if unfinished:
        yield _differs(f"a rollout is not finished, and goes on at once: {_named(unfinished)}")
    names = {child_name(child) for child in facts.children}
    stale = [each for each in facts.revisions if _owner_uid(each) in uids and _claims(each) - names]
    if stale:
        yield _differs(f"revisions name children that are gone, and are corrected: {_named(stale)}")


def child_name(child: JsonObject) -> tuple[str, str]:
    """Kind and name, as a revision names a child."""
    return unstructured.kind(child), unstructured.name(child)


_CHECKS: Final[Sequence[Callable[[Controller, ControllerFacts], Iterator[Finding]]]] = (
    _unservable,
    _children_elsewhere,
    _credentials,
    _last_applied,
    _rollouts,
    _finalizers,
    _resync,
    _concurrency,
)


def _claims(revision: JsonObject) -> set[tuple[str, str]]:
    entries = unstructured.child_objects(revision, "children")
    return {(unstructured.text(entry, "kind"), str(name)) for entry in entries for name in _list(entry.get("names"))}


def _references(value: object) -> Iterator[tuple[str, str, str]]:
    """The Secrets and ConfigMaps that a spec names, wherever in it."""
    if is_object(value):
        for key, entry in value.items():
            kind = {"secretRef": "Secret", "configMapRef": "ConfigMap"}.get(key)
            if kind is not None and is_object(entry):
                yield kind, unstructured.text(entry, "namespace"), unstructured.text(entry, "name")
            yield from _references(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _references(entry)


def _owned(facts: ControllerFacts) -> list[JsonObject]:
    parents = {unstructured.uid(parent) for parent in facts.parents}
    return [child for child in facts.children if _owner_uid(child) in parents]


def _owner_uid(obj: JsonObject) -> str:
    owner = controller_ref(obj)
    return owner.uid if owner is not None else ""


def _is_applied(child: JsonObject) -> bool:
    """Whether somebody applied it server-side: then its fields have owners."""
    return any(entry.get("operation") == "Apply" for entry in unstructured.child_objects(unstructured.metadata(child), "managedFields"))


def _is_readable(text: str) -> bool:
    try:
        return is_object(loads(text))
    except JSONDecodeError:
        return False


def _list(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _named(objects: Sequence[JsonObject]) -> str:
    """The first few objects, and how many more there are."""
    names = sorted("/".join(filter(None, (unstructured.kind(obj), unstructured.namespace(obj), unstructured.name(obj)))) for obj in objects)
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + rest


def _blocks(message: str) -> Finding:
    return Finding(level=Level.BLOCKS, message=message)


def _differs(message: str) -> Finding:
    return Finding(level=Level.DIFFERS, message=message)
