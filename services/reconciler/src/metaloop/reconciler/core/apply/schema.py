"""Describes the fields of a kind: which lists are maps or sets, which strings are quantities, which values are dropped.

A `Schema` describes one value and leads to the schemas of its parts, by field or by element, as a merge walks. Kinds
whose OpenAPI is not known have a guessed schema (`guessed_schema`): lists are what they look like (see `list_map`), and
the quantities of Kubernetes' own kinds are known by the names of their fields.
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from metaloop.common.json import JsonValue
from metaloop.common.objects.resource import ResourceInfo

ListType: TypeAlias = Literal["map", "set", "atomic", "unknown"]
Scalar: TypeAlias = Literal["literal", "quantity", "bytes"]

_NO_FIELDS: Mapping[str, "Schema"] = {}


class Schema:
    """What is known of one value.

    It is filled in while a document is compiled, since kinds may contain themselves, and never changes afterwards.
    """

    __slots__ = (
        "additional",
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
        "scalar",
    )

    def __init__(self) -> None:
        """Nothing is known of the value and its parts: all of them are compared literally."""
        self.fields: Mapping[str, Schema] = _NO_FIELDS
        self.additional: Schema = self
        """The schema of the fields that `fields` does not name. Of a map, that of its values."""
        self.items: Schema = self
        self.list_type: ListType = "unknown"
        self.keys: tuple[str, ...] = ()
        """The key fields of a list map."""
        self.key_defaults: Mapping[str, str] = {}
        """The default of each key field that has one, for elements of a list map that leave the field out."""
        self.is_atomic = False
        """Whether an object is owned, and replaced, as a whole."""
        self.is_typed = False
        """Whether the API server stores the value as a Go type. It then stores no nulls."""
        self.drops_empty = False
        """Whether the API server drops the value if it is empty or zero."""
        self.fills_empty = False
        """Whether an empty value, or a zero, means unset, so that the API server or somebody else fills it in."""
        self.is_nullable = False
        """Whether null is a value of its own."""
        self.scalar: Scalar = "literal"
        self.default: JsonValue = None
        """The default of the value. None if there is none, or it is not known."""

    def of(self, field: str) -> "Schema":
        """The schema of a field."""
        return self.fields.get(field, self.additional)


NO_SCHEMA: Final = Schema()
"""The schema of a value of which nothing is known."""

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
"""Fields of Kubernetes' own kinds whose zero value means unset in Go and is dropped. Others (`replicas: 0`) stay."""
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
"""Fields of Kubernetes' own kinds whose zero value means unset in Go, and which are then filled in.

Some have a default (`targetPort`, which Go encodes as zero), some are allocated (`clusterIP`), some are set by
admission (`serviceAccountName`), and some by a controller (`nodeName`, `caBundle`).
"""
_QUANTITY_MAPS: Final = ("allocatable", "capacity", "default", "defaultRequest", "hard", "limits", "max", "min", "overhead", "requests")
_QUANTITIES: Final = ("averageValue", "divisor", "sizeLimit")
_MAPS: Final = ("annotations", "binaryData", "data", "labels", "matchLabels", "nodeSelector", "stringData")


def guessed_schema(info: ResourceInfo) -> Schema:
    """The schema of a kind without its OpenAPI."""
    return _KUBERNETES if _is_kubernetes(info.group) else NO_SCHEMA


def _is_kubernetes(group: str) -> bool:
    return "." not in group or group in _GROUPS


_GROUPS: Final = frozenset(
    {"networking.k8s.io", "rbac.authorization.k8s.io", "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io", "resource.k8s.io"}
)


def _kubernetes() -> Schema:
    quantity, quantities, content, root = Schema(), Schema(), Schema(), Schema()
    quantity.scalar = "quantity"
    quantities.additional, quantities.items = quantity, root
    content.drops_empty, content.additional = True, NO_SCHEMA
    root.fields = {
        **dict.fromkeys(_QUANTITY_MAPS, quantities),
        **dict.fromkeys(_QUANTITIES, quantity),
        **dict.fromkeys(_MAPS, content),
    }
    return root


_KUBERNETES: Final = _kubernetes()
