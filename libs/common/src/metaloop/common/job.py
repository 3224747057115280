"""A job's identity: controller, parent, trace context; its subject and its wire form.

A job says *that* a parent should be looked at, never what happened to it: who takes the job observes the world anew. The queue of jobs is

- **fair**: no controller and no key waits for ever behind others;
- **stingy**: a key marked many times before it is taken runs once; marked while it runs, it runs once more;
- **single**: no key is held by two workers at once (a lease says who holds it, and a holder that can't renew stops before its next write);
- **at least once**: a mark is never lost, whichever process dies: workers' jobs come back, and a watcher that starts marks every parent.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from metaloop.common.json import dumps, loads
from metaloop.common.objects.resource import ResourceId


class ControllerId(NamedTuple):
    """Which controller: `CompositeController` or `DecoratorController`, and its name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class JobKey(NamedTuple):
    """A unit of work: one parent of one controller, or one part of it. It is what is queued, leased and synced.

    `namespace` is empty for cluster-scoped parents. A tuple, since each event and sync looks it up in several dictionaries.
    """

    controller: ControllerId
    resource: ResourceId
    """The parent's resource."""
    namespace: str
    name: str
    part: str = ""
    """Which part of the parent's work: an opaque token, empty for the parent itself. Only the controller's kind gives it a meaning."""

    def __str__(self) -> str:
        parent = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.controller} {self.resource.resource} {parent}{f'#{self.part}' if self.part else ''}"

    def to_wire(self) -> list[str]:
        """The wire form, as `from_wire` takes it: six strings, and the part as the seventh where there is one."""
        parent = [self.controller.kind, self.controller.name, self.resource.api_version, self.resource.resource, self.namespace, self.name]
        return [*parent, self.part] if self.part else parent

    @classmethod
    def from_wire(cls, parts: list[str]) -> "JobKey":
        """The key whose `to_wire` was `parts`. Raises ValueError for anything but six or seven strings."""
        controller_kind, controller_name, api_version, resource, namespace, name, *rest = parts
        (part,) = rest or [""]
        return cls(ControllerId(controller_kind, controller_name), ResourceId(api_version, resource), namespace, name, part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What travels on the job stream: the key, the shard whose watcher leases it, why it was queued, and the trace it belongs to (or "")."""

    key: JobKey
    shard: str
    reason: str = ""
    traceparent: str = ""

    @property
    def subject(self) -> str:
        """The stream subject of the key: one message per subject is what makes a second publish of a queued key fail."""
        return subject_of(self.key, self.shard)

    def to_bytes(self) -> bytes:
        """Its wire form, JSON `{key, shard, reason, traceparent}`."""
        return dumps({"key": self.key.to_wire(), "shard": self.shard, "reason": self.reason, "traceparent": self.traceparent})

    @classmethod
    def from_bytes(cls, wire: bytes) -> "Job":
        """The job of a wire form; raises ValueError or KeyError for anything else."""
        raw = loads(wire)
        return cls(key=JobKey.from_wire(raw["key"]), shard=raw["shard"], reason=raw["reason"], traceparent=raw["traceparent"])


_PLAIN = re.compile(r"[A-Za-z0-9~:@+-][A-Za-z0-9_~:@+-]*")
"""What needs no escaping: nearly every name, told apart in a tenth of the time that escaping takes."""


def subject_token(text: str) -> str:
    """`text` as one token of a subject: dots, spaces, wildcards and control characters escaped as %XX; empty text is `_`."""
    if _PLAIN.fullmatch(text):
        return text
    return quote(text, safe=":@+-").replace(".", "%2E") if text else "_"


def subject_of(key: JobKey, shard: str) -> str:
    """`metaloop.job.<shard>.<kind>.<controller>.<resource>.<namespace>.<name>`, and `.<part>` for a part of a parent's work."""
    parent = f"{_subject_prefix(key.controller, key.resource, shard)}{subject_token(key.namespace)}.{subject_token(key.name)}"
    return f"{parent}.{subject_token(key.part)}" if key.part else parent


@lru_cache(maxsize=1024)
def _subject_prefix(controller: ControllerId, resource: ResourceId, shard: str) -> str:
    return "metaloop.job." + "".join(f"{subject_token(part)}." for part in (shard, controller.kind, controller.name, str(resource)))
