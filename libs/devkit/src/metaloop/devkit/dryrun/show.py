"""Shows the result of a dry run as text or as JSON."""

import difflib
from collections.abc import Iterator

import yaml
from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

from metaloop.common.api import LAST_APPLIED_ANNOTATION
from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.common.report import SyncReport
from metaloop.devkit.dryrun.driver import DryRun, PlannedWrite

_BOOKKEEPING = frozenset({"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink"})
_SIGNS = {
    "create": ("+", "green"),
    "delete": ("-", "red"),
    "purge": ("-", "red"),
    "recreate": ("±", "magenta"),
    "keep": ("=", "dim"),
    "wait": ("…", "dim"),
    "orphan": ("=", "yellow"),
    "refuse": ("!", "red"),
    "block": ("!", "red"),
}
_CHANGED = ("~", "yellow")


def as_json(result: DryRun, *, title: JsonObject) -> JsonObject:
    """The result as JSON."""
    return {
        **title,
        "writes": [_write_as_json(write) for write in result.writes],
        "obstacles": [*result.obstacles],
        "events": [*result.events],
        "outcome": _outcome_as_json(result.report),
    }


def print_text(result: DryRun, *, title: str, console: Console) -> None:
    """Print the writes in their order, each with its reason and its diff."""
    console.print(Text(title, style="bold"))
    wave = ""
    for number, write in enumerate(result.writes, start=1):
        if write.wave != wave:
            wave = write.wave
            console.print(Text(f"{wave}:", style="bold"))
        sign, colour = _SIGNS.get(write.verb, _CHANGED)
        place = f"{write.name} ({write.subresource})" if write.subresource else write.name
        console.print(Text(f"{sign} {number}. {write.verb} {place}: {write.reason}", style=colour))
        if difference := "\n".join(difference_of(write)):
            console.print(Syntax(difference, "diff", background_color="default", word_wrap=True))
    for obstacle in result.obstacles:
        console.print(Text(f"! nothing of this happens now: {obstacle}", style="red"))
    for event in result.events:
        console.print(Text(f"! event: {event}", style="yellow"))
    console.print(Text(_summary(result)))


def difference_of(write: PlannedWrite) -> Iterator[str]:
    """The lines of a unified diff. A created object has added lines only, and a deleted one has none."""
    if write.verb in {"delete", "purge"} or not write.is_write:
        return
    before, after = _lines(write.before, write), _lines(write.after, write)
    if not before:
        yield from (f"+{line}" for line in after)
        return
    yield from list(difflib.unified_diff(before, after, lineterm="", n=2))[2:]


def _lines(obj: JsonObject | None, write: PlannedWrite) -> list[str]:
    if obj is None:
        return []
    shown: JsonValue = unstructured.child_object(obj, "status") if write.subresource == "status" else _without_bookkeeping(obj)
    return yaml.safe_dump(shown, sort_keys=True, allow_unicode=True, default_flow_style=False).splitlines()


def _without_bookkeeping(obj: JsonObject) -> JsonObject:
    """The object without its status, the API server's bookkeeping and the last applied annotation."""
    metadata = {key: value for key, value in unstructured.metadata(obj).items() if key not in _BOOKKEEPING}
    annotations = unstructured.child_object(metadata, "annotations")
    if LAST_APPLIED_ANNOTATION in annotations and set(annotations) != {LAST_APPLIED_ANNOTATION}:
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED_ANNOTATION}
    elif LAST_APPLIED_ANNOTATION in annotations:
        del metadata["annotations"]
    return {key: (metadata if key == "metadata" else value) for key, value in obj.items() if key != "status"}


def _summary(result: DryRun) -> str:
    report = result.report
    if report is not None and report.result != "done":
        return f"The sync would end with {report.reason}: {report.message}"
    writes = [write for write in result.writes if write.is_write]
    if not writes:
        return "Nothing to do: all is as desired."
    again = f"; it would be looked at again after {report.resync_after_seconds:g} s" if report and report.resync_after_seconds else ""
    return f"{len(writes)} writes would be done, and none was{again}."


def _write_as_json(write: PlannedWrite) -> JsonObject:
    return {
        "verb": write.verb,
        "wave": write.wave,
        "apiVersion": write.info.api_version,
        "kind": write.info.kind,
        "object": write.name,
        "subresource": write.subresource,
        "reason": write.reason,
        "before": write.before,
        "after": write.after,
        "diff": [*difference_of(write)],
    }


def _outcome_as_json(report: SyncReport | None) -> JsonObject:
    if report is None:
        return {}
    return {
        "result": report.result,
        "reason": report.reason,
        "message": report.message,
        "resyncAfterSeconds": report.resync_after_seconds,
    }
