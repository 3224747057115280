"""ControllerRevisions: the parent's patch, which revision matches it, which children follow which.

A revision is the part of a parent that its controller wants rolled out (`revisionHistory.fieldPaths`), as it was at one time. The rest of the parent is always
as it is now: a change there takes effect at once.

Rules
    1. The revision whose patch is the parent's present one is the latest, whoever made it and when: so rolling back finds its way to the old one.
    2. A child follows one revision. Where two name it, somebody died between two writes: the latest wins, then the newer. The child itself is still untouched.
    3. A revision that is left without a child is spent, unless it is the latest.
    4. A field path leads through objects alone. One that meets a list or a plain value in the parent is an error; a field that is missing just is.
    5. A field that an older revision did not have is missing from the parent of that time, if the revision says which fields it is about; one that
       doesn't (Metacontroller's don't) leaves what it has not as it is now.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from metaloop.common.api.revision import (
    REVISIONS,
    ClaimedChild,
    children_field,
    claimed_by,
    kind_labels,
    patch_of,
    revision_namespace,
    revision_selector,
)
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JSONDecodeError, JsonObject, JsonValue, dumps, is_array, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import reference_to
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.objects.selector import EVERYTHING, Requirement, Selector
from metaloop.reconciler.core.apply.equality import same
from metaloop.reconciler.core.apply.go_json import go_json
from metaloop.reconciler.core.model import ChildGroup, Observed
from metaloop.reconciler.core.rollout.field_paths import Path, obstacle_on, patch_in, paths, shared, with_patch, with_present

FIELDS_ANNOTATION: Final = "metaloop.dev/revision-field-paths"
"""Which fields a revision is about, as the controller's `fieldPaths` were when it was made: a JSON list."""

_LONGEST_PREFIX: Final = 212


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of a parent: what the parent is (or was) in it, and the rolling children that follow it, each of which follows no other."""

    name: str
    patch: JsonObject
    parent: JsonObject
    claims: frozenset[ClaimedChild]
    stored: JsonObject | None
    """The ControllerRevision as it was observed; None for one that is yet to be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """All revisions of a parent."""

    latest: Revision
    older: tuple[Revision, ...]
    """Those that children still follow, newest first."""
    unused: tuple[JsonObject, ...]
    """Stored ones that no child follows."""

    @property
    def live(self) -> tuple[Revision, ...]:
        """Those that a hook must be asked about, the latest first."""
        return (self.latest, *self.older)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionHistory:
    """How the revisions of a parent are kept, where its children roll."""

    field_paths: tuple[Path, ...]
    """The fields of the parent that its revisions record."""
    labels: Mapping[str, str]
    """The labels of a new revision, where the parent's selector matches them."""


def without_history(observed: Observed) -> Revisions:
    """The parent as it is, of which no revisions are kept."""
    return Revisions(latest=Revision(name="", patch={}, parent=observed.parent, claims=frozenset(), stored=None), older=(), unused=())


def with_revisions_as_children(observed: Observed) -> Observed:
    """The parent with its revisions in the place of its children, so that they are claimed by the same laws."""
    selector = revision_selector(observed.selector or EVERYTHING, observed.info.id)
    return replace(observed, groups=(ChildGroup(info=REVISIONS, method="OnDelete", objects=observed.revisions),), selector=selector)


def revisions_of(observed: Observed, stored: Sequence[JsonObject], *, history: RevisionHistory) -> Revisions:
    """The revisions of a parent, given those `stored` ones that are its own. Raises InvalidSpec where a field path can't lead to a field of it."""
    _refuse_dead_ends(observed, history.field_paths)
    patch = patch_in(observed.parent, history.field_paths)
    newest_first = sorted(stored, key=unstructured.name)
    newest_first.sort(key=lambda obj: unstructured.text(unstructured.metadata(obj), "creationTimestamp"), reverse=True)
    matching = _matching(observed, patch, newest_first)
    taken: set[ClaimedChild] = set()
    latest = _latest(observed, patch, matching=matching, taken=taken)
    others = [obj for obj in newest_first if obj not in matching]
    older = [_older(observed, obj, history=history, taken=taken) for obj in others]
    return Revisions(
        latest=latest,
        older=tuple([revision for revision in older if revision.claims]),
        unused=(*matching[1:], *(obj for obj, revision in zip(others, older, strict=True) if not revision.claims)),
    )


def _matching(observed: Observed, patch: JsonObject, stored: Sequence[JsonObject]) -> list[JsonObject]:
    """Those that are of the present patch; or else the one of its name, whose patch somebody must have changed."""
    same_patch = [obj for obj in stored if same(patch_of(obj), patch)]
    if same_patch or not stored:
        return same_patch
    name = revision_name(observed.info, observed.uid, patch)
    return [obj for obj in stored if unstructured.name(obj) == name]


def _latest(observed: Observed, patch: JsonObject, *, matching: Sequence[JsonObject], taken: set[ClaimedChild]) -> Revision:
    stored = matching[0] if matching else None
    claims = _rolling_claims(observed, matching, taken=taken)
    name = unstructured.name(stored) if stored is not None else revision_name(observed.info, observed.uid, patch)
    return Revision(name=name, patch=patch, parent=observed.parent, claims=claims, stored=stored)


def _older(observed: Observed, stored: JsonObject, *, history: RevisionHistory, taken: set[ClaimedChild]) -> Revision:
    return Revision(
        name=unstructured.name(stored),
        patch=patch_of(stored),
        parent=_parent_of(observed, stored, history.field_paths),
        claims=_rolling_claims(observed, [stored], taken=taken),
        stored=stored,
    )


def _rolling_claims(observed: Observed, stored: Iterable[JsonObject], *, taken: set[ClaimedChild]) -> frozenset[ClaimedChild]:
    """The children that follow these and no revision before; `taken` learns of them."""
    rolling = {(group.info.group, group.info.kind) for group in observed.groups if group.rolls}
    named = {child for obj in stored for child in claimed_by(obj) if (child.api_group, child.kind) in rolling}
    claims = frozenset(named - taken)
    taken |= claims
    return claims


# -- the stored form -----------------------------------------------------------------------------------------------------------------


def revision_name(parents: ResourceInfo, uid: str, patch: JsonObject) -> str:
    """The name of a parent's revision: the same for the same patch, so that it is made once; Metacontroller gives the same."""
    digest = hashlib.sha1(f"{uid}{go_json(patch)}".encode(), usedforsecurity=False).hexdigest()
    return f"{parents.resource}.{parents.group or 'core'}"[:_LONGEST_PREFIX] + f"-{digest}"


def new_revision(observed: Observed, revision: Revision, claims: Iterable[ClaimedChild], *, history: RevisionHistory) -> JsonObject:
    """The ControllerRevision to create for a revision that is not stored yet."""
    return {
        "apiVersion": REVISIONS.api_version,
        "kind": REVISIONS.kind,
        "metadata": {
            "name": revision.name,
            "namespace": revision_namespace(observed.namespace),
            "labels": _labels(observed, history),
            "annotations": {FIELDS_ANNOTATION: dumps([".".join(path) for path in history.field_paths]).decode()},
            "ownerReferences": [reference_to(observed.parent)],
        },
        "parentPatch": revision.patch,
        "children": children_field(claims),
    }


def _labels(observed: Observed, history: RevisionHistory) -> JsonObject:
    """Labels that satisfy the parent's selector, or the revision would be released again."""
    selector = observed.selector or EVERYTHING
    labels = history.labels if selector.matches(history.labels) else _labels_matching(selector)
    return {**labels, **kind_labels(observed.info.id)}


def _labels_matching(selector: Selector) -> dict[str, str]:
    """The fewest labels that a selector matches, if any do."""
    conditions: dict[str, list[Requirement]] = {}
    for requirement in selector.requirements:
        conditions.setdefault(requirement.key, []).append(requirement)
    chosen = {key: _value_for(requirements) for key, requirements in conditions.items()}
    return {key: value for key, value in chosen.items() if value is not None}


def _value_for(requirements: Sequence[Requirement]) -> str | None:
    """The first value that all requirements on one key are met by, None being its absence."""
    named = [value for requirement in requirements for value in requirement.values]
    # The named values may all be forbidden ones; of these more than there are of those, one isn't.
    others = ["x" * length for length in range(len(named) + 1)]
    for value in (None, *named, *others):
        labels = {} if value is None else {requirements[0].key: value}
        if all(requirement.matches(labels) for requirement in requirements):
            return value
    return None


# -- fields --------------------------------------------------------------------------------------------------------------------------


def _refuse_dead_ends(observed: Observed, field_paths: Sequence[Path]) -> None:
    """A path through a list, taken for a field that is missing, would have all children updated at once."""
    for index, path in enumerate(field_paths):
        obstacle = obstacle_on(observed.parent, path)
        if obstacle:
            field = f"spec.parentResource.revisionHistory.fieldPaths[{index}]"
            raise InvalidSpec(field, f"{'.'.join(path)} must lead through objects alone, and in this parent {obstacle}")


def _parent_of(observed: Observed, stored: JsonObject, field_paths: Sequence[Path]) -> JsonObject:
    """What the parent was in a stored revision: its fields of that time, the rest as it is now."""
    recorded = _recorded_paths(stored)
    if recorded:
        return with_patch(observed.parent, patch_of(stored), shared(field_paths, recorded))
    return with_present(observed.parent, patch_of(stored), field_paths)


def _recorded_paths(stored: JsonObject) -> tuple[Path, ...]:
    try:
        recorded: JsonValue = loads(unstructured.annotations(stored).get(FIELDS_ANNOTATION, "[]"))
    except JSONDecodeError:
        return ()
    return paths(path for path in recorded if isinstance(path, str)) if is_array(recorded) else ()
