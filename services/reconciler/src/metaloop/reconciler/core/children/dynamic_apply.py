"""Dynamic apply: a child is replaced by a three-way merge of the last applied, the observed and the desired object."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.field_set import owned_part
from metaloop.reconciler.core.apply.last_applied import ApplyResult, applied_configuration, applied_to, is_annotated, new_child
from metaloop.reconciler.core.apply.schema import Schema
from metaloop.reconciler.core.children.changes import Drifted
from metaloop.reconciler.core.model import CreateChild, DeleteChild, DesiredChild, RecreateChild, UpdateChild


@dataclass(frozen=True, slots=True, kw_only=True)
class DynamicApply:
    """Creates and replaces children. Their annotation records what was applied last.

    A child that was applied server-side before has no annotation. What we own of it is then what was applied last.
    """

    schemas: Callable[[ResourceInfo], Schema]
    managed_fields: Mapping[str, JsonObject]
    """Our entries in `managedFields`, by the children's UIDs."""

    def applied(self, observed: JsonObject, desired: DesiredChild) -> ApplyResult:
        """The merged object, and what is new about it."""
        return applied_to(observed, desired.obj, schema=self.schemas(desired.info), last_applied=self._owned_part(observed))

    def _owned_part(self, observed: JsonObject) -> JsonObject:
        entry = self.managed_fields.get(unstructured.uid(observed))
        if entry is None or is_annotated(observed) or entry.get("apiVersion") != unstructured.api_version(observed):
            return {}
        part = owned_part(observed, unstructured.child_object(entry, "fieldsV1"))
        return part if is_object(part) else {}

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> CreateChild:
        """A creation. It fails if the name is taken."""
        return CreateChild(info=desired.info, obj=new_child(desired.obj, parent=parent), reason="desired, and not there")

    def updated(self, drifted: Drifted) -> UpdateChild:
        """A replacement of the very version that was observed."""
        is_changed = drifted.applied.is_changed
        reason = "differs from what is desired" if is_changed else "is as desired, but does not record what was applied"
        return UpdateChild(info=drifted.desired.info, obj=drifted.applied.obj, reason=reason, observed=drifted.observed)

    def recreated(self, drifted: Drifted) -> DeleteChild | RecreateChild:
        """A deletion. If the configuration is unchanged, the API server must confirm that the child differs."""
        info, configuration, observed = drifted.desired.info, applied_configuration(drifted.desired.obj), drifted.observed
        reason = "differs from what is desired, and is updated by recreation"
        if is_annotated(observed) and not drifted.applied.is_recorded:
            return DeleteChild(info=info, obj=observed, reason=reason, successor=configuration)
        return RecreateChild(info=info, obj=drifted.applied.obj, desired=configuration, reason=reason, observed=observed, is_applied=False)
