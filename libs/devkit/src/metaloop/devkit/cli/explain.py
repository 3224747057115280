"""`metaloop explain`: why a parent was synced last, how that ended, what it waits for, and when it is due."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import typer

from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.cli.debug_views import DebugOptions, debug_views

_STAGES: Mapping[str, str] = {
    "idle": "nothing marked it since its last sync",
    "waiting": "waits for its turn",
    "gated": "waits until the watcher has seen what its last sync wrote",
    "parked": "waits until a watch that broke has caught up",
    "queued": "is offered to the reconcilers, and none has taken it yet",
    "leased": "is being synced now",
}
_DUE: Mapping[str, str] = {
    "retry": "is tried again",
    "resync_after": "is synced again, as its hook asked for",
    "resync": "is resynced",
    "later": "is synced because of what touched it",
    "at_latest": "is synced at the latest because of what touched it",
    "gate": "no longer waits for its own writes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentName:
    """Which parent the command asks about."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


async def explain(asked: ParentName, options: DebugOptions) -> None:
    """Print what the watchers know of a parent."""
    async with debug_views(options) as views:
        known = await views.read("explain", kind=asked.kind, namespace=asked.namespace, name=asked.name)
        controllers = [] if known else await views.read("controllers")
    for line in explained(asked, known, controllers=controllers):
        typer.echo(line)


def explained(asked: ParentName, known: Iterable[JsonObject], *, controllers: Iterable[JsonObject] = ()) -> Iterator[str]:
    """The lines about a parent, of which the watchers know this."""
    answers = [*known]
    if not answers:
        yield f"{asked}: no running controller has parents of this kind."
        for controller in controllers:
            if not controller["ready"]:
                yield f"  {controller['controller']} is not ready: {controller['reason']}: {controller['message']}"
        return
    for answer in answers:
        yield f"{asked}, of {answer['controller']}"
        yield from (f"  {line}" for line in _lines_on(answer))


def _lines_on(answer: JsonObject) -> Iterator[str]:
    if answer["watchProblem"]:
        yield f"Its kind can't be watched now: {answer['watchProblem']}"
    if not answer["exists"]:
        yield "The watcher sees no such object: it doesn't exist, or was created a moment ago."
    elif not answer["selected"]:
        yield "It is not selected: its labels or annotations don't match the controller's selectors. Nothing is done to it."
    if answer["controllerIsPaused"]:
        yield "The controller is paused by metaloop.dev/paused: no hook is called, and no child is written."
    if answer["parentIsPaused"]:
        yield "It is paused by metaloop.dev/paused: no hook is called, and no child is written."
    for unit in _objects(answer["units"]):
        yield from _lines_on_unit(unit)
    if answer["exists"] and answer["selected"]:
        period = answer["resyncSeconds"]
        yield f"The controller has it resynced every {period:g} s." if period else "The controller has no resync period."


def _lines_on_unit(unit: JsonObject) -> Iterator[str]:
    if unit["part"]:
        yield f"Part {unit['part']}:"
    queue, last = unit["queue"], unit["last"]
    yield from _lines_on_queue(queue) if is_object(queue) else ["It is at rest: nothing marked it, and nothing is due."]
    awaits = unit["awaits"]
    if is_array(awaits) and awaits:
        yield f"It waits until these writes of its last sync are seen: {', '.join(map(str, awaits))}"
    yield from (
        _lines_on_last(last) if is_object(last) else ["Nothing is known of its last sync: the views were off, or another watcher led."]
    )


def _lines_on_queue(queue: JsonObject) -> Iterator[str]:
    stage = str(queue["stage"])
    because = f", because: {queue['reason']} ({queue['class']}, {queue['ageSeconds']} s ago)" if queue["reason"] else ""
    yield f"It {_STAGES.get(stage, stage)}{because}."
    if queue["againBecause"]:
        yield f"Afterwards it is synced once more, because: {queue['againBecause']}"
    if queue["failures"]:
        yield f"It failed {queue['failures']} times in a row."
    for purpose, seconds in unstructured.child_object(queue, "dueInSeconds").items():
        if purpose in _DUE:
            yield f"In {seconds} s it {_DUE[purpose]}, unless something happens before."


def _lines_on_last(last: JsonObject) -> Iterator[str]:
    yield (
        f"Last sync: {last['result']}, {last['endedSecondsAgo']} s ago, because: {last['because']} ({last['class']}); "
        f"it waited {last['waitedSeconds']} s and took {last['tookSeconds']} s."
    )
    if last.get("reason"):
        yield f"It ended with {last['reason']}: {last.get('message', '')}"
    if hooks := unstructured.child_object(last, "hookSeconds"):
        yield "Hooks: " + ", ".join(f"{hook} {seconds} s" for hook, seconds in hooks.items())
    actions = unstructured.child_object(last, "actions")
    yield "Written: " + (", ".join(f"{count} {action}" for action, count in actions.items()) or "nothing")
    if last.get("traceId"):
        yield f"Trace: {last['traceId']}"


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if is_object(item)] if is_array(value) else []
