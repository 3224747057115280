"""The policies by which the dependents of a component are adopted, updated and deleted.

Objects, components and controllers write their values in any of the usual ways: `IfUnowned`, `if-unowned`.
"""

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

AdoptionPolicy: TypeAlias = Literal["IfUnowned", "Never", "Always"]
"""What happens to an object that exists before it enters the inventory, and is not the component's."""
ReconcilePolicy: TypeAlias = Literal["OnObjectChange", "OnObjectOrComponentChange", "Once"]
"""Which changes make an object out of date."""
UpdatePolicy: TypeAlias = Literal["Replace", "SsaMerge", "SsaOverride", "Recreate"]
"""How an object that is out of date is brought up to date."""
DeletePolicy: TypeAlias = Literal["Delete", "Orphan", "OrphanOnApply", "OrphanOnDelete"]
"""Whether an object that has to go is left alone: never, always, or only where the component stays or goes."""
MissingNamespaces: TypeAlias = Literal["Create", "DoNotCreate"]
"""What happens where an object's namespace does not exist, and is not among the objects."""
DriftDetection: TypeAlias = Literal["Fields", "Digest"]
InventoryStorage: TypeAlias = Literal["Status", "ConfigMap"]
"""Where inventories are stored, as long as they are small enough for a status."""
"""What shows that somebody else changed an object: its fields, or only the digest in its annotation."""

ADOPTION: Final[tuple[AdoptionPolicy, ...]] = ("IfUnowned", "Never", "Always")
RECONCILE: Final[tuple[ReconcilePolicy, ...]] = ("OnObjectChange", "OnObjectOrComponentChange", "Once")
UPDATE: Final[tuple[UpdatePolicy, ...]] = ("Replace", "SsaMerge", "SsaOverride", "Recreate")
DELETE: Final[tuple[DeletePolicy, ...]] = ("Delete", "Orphan", "OrphanOnApply", "OrphanOnDelete")
MISSING_NAMESPACES: Final[tuple[MissingNamespaces, ...]] = ("Create", "DoNotCreate")
DRIFT_DETECTION: Final[tuple[DriftDetection, ...]] = ("Fields", "Digest")
INVENTORY_STORAGE: Final[tuple[InventoryStorage, ...]] = ("Status", "ConfigMap")

DEFAULT_REAPPLY_SECONDS: Final = 3600.0
DEFAULT_OVERRIDDEN_MANAGERS: Final = ("kubectl",)

_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policies:
    """The policies of all dependents that say nothing else themselves."""

    adoption: AdoptionPolicy = "IfUnowned"
    reconcile: ReconcilePolicy = "OnObjectChange"
    update: UpdatePolicy = "Replace"
    delete: DeletePolicy = "Delete"
    overridden_managers: tuple[str, ...] = DEFAULT_OVERRIDDEN_MANAGERS
    """The field managers whose fields `SsaOverride` takes over: all whose names begin so."""
    missing_namespaces: MissingNamespaces = "Create"
    drift_detection: DriftDetection = "Fields"
    reapply_seconds: float = DEFAULT_REAPPLY_SECONDS
    """After this time, an object that looks up to date is written once more."""


def kebab(text: str) -> str:
    """`text` in lower case, with a hyphen between its words: `if-unowned` of `IfUnowned`."""
    return _HUMP.sub("-", text.strip()).lower()


def canonical(text: str, choices: tuple[str, ...]) -> str | None:
    """The one of `choices` that `text` means, in whichever way it is written; None if it means none."""
    return next((choice for choice in choices if kebab(choice) == kebab(text)), None)
