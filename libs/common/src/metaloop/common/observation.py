"""The watcher's observation of one parent for a reconciler: values, and their wire form.

The watcher embeds cached JSON bytes in an observation without parsing them. The reconciler parses the observation once.
The wire form is JSON. In that of a large grant, each object has a line of its own: so the watcher need not copy the
objects into one piece, and the reconciler parses them as they arrive (`ReplyReader`).
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias, assert_never

import orjson

from metaloop.common.json import JsonObject, JsonValue, dumps, loads
from metaloop.common.objects.resource import ResourceId, ResourceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """The objects of one resource: a parent's children and the orphans that it may adopt, or its related objects."""

    info: ResourceInfo
    objects: Sequence[JsonObject]
    managed: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Our entry of `managedFields` for each object that we applied server-side, by UID. The objects have no
    `managedFields`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """The related objects that a parent's queries select.

    The groups are incomplete while any resource is `waiting` or `unknown`.
    """

    fingerprint: str
    """Identifies what the queries were made from. The reconciler sent it with the queries."""
    groups: Sequence[ObservedGroup] = ()
    """One group for each resource in the queries, even if it is empty."""
    waiting: Sequence[ResourceInfo] = ()
    """The resources whose watch has not synced yet."""
    unknown: Sequence[ResourceId] = ()
    """The resources that the API server does not serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A parent and everything that its sync needs, no older than Metaloop's last write for that parent."""

    controller: JsonObject
    parent_resource: ResourceInfo
    parent: JsonObject
    children: Sequence[ObservedGroup]
    """One group for each declared child resource, in their order, even if it is empty.

    Candidates of a namespaced parent are in its own namespace.
    """
    revisions: Sequence[JsonObject] = ()
    inputs: Sequence[ObservedGroup] = ()
    """What the unit of work is about beside its parent and children, for kinds whose parents have such objects."""
    related: Related | None = None
    """The objects that the parent's subscription selects; None without a subscription."""
    part: str = ""
    """The part of the parent's work that was claimed; empty for the parent itself."""
    summary: JsonObject | None = None
    """What the watcher counted of the parts of a parent; None for a part, and for kinds whose parents have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The worker may sync the key: no other worker gets it until `lease_seconds` after the last renewal."""

    lease: str
    lease_seconds: float
    observation: Observation
    shard: str = ""
    """The shard whose watcher granted the lease."""
    observed_bytes: int = 0
    """How large the observation was on the wire."""
    changed_seconds_ago: float | None = None
    """How long before the grant the change was seen that the sync answers; None where none did, but a timer, say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTerms:
    """The lease of a grant, as it is known before the observation has arrived."""

    lease: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Another worker holds a lease on the key: give the job back, and claim it again after `retry_seconds`."""

    retry_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """There is nothing to sync, because the parent or its controller is gone or no longer selected: finish the job."""

    reason: str
    lease: str = ""


ClaimReply: TypeAlias = Granted | Busy | Gone


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedGroup:
    """An `ObservedGroup` on the watcher's side: each object is the bytes in the cache."""

    resource: ResourceInfo
    objects: Sequence[bytes]
    managed: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedRelated:
    """A `Related` on the watcher's side: each object is the bytes in the cache."""

    fingerprint: str
    groups: Sequence[CachedGroup] = ()
    waiting: Sequence[ResourceInfo] = ()
    unknown: Sequence[ResourceId] = ()

    def to_bytes(self) -> bytes:
        """The wire form."""
        return dumps(_related_to_wire(self, to_list=_to_fragments))


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedObservation:
    """An `Observation` on the watcher's side: each object is the bytes in the cache."""

    controller: bytes
    parent_resource: ResourceInfo
    parent: bytes
    children: Sequence[CachedGroup]
    revisions: Sequence[bytes] = ()
    inputs: Sequence[CachedGroup] = ()
    related: CachedRelated | None = None
    part: str = ""
    summary: JsonObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedGrant:
    """A `Granted` on the watcher's side."""

    lease: str
    lease_seconds: float
    observation: CachedObservation
    changed_seconds_ago: float | None = None


CachedClaimReply: TypeAlias = CachedGrant | Busy | Gone
"""A `ClaimReply` on the watcher's side."""


LARGE_BYTES: Final = 256 * 1024
"""The objects of a larger grant are sent and parsed one by one."""

_TERMS: Final = re.compile(rb'\{"state":"granted","lease":"([^"\\\\]+)","leaseSeconds":([0-9.eE+-]+),')


def reply_to_bytes(reply: CachedClaimReply) -> bytes:
    """The wire form of a reply to a claim."""
    return b"".join(reply_to_pieces(reply))


def reply_to_pieces(reply: CachedClaimReply) -> Sequence[bytes]:
    """The wire form of a reply to a claim, in pieces. Those of a large grant are the cached objects themselves."""
    match reply:
        case CachedGrant():
            is_large = _objects_bytes(reply.observation) > LARGE_BYTES
            return _to_lines(reply) if is_large else (dumps(_grant_to_wire(reply, to_list=_to_fragments)),)
        case Busy(retry_seconds=seconds):
            return (dumps({"state": "busy", "retrySeconds": seconds}),)
        case Gone(reason=reason, lease=lease):
            return (dumps({"state": "gone", "reason": reason, "lease": lease}),)
        case _:
            assert_never(reply)


def reply_from_bytes(wire: bytes, *, shard: str = "") -> ClaimReply:
    """A shard's reply to a claim from its wire form. Raises KeyError, TypeError or ValueError for anything else."""
    return _reply_of(loads(wire), shard, len(wire))


class ReplyReader:
    """Reads a reply to a claim from its parts. An object that has a line of its own is parsed when it is complete."""

    def __init__(self) -> None:
        self._unfinished: list[bytes] = []
        """The beginning of the next line."""
        self._frame: list[bytes] = []
        """The lines that are no objects: the JSON of the reply, with empty lists."""
        self._lists: list[list[JsonValue]] = []
        """What the lists contain, in the order of the frame."""
        self._bytes = 0

    def feed(self, part: bytes) -> None:
        """Read the next part. Raises ValueError for an object that is not JSON."""
        self._bytes += len(part)
        *lines, rest = part.split(b"\n")
        for line in lines:
            self._take(b"".join((*self._unfinished, line)))
            self._unfinished.clear()
        self._unfinished.append(rest)

    def reply(self, *, shard: str = "") -> ClaimReply:
        """The shard's reply, which is complete. Raises KeyError, TypeError or ValueError for anything else."""
        self._take(b"".join(self._unfinished))
        raw = loads(b"".join(self._frame))
        if self._lists:
            _fill(raw, iter(self._lists))
        return _reply_of(raw, shard, self._bytes)

    def _take(self, line: bytes) -> None:
        if self._frame and line.startswith(b"{"):
            self._lists[-1].append(loads(line.removesuffix(b",")))
            return
        self._frame.append(line)
        if line.endswith(b"["):
            self._lists.append([])


def _reply_of(raw: JsonObject, shard: str, size: int) -> ClaimReply:
    match raw["state"]:
        case "granted":
            return Granted(
                lease=raw["lease"],  # type: ignore[arg-type]
                lease_seconds=raw["leaseSeconds"],  # type: ignore[arg-type]
                observation=_observation(raw),
                shard=shard,
                observed_bytes=size,
                changed_seconds_ago=raw.get("changedSecondsAgo"),  # type: ignore[arg-type]
            )
        case "busy":
            return Busy(retry_seconds=raw["retrySeconds"])  # type: ignore[arg-type]
        case "gone":
            return Gone(reason=raw["reason"], lease=raw["lease"])  # type: ignore[arg-type]
        case state:
            raise ValueError(f"a claim reply in state {state!r}")


def terms_in(beginning: bytes) -> LeaseTerms | None:
    """The terms of the lease in the first bytes of a reply's wire form; None for a reply that grants nothing."""
    found = _TERMS.match(beginning)
    return LeaseTerms(lease=found[1].decode(), seconds=float(found[2])) if found else None


def _objects_bytes(observation: CachedObservation) -> int:
    related = observation.related.groups if observation.related is not None else ()
    groups = (*observation.children, *observation.inputs, *related)
    return sum(len(item) for group in groups for item in group.objects) + sum(map(len, observation.revisions))


def _to_fragments(objects: Sequence[bytes]) -> object:
    return [orjson.Fragment(item) for item in objects]


def _to_lines(grant: CachedGrant) -> list[bytes]:
    """The pieces of a grant in which each object has a line of its own. Cached objects contain no line break."""
    lists: list[Sequence[bytes]] = []

    def to_empty_list(objects: Sequence[bytes]) -> object:
        lists.append(objects)
        return orjson.Fragment(b"[\n]")

    first, *others = dumps(_grant_to_wire(grant, to_list=to_empty_list)).split(b"\n")
    pieces = [first]
    for objects, frame in zip(lists, others, strict=True):
        for item in objects:
            pieces += (b"\n" if item is objects[0] else b",\n", item)
        pieces += (b"\n", frame)
    return pieces


def _fill(raw: JsonObject, lists: Iterator[list[JsonValue]]) -> None:
    """Put the objects that had lines of their own into the lists that `_grant_to_wire` makes, in its order."""
    for group in raw["children"]:  # type: ignore[union-attr]
        group["objects"] = next(lists)  # type: ignore[index, call-overload]
    raw["revisions"] = next(lists)
    for group in raw["inputs"]:  # type: ignore[union-attr]
        group["objects"] = next(lists)  # type: ignore[index, call-overload]
    for group in raw["related"]["groups"] if raw["related"] else ():  # type: ignore[index, call-overload, union-attr]
        group["objects"] = next(lists)  # type: ignore[index, call-overload]


def _grant_to_wire(grant: CachedGrant, *, to_list: Callable[[Sequence[bytes]], object]) -> dict[str, object]:
    observation = grant.observation
    return {  # the terms of the lease first: see `terms_in`
        "state": "granted",
        "lease": grant.lease,
        "leaseSeconds": grant.lease_seconds,
        "changedSecondsAgo": grant.changed_seconds_ago,
        "controller": orjson.Fragment(observation.controller),
        "parentResource": observation.parent_resource.to_json(),
        "parent": orjson.Fragment(observation.parent),
        "part": observation.part,
        "summary": observation.summary,
        "children": [_group_to_wire(group, to_list=to_list) for group in observation.children],
        "revisions": to_list(observation.revisions),
        "inputs": [_group_to_wire(group, to_list=to_list) for group in observation.inputs],
        "related": _related_to_wire(observation.related, to_list=to_list) if observation.related is not None else None,
    }


def _observation(raw: JsonObject) -> Observation:
    return Observation(
        controller=raw["controller"],  # type: ignore[arg-type]
        parent_resource=ResourceInfo.from_json(raw["parentResource"]),  # type: ignore[arg-type]
        parent=raw["parent"],  # type: ignore[arg-type]
        part=str(raw.get("part", "")),
        summary=raw.get("summary"),  # type: ignore[arg-type]
        children=[_group_from_wire(group) for group in raw["children"]],  # type: ignore[union-attr, arg-type]
        revisions=raw["revisions"],  # type: ignore[arg-type]
        inputs=[_group_from_wire(group) for group in raw.get("inputs", [])],  # type: ignore[union-attr, arg-type]
        related=related_from_wire(raw["related"]) if raw["related"] is not None else None,  # type: ignore[arg-type]
    )


def _group_to_wire(group: CachedGroup, *, to_list: Callable[[Sequence[bytes]], object]) -> dict[str, object]:
    wire: dict[str, object] = {"resource": group.resource.to_json(), "objects": to_list(group.objects)}
    if group.managed:
        wire["managed"] = {uid: orjson.Fragment(entry) for uid, entry in group.managed.items()}
    return wire


def _group_from_wire(raw: JsonObject) -> ObservedGroup:
    return ObservedGroup(info=ResourceInfo.from_json(raw["resource"]), objects=raw["objects"], managed=raw.get("managed", {}))  # type: ignore[arg-type]


def _related_to_wire(related: CachedRelated, *, to_list: Callable[[Sequence[bytes]], object]) -> dict[str, object]:
    return {
        "fingerprint": related.fingerprint,
        "groups": [_group_to_wire(group, to_list=to_list) for group in related.groups],
        "waiting": [each.to_json() for each in related.waiting],
        "unknown": [[each.api_version, each.resource] for each in related.unknown],
    }


def related_from_wire(raw: JsonObject) -> Related:
    """The value from the wire form of `CachedRelated.to_bytes`.

    Raises KeyError, TypeError or ValueError for anything else.
    """
    return Related(
        fingerprint=str(raw["fingerprint"]),
        groups=[_group_from_wire(group) for group in raw["groups"]],  # type: ignore[union-attr, arg-type]
        waiting=[ResourceInfo.from_json(each) for each in raw["waiting"]],  # type: ignore[union-attr, arg-type]
        unknown=_ids_from_wire(raw["unknown"]),
    )


def _ids_from_wire(raw: JsonValue) -> list[ResourceId]:
    return [ResourceId(api_version, resource) for api_version, resource in raw]  # type: ignore[union-attr, misc, arg-type]
