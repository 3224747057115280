"""MirrorController, a toy kind of controller: it mirrors each ConfigMap that names one of its parents.

A ConfigMap names its parent by the label `toys.metaloop.dev/mirror-for`. Its mirror is a ConfigMap with the same data
and `-mirror` behind the name. Each ConfigMap is a part of its parent's work, by its UID. There is no hook: the kind
itself says what is desired.
"""

from dataclasses import dataclass
from typing import ClassVar, Final

from metaloop.common.api import fields
from metaloop.common.api.controller import Controller, ParentRule, spec_of
from metaloop.common.api.hook import Hooks
from metaloop.common.api.kinds import ControllerKind
from metaloop.common.api.rules import ChildRule
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId, ResourceInfo

CONFIG_MAPS: Final = ResourceId("v1", "configmaps")
PARENT_LABEL: Final = "toys.metaloop.dev/mirror-for"
"""On a ConfigMap: the parent for which it is mirrored."""
SOURCE_LABEL: Final = "toys.metaloop.dev/source-uid"
"""On a mirror: whose it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorController(Controller):
    """A MirrorController that can be served."""

    kind: ClassVar[str] = "MirrorController"


def parse_mirror(raw: JsonObject) -> MirrorController:
    """The MirrorController in `raw`. Raises InvalidSpec."""
    parent = fields.object_at(spec_of(raw), "parentResource", "spec") or {}
    return MirrorController(
        raw=raw,
        name=unstructured.name(raw),
        uid=unstructured.uid(raw),
        generation=unstructured.generation(raw),
        resource_version=unstructured.resource_version(raw),
        parents=(ParentRule(resource=fields.resource_id(parent, "spec.parentResource")),),
        children=(ChildRule(resource=CONFIG_MAPS, method="InPlace", status_checks=()),),
        hooks=Hooks(sync=None, finalize=None, customize=None),
        endpoint_configs=(),
        resync_period_seconds=None,
    )


MIRROR_KIND: Final = ControllerKind(
    resource=ResourceInfo(
        api_version="toys.metaloop.dev/v1", resource="mirrorcontrollers", kind=MirrorController.kind, namespaced=False, has_status=True
    ),
    short_names=("mirrors",),
    parse=parse_mirror,
)
