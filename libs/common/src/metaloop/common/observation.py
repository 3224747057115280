"""What the watcher tells a reconciler about one parent, as bytes on the wire and values in hand.

The watcher builds an observation out of cached JSON bytes, which it embeds unparsed; the reconciler parses the whole once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, assert_never

import orjson

from metaloop.common.json import JsonObject, JsonValue, dumps, loads
from metaloop.common.objects.resource import ResourceId, ResourceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """The candidates of one child (or related) resource: what the parent owns, and orphans that it might adopt."""

    info: ResourceInfo
    objects: Sequence[JsonObject]
    managed: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By UID, of those that we have applied server-side: the entry of `managedFields` that says what we own of it. Objects themselves have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """The related objects that a parent's queries select: one group for each resource that they name, the empty ones too.

    `fingerprint` is what the reconciler sent with the queries: what they were made from. `waiting` are resources whose watch has not synced yet, `unknown`
    those that the API server doesn't serve: while there are any, the groups are not the whole.
    """

    fingerprint: str
    groups: Sequence[ObservedGroup] = ()
    waiting: Sequence[ResourceInfo] = ()
    unknown: Sequence[ResourceId] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The world of one parent, no older than our own last write to it.

    `children` has one group per declared child resource, in their order, the empty ones too. Candidates of a namespaced parent are of its own namespace.
    """

    controller: JsonObject
    parent_resource: ResourceInfo
    parent: JsonObject
    children: Sequence[ObservedGroup]
    revisions: Sequence[JsonObject] = ()
    related: Related | None = None
    """What the queries that the parent is subscribed to select; None where it has no subscription."""
    part: str = ""
    """The part of the parent's work that was claimed; empty for the parent itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The job is yours: until `lease_seconds` after its last renewal no other worker gets this key."""

    lease: str
    lease_seconds: float
    observation: Observation
    shard: str = ""
    """Whose watcher granted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """Another worker holds a live lease: give the job back, and ask again after `retry_seconds`."""

    retry_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """There is nothing to sync: the parent or its controller is no more, or nobody selects it. Finish the job."""

    reason: str
    lease: str = ""


ClaimReply: TypeAlias = Granted | Busy | Gone


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedGroup:
    """An `ObservedGroup` before it travels: each object still the bytes that the cache holds."""

    resource: ResourceInfo
    objects: Sequence[bytes]
    managed: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedRelated:
    """A `Related` before it travels: every object still the bytes that the cache holds."""

    fingerprint: str
    groups: Sequence[CachedGroup] = ()
    waiting: Sequence[ResourceInfo] = ()
    unknown: Sequence[ResourceId] = ()

    def to_bytes(self) -> bytes:
        """Its wire form."""
        return dumps(_related_to_wire(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedObservation:
    """An `Observation` before it travels: every object still the bytes that the cache holds."""

    controller: bytes
    parent_resource: ResourceInfo
    parent: bytes
    children: Sequence[CachedGroup]
    revisions: Sequence[bytes] = ()
    related: CachedRelated | None = None
    part: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedGrant:
    """A `Granted` before it travels."""

    lease: str
    lease_seconds: float
    observation: CachedObservation


CachedClaimReply: TypeAlias = CachedGrant | Busy | Gone
"""A `ClaimReply` before it travels."""


def reply_to_bytes(reply: CachedClaimReply) -> bytes:
    """The wire form of the reply to a claim."""
    match reply:
        case CachedGrant():
            return dumps(_grant_to_wire(reply))
        case Busy(retry_seconds=seconds):
            return dumps({"state": "busy", "retrySeconds": seconds})
        case Gone(reason=reason, lease=lease):
            return dumps({"state": "gone", "reason": reason, "lease": lease})
        case _:
            assert_never(reply)


def reply_from_bytes(wire: bytes) -> ClaimReply:
    """The claim reply of a wire form."""
    raw = loads(wire)
    match raw["state"]:
        case "granted":
            return Granted(lease=raw["lease"], lease_seconds=raw["leaseSeconds"], observation=_observation(raw))
        case "busy":
            return Busy(retry_seconds=raw["retrySeconds"])
        case "gone":
            return Gone(reason=raw["reason"], lease=raw["lease"])
        case state:
            raise ValueError(f"a claim reply in state {state!r}")


def _grant_to_wire(grant: CachedGrant) -> dict[str, object]:
    observation = grant.observation
    return {
        "state": "granted",
        "lease": grant.lease,
        "leaseSeconds": grant.lease_seconds,
        "controller": orjson.Fragment(observation.controller),
        "parentResource": observation.parent_resource.to_json(),
        "parent": orjson.Fragment(observation.parent),
        "part": observation.part,
        "children": [_group_to_wire(group) for group in observation.children],
        "revisions": [orjson.Fragment(item) for item in observation.revisions],
        "related": _related_to_wire(observation.related) if observation.related is not None else None,
    }


def _observation(raw: JsonObject) -> Observation:
    return Observation(
        controller=raw["controller"],  # type: ignore[arg-type]
        parent_resource=ResourceInfo.from_json(raw["parentResource"]),  # type: ignore[arg-type]
        parent=raw["parent"],  # type: ignore[arg-type]
        part=str(raw.get("part", "")),
        children=[_group_from_wire(group) for group in raw["children"]],  # type: ignore[union-attr, arg-type]
        revisions=raw["revisions"],  # type: ignore[arg-type]
        related=related_from_wire(raw["related"]) if raw["related"] is not None else None,  # type: ignore[arg-type]
    )


def _group_to_wire(group: CachedGroup) -> dict[str, object]:
    wire: dict[str, object] = {"resource": group.resource.to_json(), "objects": [orjson.Fragment(item) for item in group.objects]}
    if group.managed:
        wire["managed"] = {uid: orjson.Fragment(entry) for uid, entry in group.managed.items()}
    return wire


def _group_from_wire(raw: JsonObject) -> ObservedGroup:
    return ObservedGroup(info=ResourceInfo.from_json(raw["resource"]), objects=raw["objects"], managed=raw.get("managed", {}))  # type: ignore[arg-type]


def _related_to_wire(related: CachedRelated) -> dict[str, object]:
    return {
        "fingerprint": related.fingerprint,
        "groups": [_group_to_wire(group) for group in related.groups],
        "waiting": [each.to_json() for each in related.waiting],
        "unknown": [[each.api_version, each.resource] for each in related.unknown],
    }


def related_from_wire(raw: JsonObject) -> Related:
    """The value of a wire form that `CachedRelated.to_bytes` made; raises KeyError, TypeError or ValueError for anything else."""
    return Related(
        fingerprint=str(raw["fingerprint"]),
        groups=[_group_from_wire(group) for group in raw["groups"]],  # type: ignore[union-attr, arg-type]
        waiting=[ResourceInfo.from_json(each) for each in raw["waiting"]],  # type: ignore[union-attr, arg-type]
        unknown=_ids_from_wire(raw["unknown"]),
    )


def _ids_from_wire(raw: JsonValue) -> list[ResourceId]:
    return [ResourceId(api_version, resource) for api_version, resource in raw]  # type: ignore[union-attr, misc, arg-type]
