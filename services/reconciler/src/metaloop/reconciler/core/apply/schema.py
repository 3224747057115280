"""What is known of a kind's fields: which lists are maps or sets, which text is a quantity, which empty values the API server drops.

A `Schema` says it of one value, and leads to those of its parts, the way a merge walks: by field, or by element. Where a kind's OpenAPI isn't known there is
`guessed_schema`: then lists are what they look like (see `listmap`), and the fields that hold quantities in Kubernetes' own kinds are known by their names.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from metaloop.common.json import JsonValue
from metaloop.common.objects.resource import ResourceInfo

ListType: TypeAlias = Literal["map", "set", "atomic", "unknown"]
Scalar: TypeAlias = Literal["literal", "quantity", "bytes"]

_NO_FIELDS: Mapping[str, "Schema"] = {}


class Schema:
    """What is known of one value. Filled while it is made, since kinds may contain themselves, and never changed afterwards."""

    __slots__ = (
        "default",
        "drops_empty",
        "fields",
        "fills_empty",
        "is_atomic",
        "is_nullable",
        "is_typed",
        "items",
        "key_defaults",
        "keys",
        "list_type",
        "rest",
        "scalar",
    )

    def __init__(self) -> None:
        """Know nothing of the value or its parts, so that all of them are taken literally."""
        self.fields: Mapping[str, Schema] = _NO_FIELDS
        self.rest: Schema = self
        """What is known of fields that `fields` doesn't name: of a map, its values."""
        self.items: Schema = self
        self.list_type: ListType = "unknown"
        self.keys: tuple[str, ...] = ()
        """Of a list-map: the fields that tell its elements apart."""
        self.key_defaults: Mapping[str, str] = {}
        """Of a list-map: what an element has in a key field that it doesn't mention."""
        self.is_atomic = False
        """Of an object: whether it is owned, and replaced, as a whole."""
        self.is_typed = False
        """Whether it is kept as a Go type: then nulls never are."""
        self.drops_empty = False
        """Whether the API server doesn't keep it at all where it is empty, or zero."""
        self.fills_empty = False
        """Whether an empty one, or a zero, is not set: the API server or somebody else puts a value of theirs in its place."""
        self.is_nullable = False
        """Whether a null is a value of its own."""
        self.scalar: Scalar = "literal"
        self.default: JsonValue = None
        """What it is where nobody says anything; None where that isn't known."""

    def of(self, field: str) -> "Schema":
        """What is known of a field."""
        return self.fields.get(field, self.rest)


NO_SCHEMA: Final = Schema()
"""Nothing is known."""

DROPPED_WHEN_ZERO: Final = frozenset(
    {
        "apiGroup",
        "description",
        "effect",
        "externalName",
        "fsType",
        "globalDefault",
        "host",
        "hostIP",
        "hostIPC",
        "hostNetwork",
        "hostPID",
        "hostname",
        "initialDelaySeconds",
        "key",
        "loadBalancerIP",
        "medium",
        "minReadySeconds",
        "name",
        "namespace",
        "operator",
        "path",
        "paused",
        "prefix",
        "publishNotReadyAddresses",
        "readOnly",
        "secretName",
        "stdin",
        "stdinOnce",
        "subPath",
        "subPathExpr",
        "subdomain",
        "tty",
        "unschedulable",
        "value",
        "workingDir",
    }
)
"""Fields of Kubernetes' own kinds whose zero value means, in Go, that they weren't set. Others (`replicas: 0`) are kept."""
FILLED_WHEN_ZERO: Final = frozenset(
    {
        "caBundle",
        "clusterIP",
        "concurrencyPolicy",
        "dnsPolicy",
        "externalTrafficPolicy",
        "failureThreshold",
        "healthCheckNodePort",
        "hostPort",
        "imagePullPolicy",
        "nodeName",
        "nodePort",
        "periodSeconds",
        "persistentVolumeReclaimPolicy",
        "podManagementPolicy",
        "priorityClassName",
        "protocol",
        "restartPolicy",
        "schedulerName",
        "scheme",
        "serviceAccount",
        "serviceAccountName",
        "sessionAffinity",
        "successThreshold",
        "targetPort",
        "terminationMessagePath",
        "terminationMessagePolicy",
        "timeoutSeconds",
        "whenDeleted",
        "whenScaled",
    }
)
"""Fields of Kubernetes' own kinds whose zero value means, in Go, that they weren't set, and that are given a value then: by default (`targetPort`, which Go's
encoder writes as a zero), by allocation (`clusterIP`), by admission (`serviceAccountName`), or by whose task it is (`nodeName`, `caBundle`)."""
_QUANTITY_MAPS: Final = ("allocatable", "capacity", "default", "defaultRequest", "hard", "limits", "max", "min", "overhead", "requests")
_QUANTITIES: Final = ("averageValue", "divisor", "sizeLimit")
_MAPS: Final = ("annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "stringData")


def guessed_schema(info: ResourceInfo) -> Schema:
    """What can be said of a kind without its OpenAPI."""
    return _KUBERNETES if _is_kubernetes(info.group) else NO_SCHEMA


def _is_kubernetes(group: str) -> bool:
    return "." not in group or group in _GROUPS


_GROUPS: Final = frozenset(
    {"networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io", "resource.k8s.io"}
)


def _kubernetes() -> Schema:
    quantity, quantities, content, root = Schema(), Schema(), Schema(), Schema()
    quantity.scalar = "quantity"
    quantities.rest, quantities.items = quantity, root
    content.drops_empty, content.rest = True, NO_SCHEMA
    root.fields = {
        **dict.fromkeys(_QUANTITY_MAPS, quantities),
        **dict.fromkeys(_QUANTITIES, quantity),
        **dict.fromkeys(_MAPS, content),
    }
    return root


_KUBERNETES: Final = _kubernetes()
