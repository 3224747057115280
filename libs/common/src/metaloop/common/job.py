"""A job's identity: controller, parent, trace context; its wire form.

A job says *that* a parent should be synced, never what happened to it: the worker that takes it observes the cluster
anew. The queue of jobs is

- **fair**: no controller and no key waits for ever behind others;
- **stingy**: a key that is marked many times before it is taken runs once; one that is marked while it runs, runs once
  more; no two workers hold a key at once (a lease says who holds it, and a holder that can't renew it stops before its
  next write);
- **at least once**: no mark is lost, whichever process dies: a dead worker's jobs come back, and a watcher whose term
  begins marks every parent.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

from metaloop.common.json import JsonValue, dumps, is_object, loads
from metaloop.common.objects.resource import ResourceId

WIRE_VERSION: Final = 1
"""The version of what watchers and workers say to one another.

Jobs, claims and reports carry it. Whoever does not know a version refuses the message. It changes when a message means
something else than before, and not when a field is added that older versions may ignore."""


class UnknownVersion(ValueError):
    """A message of a version that this process does not know: another one does, or will once it was upgraded."""


def check_version(version: object) -> None:
    """Return for the version that this process knows; one that names none is of the first. Raises UnknownVersion."""
    if version not in {None, WIRE_VERSION}:
        raise UnknownVersion(f"a message of version {version}: this process knows version {WIRE_VERSION}")


def check_message(raw: JsonValue) -> None:
    """Return for an object of the version that this process knows. Raises UnknownVersion, and TypeError otherwise."""
    if not is_object(raw):
        raise TypeError("a message has to be an object")
    check_version(raw.get("version"))


class ControllerId(NamedTuple):
    """Which controller: the name of its kind, as in `CompositeController`, and its own name."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


class JobKey(NamedTuple):
    """A unit of work: one parent of one controller, or one part of it. It is what is queued, leased and synced.

    `namespace` is empty for cluster-scoped parents. A tuple, since each event and sync looks it up in several
    dictionaries.
    """

    controller: ControllerId
    resource: ResourceId
    """The parent's resource."""
    namespace: str
    name: str
    part: str = ""
    """Which part of the parent's work: an opaque token, empty for the parent itself. Only the controller's kind gives
    it a meaning."""

    def __str__(self) -> str:
        parent = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.controller} {self.resource.resource} {parent}{f'#{self.part}' if self.part else ''}"

    @property
    def parent(self) -> "JobKey":
        """The key of the parent itself."""
        return self._replace(part="") if self.part else self

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
    """What travels on the job stream: a key, and why it was queued."""

    key: JobKey
    shard: str
    """Whose watcher leases it."""
    reason: str = ""
    traceparent: str = ""
    """The trace that it belongs to; empty for none."""

    def to_bytes(self) -> bytes:
        """Its wire form, JSON `{version, key, shard, reason, traceparent}`."""
        return dumps(
            {
                "version": WIRE_VERSION,
                "key": self.key.to_wire(),
                "shard": self.shard,
                "reason": self.reason,
                "traceparent": self.traceparent,
            }
        )

    @classmethod
    def from_bytes(cls, wire: bytes) -> "Job":
        """The job of a wire form. Raises UnknownVersion, and ValueError, KeyError or TypeError for anything else."""
        raw = loads(wire)
        check_message(raw)
        return cls(key=JobKey.from_wire(raw["key"]), shard=raw["shard"], reason=raw["reason"], traceparent=raw["traceparent"])
