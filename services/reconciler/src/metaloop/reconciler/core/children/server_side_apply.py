"""Server-side apply: the configuration of each child is sent to the API server, which merges it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.reconciler.core.apply.last_applied import ApplyResult, applied_to, controlled_by, is_annotated
from metaloop.reconciler.core.apply.schema import Schema
from metaloop.reconciler.core.apply.server_side import configuration_of, controller_reference_in, difference_of
from metaloop.reconciler.core.children.changes import Drifted
from metaloop.reconciler.core.model import ApplyChild, DesiredChild, RecreateChild


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSideApply:
    """Applies children on the API server. `managedFields` records what was applied last."""

    schemas: Callable[[ResourceInfo], Schema]
    managed_fields: Mapping[str, JsonObject]
    """Our entries in `managedFields`, by the children's UIDs."""

    def applied(self, observed: JsonObject, desired: DesiredChild) -> ApplyResult:
        """The configuration to send, and what sending it would change."""
        schema = self.schemas(desired.info)
        configuration = configuration_of(desired.obj, owner=controller_reference_in(observed), schema=schema)
        entry: JsonObject = self.managed_fields.get(unstructured.uid(observed), {})
        if is_annotated(observed) or entry.get("apiVersion") != desired.info.api_version:
            three_way = applied_to(observed, desired.obj, schema=schema)
            return ApplyResult(obj=configuration, is_changed=three_way.is_changed, is_recorded=False)
        difference = difference_of(configuration, observed, owned=unstructured.child_object(entry, "fieldsV1"), schema=schema)
        return ApplyResult(obj=configuration, is_changed=difference.is_changed, is_recorded=difference.is_owned)

    def created(self, desired: DesiredChild, *, parent: JsonObject) -> ApplyChild:
        """The first apply. It fails if the name is taken."""
        configuration = configuration_of(controlled_by(parent, desired.obj), owner=None, schema=self.schemas(desired.info))
        return ApplyChild(info=desired.info, obj=configuration, reason="desired, and not there", observed=None)

    def updated(self, drifted: Drifted) -> ApplyChild:
        """An apply to the very object that was observed."""
        is_changed = drifted.applied.is_changed
        reason = "differs from what is desired" if is_changed else "is as desired, but not every field is ours"
        return ApplyChild(info=drifted.desired.info, obj=drifted.applied.obj, reason=reason, observed=drifted.observed)

    def recreated(self, drifted: Drifted) -> RecreateChild:
        """A deletion, if the API server says that an apply would change something."""
        configuration = drifted.applied.obj
        return RecreateChild(
            info=drifted.desired.info,
            obj=configuration,
            desired=configuration,
            reason="differs from what is desired, and is updated by recreation",
            observed=drifted.observed,
            is_applied=True,
        )
