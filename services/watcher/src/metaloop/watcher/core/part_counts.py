"""What is known of the parts of one parent: its inputs, its outputs by part, and which parts fail.

Everything is counted as it changes, so that the status of a parent with 20,000 inputs costs no walk over them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest
from typing import Final, NamedTuple, TypeAlias

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.selector import Selector
from metaloop.common.report import SyncReport
from metaloop.watcher.core.record import ObjectKey

FAILING_SHOWN: Final = 5
"""How many failing parts are shown by name."""
_LONGEST_MESSAGE: Final = 300
_REMEMBERED: Final = 1024


class PartObject(NamedTuple):
    """An object: the group that it belongs to, by its position, and its key."""

    group: int
    key: ObjectKey


Conditions: TypeAlias = tuple[tuple[str, bool], ...]
"""The conditions of an object by lower-camel type, and whether each is True."""


class Output(NamedTuple):
    """An output: the part that it was made for, and its conditions."""

    part: str
    conditions: Conditions


class PartFailure(NamedTuple):
    """Why a part fails."""

    reason: str
    message: str


@dataclass(slots=True)
class GroupCounts:
    """The outputs of one resource: how many there are, and how many have each condition True."""

    total: int = 0
    having: dict[str, int] = field(default_factory=dict[str, int])
    """How many have a condition, whatever its status. No number is 0."""
    true: dict[str, int] = field(default_factory=dict[str, int])

    def count(self, conditions: Conditions, sign: int) -> None:
        """Count an output, or with `sign` -1 count it no longer."""
        self.total += sign
        for name, is_true in conditions:
            self.having[name] = self.having.get(name, 0) + sign
            self.true[name] = self.true.get(name, 0) + sign * is_true
            if not self.having[name]:
                del self.having[name], self.true[name]

    def shown(self) -> JsonObject:
        """The counts as a status shows them."""
        return {**{name: self.true[name] for name in sorted(self.true)}, "total": self.total}


@dataclass(slots=True, eq=False)
class PartCounts:
    """The parts of one parent."""

    uid: str
    """The parent's."""
    input_totals: list[int]
    """By group."""
    output_counts: list[GroupCounts]
    """By group."""
    inputs: dict[str, PartObject] = field(default_factory=dict[str, PartObject])
    """By part."""
    places: dict[str, tuple[PartObject, ...]] = field(default_factory=dict[str, tuple[PartObject, ...]])
    """The outputs by part. No tuple is empty."""
    outputs: dict[PartObject, Output] = field(default_factory=dict[PartObject, Output])
    pending: set[str] = field(default_factory=set[str])
    """The parts whose sync has not ended since all of them were marked."""
    failing: dict[str, SyncReport] = field(default_factory=dict[str, SyncReport])
    """The last report of each part whose last sync failed."""
    selector: Selector | None = None
    """What the inputs are selected by; None where nobody knows."""

    @staticmethod
    def empty(uid: str, *, inputs: int, outputs: int) -> "PartCounts":
        """Nothing yet, of a parent with so many groups of inputs and outputs."""
        return PartCounts(uid, [0] * inputs, [GroupCounts() for _ in range(outputs)])

    def parts(self) -> Iterator[str]:
        """All parts: those with an input, and those with outputs only."""
        yield from self.inputs
        yield from (part for part in self.places if part not in self.inputs)

    def has(self, part: str) -> bool:
        """Whether anything is left of a part."""
        return part in self.inputs or part in self.places

    def without_inputs(self) -> "PartCounts":
        """The same outputs, and no inputs: they are to be selected anew. Nothing is pending, and nothing fails."""
        return PartCounts(self.uid, [0] * len(self.input_totals), self.output_counts, places=self.places, outputs=self.outputs)

    def put_input(self, part: str, place: PartObject) -> bool:
        """Have the input of a part; whether it had none."""
        is_new = part not in self.inputs
        self.inputs[part] = place
        self.input_totals[place.group] += is_new
        return is_new

    def add_inputs(self, group: int, inputs: Mapping[str, PartObject]) -> None:
        """Have all inputs of a group by their parts. There must be none of it yet."""
        self.inputs.update(inputs)
        self.input_totals[group] = len(inputs)

    def drop_input(self, part: str, place: PartObject) -> bool:
        """Have the input of a part no longer; whether it was there."""
        if self.inputs.get(part) != place:
            return False
        del self.inputs[part]
        self.input_totals[place.group] -= 1
        self._forget_if_gone(part)
        return True

    def put_output(self, place: PartObject, output: Output) -> bool:
        """Have an output as it is now; whether the counts changed."""
        before = self.outputs.get(place)
        if before == output:
            return False
        if before is not None:
            self.drop_output(place)
        self.outputs[place] = output
        self.places[output.part] = (*self.places.get(output.part, ()), place)
        self.output_counts[place.group].count(output.conditions, 1)
        return before is None or before.conditions != output.conditions

    def drop_output(self, place: PartObject) -> str:
        """Have an output no longer; the part that it belonged to, empty where it was not there."""
        output = self.outputs.pop(place, None)
        if output is None:
            return ""
        self.output_counts[place.group].count(output.conditions, -1)
        rest = tuple(each for each in self.places[output.part] if each != place)
        if rest:
            self.places[output.part] = rest
        else:
            del self.places[output.part]
            self._forget_if_gone(output.part)
        return output.part

    def record(self, report: SyncReport, *, is_failing: bool) -> bool:
        """Learn how the sync of a part ended; whether that changes what is to be shown."""
        part = report.key.part
        was_pending, before = part in self.pending, self.failing.pop(part, None)
        self.pending.discard(part)
        if is_failing and self.has(part):
            self.failing[part] = report
        after = self.failing.get(part)
        is_changed = (before is None) != (after is None) or (before and after and _failure_in(before) != _failure_in(after))
        return bool(is_changed) or (was_pending and not self.pending)

    def failures(self) -> dict[str, PartFailure]:
        """The failing parts. A part that holds what another one needs fails with it."""
        failures = {part: _failure_in(report) for part, report in self.failing.items()}
        for part, report in self.failing.items():
            for rival in report.rivals:
                if self.has(rival):
                    message = f"an output of it is desired for the input with map key {part} as well"
                    failures.setdefault(rival, PartFailure(report.reason, message))
        return failures

    def waiting_for(self, part: str) -> list[str]:
        """The failing parts that need what a part holds."""
        return [each for each, report in self.failing.items() if part in report.rivals]

    def _forget_if_gone(self, part: str) -> None:
        if not self.has(part):
            self.pending.discard(part)
            self.failing.pop(part, None)


def shown_failures(counts: PartCounts, resources: Sequence[str]) -> JsonObject:
    """How many parts fail, and the first of them by the names of their inputs.

    `resources` are the plurals of the groups of inputs.
    """
    failures = counts.failures()
    named = nsmallest(FAILING_SHOWN, ((_name(counts.inputs.get(part), resources), part) for part in failures))
    return {"count": len(failures), "inputs": [_shown(name, part, failures[part]) for name, part in named]}


def _name(place: PartObject | None, resources: Sequence[str]) -> tuple[str, str, str]:
    """The resource, namespace and name of an input; an input that is gone has none and comes last."""
    return (resources[place.group], *place.key) if place is not None else ("~", "", "")


def _shown(name: tuple[str, str, str], part: str, failure: PartFailure) -> JsonObject:
    resource, namespace, called = name
    identity: JsonObject = {"resource": resource, "namespace": namespace, "name": called} if called else {}
    told: JsonObject = {"mapKey": part, "reason": failure.reason, "message": failure.message}
    return {**{key: value for key, value in identity.items() if value}, **told}


def _failure_in(report: SyncReport) -> PartFailure:
    return PartFailure(report.reason, report.message[:_LONGEST_MESSAGE])


def conditions_of(obj: JsonObject) -> Conditions:
    """The conditions in the status of an object."""
    listed = unstructured.child_objects(unstructured.child_object(obj, "status"), "conditions")
    return _shared(tuple(sorted(_named(listed).items()))) if listed else ()


def _named(conditions: Iterable[JsonObject]) -> dict[str, bool]:
    named: dict[str, bool] = {}
    for each in conditions:
        name = lower_camel(unstructured.text(each, "type"))
        if name:
            named[name] = named.get(name, False) or each.get("status") == "True"
    return named


@lru_cache(_REMEMBERED)
def _shared(conditions: Conditions) -> Conditions:
    """The first of equal conditions: thousands of outputs have the same."""
    return conditions


_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@lru_cache(_REMEMBERED)
def lower_camel(name: str) -> str:
    """`PodScheduled` as `podScheduled`, `PIDPressure` as `pidPressure`, `example.com/Ready` as `exampleComReady`."""
    first, *rest = _WORDS.findall(name) or [""]
    return first.lower() + "".join(word[0].upper() + word[1:] for word in rest)
