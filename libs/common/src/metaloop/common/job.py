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
    """One parent of one controller: the unit that is queued, leased and synced. `namespace` is empty for cluster-scoped parents.

    A tuple, since it is looked up in dictionaries several times in each event and sync.
    """

    controller: ControllerId
    resource: ResourceId
    namespace: str
    name: str

    def __str__(self) -> str:
        parent = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.controller} {self.resource.resource} {parent}"

    def to_wire(self) -> list[str]:
        """Its wire form: the six strings that `from_wire` takes."""
        return [self.controller.kind, self.controller.name, self.resource.api_version, self.resource.resource, self.namespace, self.name]

    @classmethod
    def from_wire(cls, parts: list[str]) -> "JobKey":
        """The key whose `to_wire` was `parts`."""
        controller_kind, controller_name, api_version, resource, namespace, name = parts
        return cls(ControllerId(controller_kind, controller_name), ResourceId(api_version, resource), namespace, name)


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
    """`metaloop.job.<shard>.<kind>.<controller>.<resource>.<namespace>.<name>`."""
    return f"{_subject_prefix(key.controller, key.resource, shard)}{subject_token(key.namespace)}.{subject_token(key.name)}"


@lru_cache(maxsize=1024)
def _subject_prefix(controller: ControllerId, resource: ResourceId, shard: str) -> str:
    return "metaloop.job." + "".join(f"{subject_token(part)}." for part in (shard, controller.kind, controller.name, str(resource)))
