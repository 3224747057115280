"""Parts: the inputs that a parent selects, and the outputs that were made for each. Each input is a part of its work.

The parent itself is a unit of work as well. It is touched once what is counted has settled, so that a burst of changes
costs few syncs of it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject
from metaloop.common.objects.owner import ControllerRef
from metaloop.common.report import SyncReport
from metaloop.watcher.core.adopters import Adopters
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.fair_queue import MarkClass
from metaloop.watcher.core.part_counts import Output, PartCounts, PartObject, shown_failures
from metaloop.watcher.core.predicate import is_status_only
from metaloop.watcher.core.record import ObjectKey, Record
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.rules.rule import Concern, Ended, EndedParts, Group, Later, PartsOf, Shown, Swept, Touched, Unit
from metaloop.watcher.core.watch import Watch

COUNTS_SETTLE_SECONDS: Final = 1.0
"""How long the counts must not change before the parent itself is synced."""
COUNTS_WAIT_SECONDS: Final = 10.0
"""After how long it is synced although its counts still change."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """The inputs and outputs of parents of one resource."""

    parents: Parents
    selectors: Adopters
    """The index of what `parents` select as their inputs."""
    inputs: tuple[Group, ...]
    outputs: tuple[Group, ...]
    part_of: Callable[[str], str]
    """The part of the input with this UID."""
    output_of: Callable[[Record], Output | None]
    """What an object that a parent controls says of itself; None where it is no output of this controller."""
    names: tuple[tuple[str, ...], tuple[str, ...]]
    """What the groups of inputs and of outputs are called in a status."""
    counts: dict[ObjectKey, PartCounts] = field(default_factory=dict[ObjectKey, PartCounts])
    """Of each parent that is not being deleted."""

    @property
    def watches(self) -> Sequence[Watch]:
        """The parents, since a changed parent concerns all of its parts; inputs and outputs."""
        return tuple({watch.id: watch for watch in (self.parents.watch, *(each.watch for each in (*self.inputs, *self.outputs)))}.values())

    def concerned(self, change: Change, caches: Caches) -> Iterator[Concern]:
        """All parts of a parent that changed; the parts of an input or output that changed, and their parents."""
        watch = change.watch.id
        if watch == self.parents.watch.id:
            yield from self._of_parent(change, caches)
        for position, group in enumerate(self.inputs):
            if group.watch.id == watch:
                yield from self._of_input(position, change)
        for position, group in enumerate(self.outputs):
            if group.watch.id == watch:
                yield from self._of_output(position, change)

    def shown(self, unit: Unit, caches: Caches) -> Iterator[Shown]:
        """The input of a part, if there is one, and its outputs. Of the parent itself nothing but its summary."""
        part, counts = unit.key.part, self.counts.get(unit.parent.key)
        if not part or counts is None:
            return
        place = counts.inputs.get(part)
        if place is not None:
            yield Shown(self.inputs[place.group], _found(caches, self.inputs[place.group], place))
        for each in counts.places.get(part, ()):
            yield Shown(self.outputs[each.group], _found(caches, self.outputs[each.group], each))

    # -- the parent itself: a Tally ------------------------------------------------------------------------------------

    def total(self) -> int:
        """How many inputs there are, and former inputs that still have outputs. One of two parents counts twice."""
        return sum(len(counts.inputs) + len(counts.places.keys() - counts.inputs.keys()) for counts in self.counts.values())

    def has(self, key: JobKey) -> bool:
        """Whether a part has its input or any output."""
        counts = self.counts.get((key.namespace, key.name))
        return counts is not None and counts.has(key.part)

    def summary(self, unit: Unit) -> JsonObject | None:
        """How many inputs and outputs a parent has, and which of its parts fail."""
        counts = self.counts.get(unit.parent.key)
        if counts is None or unit.key.part:
            return None
        inputs, outputs = self.names
        return {
            "inputs": {name: {"total": total} for name, total in zip(inputs, counts.input_totals, strict=True)},
            "outputs": {name: each.shown() for name, each in zip(outputs, counts.output_counts, strict=True)},
            "failing": shown_failures(counts, [group.watch.resource.resource for group in self.inputs]),
            "pending": len(counts.pending),
        }

    def reported(self, report: SyncReport, *, is_failing: bool) -> Iterator[Concern]:
        """The parent, if its part fails now or no longer, or was the last one that was waited for."""
        key = report.key
        counts = self.counts.get((key.namespace, key.name))
        if key.part and counts is not None and counts.record(report, is_failing=is_failing):
            yield self._later((key.namespace, key.name))

    # -- a parent changed ----------------------------------------------------------------------------------------------

    def _of_parent(self, change: Change, caches: Caches) -> Iterator[Concern]:
        key, new, known = self.parents.key(change.key), change.new, self.counts.get(change.key)
        if new is None or new.is_deleting or not self.parents.serves(new):
            self.counts.pop(change.key, None)
            if known is not None:
                yield EndedParts(PartsOf(key, tuple(known.parts())))
            return
        if known is not None and known.uid == new.uid and change.old is not None and is_status_only(change.old, new):
            yield self._later(change.key)  # in case that somebody else wrote it
            return
        counts = self.counts[change.key] = self._recounted(new, known, caches)
        if known is not None and known is not counts:
            yield EndedParts(PartsOf(key, [part for part in known.parts() if not counts.has(part)]))
        if counts.selector is None:
            return  # nobody knows what its inputs are: the sync of the parent itself says why
        parts = tuple(counts.parts())
        counts.pending.update(parts)
        yield Swept(PartsOf(key, parts))

    def _recounted(self, parent: Record, known: PartCounts | None, caches: Caches) -> PartCounts:
        """The counts after a change of the parent. What the change does not concern is not looked at again."""
        if known is None or known.uid != parent.uid:
            return self.counted(parent, caches)
        if known.selector == self.selectors.selector_of(parent.key):
            return known
        counts = known.without_inputs()
        self._select_inputs(parent, counts, caches)
        return counts

    def counted(self, parent: Record, caches: Caches) -> PartCounts:
        """What there is of the parts of a parent, by a look at the caches. Nothing is pending, and nothing fails."""
        counts = PartCounts.empty(parent.uid, inputs=len(self.inputs), outputs=len(self.outputs))
        self._select_inputs(parent, counts, caches)
        for position, group in enumerate(self.outputs):
            for record in caches[group.watch.id].owned_by(parent.uid):
                output = self.output_of(record)
                if output is not None:
                    counts.put_output(PartObject(position, record.key), output)
        return counts

    def _select_inputs(self, parent: Record, counts: PartCounts, caches: Caches) -> None:
        counts.selector = self.selectors.selector_of(parent.key)
        part_of = self.part_of
        for position, group in enumerate(self.inputs):
            selected = self._selected(parent, group, caches)
            counts.add_inputs(position, {part_of(record.uid): PartObject(position, record.key) for record in selected})

    def _selected(self, parent: Record, group: Group, caches: Caches) -> Iterator[Record]:
        selector, cache, namespace = self.selectors.selector_of(parent.key), caches[group.watch.id], parent.key[0]
        if selector is None:
            return
        keys = cache.index.in_namespace(namespace, selector) if namespace else cache.index.anywhere(selector)
        objects, uid, matches = cache.objects, parent.uid, selector.matches
        for key in keys:
            record = objects[key]
            if _is_input(record, uid) and matches(record.labels):
                yield record

    # -- an input changed ----------------------------------------------------------------------------------------------

    def _of_input(self, position: int, change: Change) -> Iterator[Concern]:
        namespace, place = change.key[0], PartObject(position, change.key)
        labels = [record.labels for record in (change.old, change.new) if record is not None]
        for parent in dict.fromkeys(parent for each in labels for parent in self.selectors.matching(namespace, each)):
            counts = self.counts.get(parent)
            if counts is not None:
                yield from self._of_input_of(parent, counts, place, change)

    def _of_input_of(self, parent: ObjectKey, counts: PartCounts, place: PartObject, change: Change) -> Iterator[Concern]:
        new, selector = change.new, self.selectors.selector_of(parent)
        is_input = new is not None and selector is not None and _is_input(new, counts.uid) and selector.matches(new.labels)
        before = self.part_of(change.old.uid) if change.old is not None else ""
        after = self.part_of(new.uid) if new is not None and is_input else ""
        if before and before != after and counts.drop_input(before, place):
            yield self._left(parent, counts, before)
            yield self._later(parent)
        if after:
            is_new = counts.put_input(after, place)
            yield Touched(self.parents.key(parent, after), MarkClass.NEW if is_new else MarkClass.CHANGED)
            if is_new:
                yield self._later(parent)

    # -- an output changed ---------------------------------------------------------------------------------------------

    def _of_output(self, position: int, change: Change) -> Iterator[Concern]:
        place, old, new = PartObject(position, change.key), change.old, change.new
        before = self._owner_of(old.owner, change.key) if old is not None else None
        after = self._owner_of(new.owner, change.key) if new is not None else None
        output = self.output_of(new) if new is not None and after is not None else None
        if before is not None:
            filed = self.counts[before].outputs.get(place)
            if filed is not None and (before != after or output is None or output.part != filed.part):
                self.counts[before].drop_output(place)
                yield self._left(before, self.counts[before], filed.part)
                yield from [Touched(self.parents.key(before, part)) for part in self.counts[before].waiting_for(filed.part)]
                yield self._later(before)
        if new is not None and after is not None and output is not None:
            if self.counts[after].put_output(place, output):
                yield self._later(after)
            yield Touched(self.parents.key(after, output.part), version=new.resource_version)

    def _owner_of(self, owner: ControllerRef | None, child: ObjectKey) -> ObjectKey | None:
        """The parent that an owner reference means; None where it means none of ours."""
        resource = self.parents.watch.resource
        if owner is None or owner.kind != resource.kind or owner.group != resource.group:
            return None
        key = (child[0] if resource.namespaced else "", owner.name)
        counts = self.counts.get(key)
        return key if counts is not None and counts.uid == owner.uid else None

    # -- what follows --------------------------------------------------------------------------------------------------

    def _left(self, parent: ObjectKey, counts: PartCounts, part: str) -> Concern:
        """A part that lost its input or an output: it is over once it has neither."""
        key = self.parents.key(parent, part)
        return Touched(key) if counts.has(part) else Ended(key)

    def _later(self, parent: ObjectKey) -> Later:
        return Later(self.parents.key(parent), quiet_seconds=COUNTS_SETTLE_SECONDS, within_seconds=COUNTS_WAIT_SECONDS)


def _is_input(record: Record, parent_uid: str) -> bool:
    """Whether an object may be an input of a parent: it is not being deleted, nor an output or child of that parent."""
    return not record.is_deleting and (record.owner is None or record.owner.uid != parent_uid)


def _found(caches: Caches, group: Group, place: PartObject) -> Sequence[Record]:
    record = caches.lookup(group.watch.id, place.key)
    return (record,) if record is not None else ()
