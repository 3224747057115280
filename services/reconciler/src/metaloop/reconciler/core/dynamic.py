"""Dynamic apply: what we compute from the last applied, the observed and the desired object, we write as a whole."""

from dataclasses import dataclass
from typing import Final

from metaloop.common.json import JsonObject
from metaloop.reconciler.core.changes import ApplyStrategy, Drifted
from metaloop.reconciler.core.lastapplied import Applied, applied_to, new_child
from metaloop.reconciler.core.model import CreateChild, DeleteChild, DesiredChild, UpdateChild


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicApply:
    """Creates and replaces children with a three-way merge, which their annotation makes possible."""

    def applied(self, observed: JsonObject, desired: DesiredChild) -> Applied:
        """The merged object, and what about it is new."""
        return applied_to(observed, desired.obj)

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> CreateChild:
        """A creation: it fails where the name is taken."""
        return CreateChild(info=desired.info, obj=new_child(desired.obj, parent=parent), reason="desired, and not there")

    def updated(self, drifted: Drifted) -> UpdateChild:
        """A replacement of the very version that was observed."""
        is_changed = drifted.applied.is_changed
        reason = "differs from what is desired" if is_changed else "is as desired, but doesn't remember what was applied"
        return UpdateChild(info=drifted.desired.info, obj=drifted.applied.obj, reason=reason)

    def recreated(self, drifted: Drifted) -> DeleteChild:
        """A deletion."""
        reason = "differs from what is desired, and is updated by recreation"
        return DeleteChild(info=drifted.desired.info, obj=drifted.observed, reason=reason)


DYNAMIC_APPLY: Final[ApplyStrategy] = DynamicApply()
"""Dynamic apply that knows no schema."""
