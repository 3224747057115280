"""A worker's report about a finished job: its result, when to sync again, and what was written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from metaloop.common.faults import AnyFault, Result, fault_of
from metaloop.common.job import WIRE_VERSION, JobKey, check_message
from metaloop.common.json import dumps, loads
from metaloop.common.objects.resource import ResourceId

UNKNOWN_VERSION: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """A write that the API server executed, or may have: no later observation may be older than it."""

    resource: ResourceId
    namespace: str
    name: str
    uid: str
    resource_version: str
    """The object's new version; empty for a deletion, `UNKNOWN_VERSION` if the answer was lost."""
    watched: str = ""
    """The label selector within which the object is watched, beside watches of all objects; empty: there is none."""

    @property
    def is_deletion(self) -> bool:
        """Whether the write asked for the object's deletion."""
        return not self.resource_version

    @property
    def is_uncertain(self) -> bool:
        """Whether it is unknown if the write was executed."""
        return self.resource_version == UNKNOWN_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """The result of one sync, for the watcher's queue."""

    key: JobKey
    lease: str
    result: Result
    after_seconds: float | None = None
    """With `throttled`: how long the webhook asked us to wait; None for the key's backoff. With `retry`: the longest
    backoff; None for the usual one."""
    resync_after_seconds: float | None = None
    """The hook's `resyncAfterSeconds`, for any result. The earliest pending one counts."""
    fault: AnyFault | None = None
    """The reason of any result other than `done`."""
    message: str = ""
    """Details of the fault, for people."""
    writes: Sequence[Write] = ()
    rivals: Sequence[str] = ()
    """The parts of the same parent that hold what this one needs: they fail with it."""
    actions: Mapping[str, int] = field(default_factory=dict[str, int])
    """How many writes of each kind of action were carried out."""
    hook_seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    """How long the calls of each hook took, together."""
    trace_id: str = ""
    """The trace of the sync; empty where none was recorded."""

    @property
    def reason(self) -> str:
        """The fault's name for users; empty without a fault."""
        return self.fault.reason if self.fault else ""

    def to_bytes(self) -> bytes:
        """The wire form: JSON with the names of the fields; a write is a list of seven strings."""
        return dumps(
            {
                "version": WIRE_VERSION,
                "key": self.key.to_wire(),
                "lease": self.lease,
                "result": self.result,
                "after": self.after_seconds,
                "resyncAfter": self.resync_after_seconds,
                "fault": self.fault.wire if self.fault else None,
                "message": self.message,
                "writes": [
                    [w.resource.api_version, w.resource.resource, w.namespace, w.name, w.uid, w.resource_version, w.watched]
                    for w in self.writes
                ],
                "rivals": [*self.rivals],
                **{name: value for name, value in self._details() if value},
            }
        )

    def _details(self) -> tuple[tuple[str, object], ...]:
        """What only explains the sync. It is left out of the wire form where it is empty."""
        return ("actions", self.actions), ("hookSeconds", self.hook_seconds), ("traceId", self.trace_id)

    @classmethod
    def from_bytes(cls, wire: bytes) -> "SyncReport":
        """The report from its wire form. Raises UnknownVersion; ValueError, KeyError or TypeError for anything else."""
        raw = loads(wire)
        check_message(raw)
        return cls(
            key=JobKey.from_wire(raw["key"]),
            lease=raw["lease"],
            result=raw["result"],
            after_seconds=raw["after"],
            resync_after_seconds=raw["resyncAfter"],
            fault=None if raw["fault"] is None else fault_of(raw["fault"]),
            message=raw["message"],
            writes=[
                Write(
                    resource=ResourceId(w[0], w[1]),
                    namespace=w[2],
                    name=w[3],
                    uid=w[4],
                    resource_version=w[5],
                    watched=w[6] if len(w) > 6 else "",
                )
                for w in raw["writes"]
            ],
            rivals=tuple(raw.get("rivals", ())),
            actions=raw.get("actions", {}),
            hook_seconds=raw.get("hookSeconds", {}),
            trace_id=raw.get("traceId", ""),
        )
