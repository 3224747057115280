"""The revisions of a parent, as ControllerRevisions: which one is the latest, and which children follow which.

A revision is the part of a parent that its controller rolls out (`revisionHistory.fieldPaths`), as it was at one time.
The rest of the parent is always the present one: a change there takes effect at once.

Rules
    1. The latest revision is the one whose patch equals the parent's present one, whoever created it and when. So a
       rollback returns to the old revision.
    2. A child follows one revision. If two revisions name it, a worker died between two writes: the latest wins, then
       the newer one. The child itself has not been touched yet.
    3. A revision that no child follows is unused, unless it is the latest.
    4. A field path leads through objects only. A path that leads through a list or a scalar of the parent is an error.
       A missing field is none.
    5. If a revision records which fields it is about, a field that it does not have was missing from the parent of that
       time. If it does not (Metacontroller's revisions don't), such a field is the present one.
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
"""The fields that a revision is about, as a JSON list: the controller's `fieldPaths` when the revision was created."""

_MAX_PREFIX_LENGTH: Final = 212


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One revision of a parent: the parent in it, and the rolling children that follow it and no other one."""

    name: str
    patch: JsonObject
    parent: JsonObject
    claims: frozenset[ClaimedChild]
    stored: JsonObject | None
    """The observed ControllerRevision. None if it is yet to be created."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """All revisions of a parent."""

    latest: Revision
    older: tuple[Revision, ...]
    """Those that children still follow, the newest first."""
    unused: tuple[JsonObject, ...]
    """Stored revisions that no child follows."""

    @property
    def live(self) -> tuple[Revision, ...]:
        """The revisions to call the hook for, the latest first."""
        return (self.latest, *self.older)


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionHistory:
    """How the revisions of a parent are kept while its children roll."""

    field_paths: tuple[Path, ...]
    """The fields of the parent that its revisions record."""
    labels: Mapping[str, str]
    """The labels of a new revision, if the parent's selector matches them."""


def without_history(observed: Observed) -> Revisions:
    """The present parent as the only revision, which is not stored."""
    return Revisions(latest=Revision(name="", patch={}, parent=observed.parent, claims=frozenset(), stored=None), older=(), unused=())


def with_revisions_as_children(observed: Observed) -> Observed:
    """The parent with its revisions in place of its children, so that they are claimed by the same rules."""
    selector = revision_selector(observed.selector or EVERYTHING, observed.info.id)
    return replace(observed, groups=(ChildGroup(info=REVISIONS, method="OnDelete", objects=observed.revisions),), selector=selector)


def revisions_of(observed: Observed, stored: Sequence[JsonObject], *, history: RevisionHistory) -> Revisions:
    """The revisions of a parent, of which these are `stored`. Raises InvalidSpec if a field path can't be followed."""
    _check_field_paths(observed, history.field_paths)
    patch = patch_in(observed.parent, history.field_paths)
    newest_first = sorted(stored, key=unstructured.name)
    newest_first.sort(key=lambda obj: unstructured.text(unstructured.metadata(obj), "creationTimestamp"), reverse=True)
    matching = _matching(observed, patch, newest_first)
    others = [obj for obj in newest_first if obj not in matching]
    claims, *older_claims = _claims_of_each(observed, [matching, *([obj] for obj in others)])
    older = [_older(observed, obj, each, history=history) for obj, each in zip(others, older_claims, strict=True)]
    return Revisions(
        latest=_latest(observed, patch, next(iter(matching), None), claims),
        older=tuple([revision for revision in older if revision.claims]),
        unused=(*matching[1:], *(obj for obj, revision in zip(others, older, strict=True) if not revision.claims)),
    )


def _matching(observed: Observed, patch: JsonObject, stored: Sequence[JsonObject]) -> list[JsonObject]:
    """The revisions with the present patch. Otherwise the one with its name: somebody must have changed its patch."""
    same_patch = [obj for obj in stored if same(patch_of(obj), patch)]
    if same_patch or not stored:
        return same_patch
    name = revision_name(observed.info, observed.uid, patch)
    return [obj for obj in stored if unstructured.name(obj) == name]


def _latest(observed: Observed, patch: JsonObject, stored: JsonObject | None, claims: frozenset[ClaimedChild]) -> Revision:
    name = unstructured.name(stored) if stored is not None else revision_name(observed.info, observed.uid, patch)
    return Revision(name=name, patch=patch, parent=observed.parent, claims=claims, stored=stored)


def _older(observed: Observed, stored: JsonObject, claims: frozenset[ClaimedChild], *, history: RevisionHistory) -> Revision:
    return Revision(
        name=unstructured.name(stored),
        patch=patch_of(stored),
        parent=_parent_of(observed, stored, history.field_paths),
        claims=claims,
        stored=stored,
    )


def _claims_of_each(observed: Observed, revisions: Iterable[Sequence[JsonObject]]) -> list[frozenset[ClaimedChild]]:
    """The rolling children that follow each revision. A child that several revisions name follows the first of them.

    A revision may be stored in several ControllerRevisions.
    """
    rolling = {(group.info.group, group.info.kind) for group in observed.groups if group.rolls}
    claims: list[frozenset[ClaimedChild]] = []
    seen: set[ClaimedChild] = set()
    for stored in revisions:
        named = {child for obj in stored for child in claimed_by(obj) if (child.api_group, child.kind) in rolling}
        claims.append(frozenset(named - seen))
        seen |= named
    return claims


# -- stored revisions --------------------------------------------------------------------------------------------------


def revision_name(parents: ResourceInfo, uid: str, patch: JsonObject) -> str:
    """The name of a parent's revision, as Metacontroller makes it. One patch has one name, so it has one revision."""
    digest = hashlib.sha1(f"{uid}{go_json(patch)}".encode(), usedforsecurity=False).hexdigest()
    return f"{parents.resource}.{parents.group or 'core'}"[:_MAX_PREFIX_LENGTH] + f"-{digest}"


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
    """Labels that the parent's selector matches. Without them the revision would be released again."""
    selector = observed.selector or EVERYTHING
    labels = history.labels if selector.matches(history.labels) else _labels_matching(selector)
    return {**labels, **kind_labels(observed.info.id)}


def _labels_matching(selector: Selector) -> dict[str, str]:
    """The fewest labels that a selector matches, if there are any such labels."""
    conditions: dict[str, list[Requirement]] = {}
    for requirement in selector.requirements:
        conditions.setdefault(requirement.key, []).append(requirement)
    chosen = {key: _value_for(requirements) for key, requirements in conditions.items()}
    return {key: value for key, value in chosen.items() if value is not None}


def _value_for(requirements: Sequence[Requirement]) -> str | None:
    """The first value that meets all requirements on one key. None if its absence does."""
    named = [value for requirement in requirements for value in requirement.values]
    # All named values may be forbidden. There is one more of the others than of those, so one of them is allowed.
    others = ["x" * length for length in range(len(named) + 1)]
    for value in (None, *named, *others):
        labels = {} if value is None else {requirements[0].key: value}
        if all(requirement.matches(labels) for requirement in requirements):
            return value
    return None


# -- field paths -------------------------------------------------------------------------------------------------------


def _check_field_paths(observed: Observed, field_paths: Sequence[Path]) -> None:
    """Raise InvalidSpec for a path through a list or scalar. Read as a missing field, it would update all children."""
    for index, path in enumerate(field_paths):
        obstacle = obstacle_on(observed.parent, path)
        if obstacle:
            field = f"spec.parentResource.revisionHistory.fieldPaths[{index}]"
            raise InvalidSpec(field, f"{'.'.join(path)} must lead through objects only, but in this parent {obstacle}")


def _parent_of(observed: Observed, stored: JsonObject, field_paths: Sequence[Path]) -> JsonObject:
    """The parent in a stored revision: its recorded fields are those of that time, the rest is present."""
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
