"""The sync of a MirrorController: of one ConfigMap, its mirror."""

from datetime import datetime

from mirror_spec import SOURCE_LABEL

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.children.plan import plan_of
from metaloop.reconciler.core.model import DesiredChild, Observed
from metaloop.reconciler.core.steps import Steps, choose_apply_strategy, write_children
from metaloop.reconciler.errors import WritesFailed


def sync_mirror(observed: Observed, now: datetime) -> Steps[None]:
    """Have the mirror of one source as it is; without the source, no mirror. The parent as a whole needs nothing."""
    del now
    if not observed.part or observed.is_deleting:
        return
    strategy = yield from choose_apply_strategy(observed)
    desired = [_mirror_of(source, observed) for source in observed.inputs[0].objects]
    plan = plan_of(observed, observed.groups, desired, strategy=strategy)
    if plan:
        effects = yield from write_children(observed, plan, observed.groups)
        if effects.failures:
            raise WritesFailed(effects.failures)


def _mirror_of(source: JsonObject, observed: Observed) -> DesiredChild:
    [group] = observed.groups
    name = f"{unstructured.name(source)}-mirror"
    metadata: JsonObject = {"name": name, "namespace": observed.namespace, "labels": {SOURCE_LABEL: unstructured.uid(source)}}
    mirror: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": source.get("data")}
    return DesiredChild(info=group.info, method=group.method, namespace=observed.namespace, name=name, obj=mirror)
