"""What the watcher tells a reconciler about one parent, as bytes on the wire and values in hand.

The watcher builds an observation out of cached JSON bytes, which it embeds unparsed; the reconciler parses the whole once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects.resource import ResourceInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """The candidates of one child (or related) resource: what the parent owns, and orphans that it might adopt."""

    resource: ResourceInfo
    objects: Sequence[JsonObject]


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
    related: Sequence[ObservedGroup] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """The job is yours: until `lease_seconds` after its last renewal no other worker gets this key."""

    lease: str
    lease_seconds: float
    observation: Observation


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


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedObservation:
    """An `Observation` before it travels: every object still the bytes that the cache holds."""

    controller: bytes
    parent_resource: ResourceInfo
    parent: bytes
    children: Sequence[CachedGroup]
    revisions: Sequence[bytes] = ()
    related: Sequence[CachedGroup] = ()


def granted_to_bytes(observation: CachedObservation, *, lease: str, lease_seconds: float) -> bytes:
    """The wire form of a `Granted` reply."""
    return dumps(
        {
            "state": "granted",
            "lease": lease,
            "leaseSeconds": lease_seconds,
            "controller": orjson.Fragment(observation.controller),
            "parentResource": observation.parent_resource.to_json(),
            "parent": orjson.Fragment(observation.parent),
            "children": [_group_to_wire(group) for group in observation.children],
            "revisions": [orjson.Fragment(item) for item in observation.revisions],
            "related": [_group_to_wire(group) for group in observation.related],
        }
    )


def refusal_to_bytes(reply: Busy | Gone) -> bytes:
    """The wire form of a `Busy` or `Gone` reply."""
    match reply:
        case Busy(retry_seconds=seconds):
            return dumps({"state": "busy", "retrySeconds": seconds})
        case Gone(reason=reason, lease=lease):
            return dumps({"state": "gone", "reason": reason, "lease": lease})


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


def _observation(raw: JsonObject) -> Observation:
    return Observation(
        controller=raw["controller"],  # type: ignore[arg-type]
        parent_resource=ResourceInfo.from_json(raw["parentResource"]),  # type: ignore[arg-type]
        parent=raw["parent"],  # type: ignore[arg-type]
        children=[_group_from_wire(group) for group in raw["children"]],  # type: ignore[union-attr, arg-type]
        revisions=raw["revisions"],  # type: ignore[arg-type]
        related=[_group_from_wire(group) for group in raw["related"]],  # type: ignore[union-attr, arg-type]
    )


def _group_to_wire(group: CachedGroup) -> dict[str, object]:
    return {"resource": group.resource.to_json(), "objects": [orjson.Fragment(item) for item in group.objects]}


def _group_from_wire(raw: JsonObject) -> ObservedGroup:
    return ObservedGroup(resource=ResourceInfo.from_json(raw["resource"]), objects=raw["objects"])  # type: ignore[arg-type]
