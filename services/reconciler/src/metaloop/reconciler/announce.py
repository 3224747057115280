"""Announces each finished sync: one log line, counters, and a Warning event if somebody has to fix something."""

from collections import Counter
from dataclasses import dataclass

from metaloop.common.faults import AnyFault, Owner
from metaloop.common.job import JobKey
from metaloop.common.json import JsonObject
from metaloop.common.telemetry import fields, get_logger
from metaloop.reconciler.core.model import Outcome
from metaloop.reconciler.ports import Recorder
from metaloop.reconciler.sync_numbers import numbers

_log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedSync:
    """A sync that ended, and all that is announced about it."""

    key: JobKey
    parent: JsonObject
    outcome: Outcome
    actions: Counter[str]
    """How many writes of each kind were carried out."""
    seconds: float
    unknown_keys: tuple[str, ...]
    """Keys of a loosely read answer that no field has."""
    change_to_hook_seconds: float | None = None
    """From the change that caused the sync until its first hook call; None where no change did, or no hook was called.
    """
    part: str = ""
    """The part of the parent that was synced, as people know it. Empty for the parent as a whole."""


def announce(sync: FinishedSync, recorder: Recorder) -> None:
    """Counts a sync, logs it, and records an event if the parent is the audience of its fault."""
    _count(sync)
    _log_line(sync)
    if sync.outcome.fault is not None and sync.outcome.audience == "parent":
        _record_event(sync, sync.outcome.fault, recorder)


def _record_event(sync: FinishedSync, fault: AnyFault, recorder: Recorder) -> None:
    if fault.owner is Owner.APPROVER:  # nothing failed: the event asks for a confirmation, and has its own reason
        recorder.record(sync.parent, "Warning", fault.reason, sync.outcome.message)
    else:
        about = f" of {sync.part}" if sync.part else ""
        recorder.record(sync.parent, "Warning", "SyncError", f"Sync error{about}: {sync.outcome.message}")


def _count(sync: FinishedSync) -> None:
    syncs = numbers.of(sync.key.controller)
    syncs.results[sync.outcome.result] += 1
    syncs.seconds.observe(sync.seconds)
    if sync.change_to_hook_seconds is not None:
        syncs.change_to_hook.observe(sync.change_to_hook_seconds)
    syncs.writes.update(sync.actions)


def _log_line(sync: FinishedSync) -> None:
    """The one log line of a sync. If the sync did nothing, its level is debug."""
    key, outcome = sync.key, sync.outcome
    line: dict[str, object] = {
        fields.CONTROLLER: str(key.controller),
        fields.PARENT: f"{key.namespace}/{key.name}" if key.namespace else key.name,
        fields.OUTCOME: outcome.result,
        fields.ACTIONS: dict(sync.actions),
        fields.SECONDS: round(sync.seconds, 6),
    }
    if sync.part:
        line[fields.PART] = sync.part
    if sync.unknown_keys:
        line[fields.UNKNOWN_KEYS] = sync.unknown_keys
    if outcome.reason:
        line |= {fields.REASON: outcome.reason, fields.ERROR: outcome.message}
    if outcome.audience != "nobody":
        _log.warning("sync.done", **line)
    elif sync.actions or sync.unknown_keys or outcome.reason:
        _log.info("sync.done", **line)
    else:
        _log.debug("sync.done", **line)
