"""What a worker tells the watcher about a job that it finished: how it ended, when to come back, and what it wrote."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from metaloop.common.faults import AnyFault, Result, fault_of
from metaloop.common.job import JobKey
from metaloop.common.json import dumps, loads
from metaloop.common.objects.resource import ResourceId

UNKNOWN_VERSION: Final = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write that the API server acknowledged, or may have executed, so that nobody is shown a view from before it."""

    resource: ResourceId
    namespace: str
    name: str
    uid: str
    resource_version: str
    """What the object has now; empty for a deletion, `UNKNOWN_VERSION` for a write whose answer was lost."""

    @property
    def is_deletion(self) -> bool:
        """Whether the write asked for the object's deletion."""
        return not self.resource_version

    @property
    def is_uncertain(self) -> bool:
        """Whether nobody knows if it was executed."""
        return self.resource_version == UNKNOWN_VERSION


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncReport:
    """The end of one sync, as the watcher's queue needs it."""

    key: JobKey
    lease: str
    result: Result
    after_seconds: float | None = None
    """With `throttled`: how long the webhook asked us to wait, None where it didn't say (then the key's backoff applies).
    With `retry`: the longest that the backoff may wait, None where it may grow as usual."""
    resync_after_seconds: float | None = None
    """The hook's own `resyncAfterSeconds`, for any result; the earliest pending one wins."""
    fault: AnyFault | None = None
    """Why it ended so; None with `done`."""
    message: str = ""
    """What the fault is about, for people."""
    writes: Sequence[Write] = ()

    @property
    def reason(self) -> str:
        """What users read of the fault; empty without one."""
        return self.fault.reason if self.fault else ""

    def to_bytes(self) -> bytes:
        """Its wire form, JSON with the fields' names; a write is a list of six strings."""
        return dumps(
            {
                "key": self.key.to_wire(),
                "lease": self.lease,
                "result": self.result,
                "after": self.after_seconds,
                "resyncAfter": self.resync_after_seconds,
                "fault": self.fault.wire if self.fault else None,
                "message": self.message,
                "writes": [
                    [w.resource.api_version, w.resource.resource, w.namespace, w.name, w.uid, w.resource_version] for w in self.writes
                ],
            }
        )

    @classmethod
    def from_bytes(cls, wire: bytes) -> "SyncReport":
        """The report of a wire form; raises ValueError or KeyError for anything else."""
        raw = loads(wire)
        return cls(
            key=JobKey.from_wire(raw["key"]),
            lease=raw["lease"],
            result=raw["result"],
            after_seconds=raw["after"],
            resync_after_seconds=raw["resyncAfter"],
            fault=None if raw["fault"] is None else fault_of(raw["fault"]),
            message=raw["message"],
            writes=[
                Write(resource=ResourceId(w[0], w[1]), namespace=w[2], name=w[3], uid=w[4], resource_version=w[5]) for w in raw["writes"]
            ],
        )
