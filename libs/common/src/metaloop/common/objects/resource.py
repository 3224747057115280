"""Which resource: an apiVersion with a plural name, and what discovery knows of it."""

from dataclasses import dataclass, field
from typing import NamedTuple

from metaloop.common.json import JsonObject


def group_of(api_version: str) -> str:
    """The API group in an apiVersion: `apps` of `apps/v1`, and the empty core group of `v1`."""
    group, slash, _ = api_version.rpartition("/")
    return group if slash else ""


def version_of(api_version: str) -> str:
    """The version in an apiVersion: `v1` of `apps/v1` and of `v1`."""
    return api_version.rpartition("/")[2]


class ResourceId(NamedTuple):
    """A resource as users name it in a controller: `apps/v1`, `deployments`."""

    api_version: str
    resource: str

    @property
    def group(self) -> str:
        """The API group, empty for core."""
        return group_of(self.api_version)

    def __str__(self) -> str:
        return f"{self.api_version}/{self.resource}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceInfo:
    """A resource that the API server serves, as discovery tells it."""

    api_version: str
    resource: str
    kind: str
    namespaced: bool
    has_status: bool = False
    id: ResourceId = field(init=False, repr=False, compare=False)
    """The name that controllers use for it."""

    def __post_init__(self) -> None:
        """Make the id, which is asked for several times in each event and sync."""
        object.__setattr__(self, "id", ResourceId(self.api_version, self.resource))

    @property
    def group(self) -> str:
        """The API group, empty for core."""
        return group_of(self.api_version)

    def collection_path(self, namespace: str = "") -> str:
        """The URL path of the collection, within `namespace` where one is given and the resource has them."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/{namespace}/{self.resource}" if namespace and self.namespaced else f"{root}/{self.resource}"

    def path(self, namespace: str, name: str) -> str:
        """The URL path of one object; `namespace` is not used where the resource has none."""
        return f"{self.collection_path(namespace)}/{name}"

    def to_json(self) -> JsonObject:
        """Its wire form on the bus: camelCase keys of the same names."""
        return {
            "apiVersion": self.api_version,
            "resource": self.resource,
            "kind": self.kind,
            "namespaced": self.namespaced,
            "hasStatus": self.has_status,
        }

    @classmethod
    def from_json(cls, raw: JsonObject) -> "ResourceInfo":
        """The value of a wire form that `to_json` made."""
        return cls(
            api_version=str(raw["apiVersion"]),
            resource=str(raw["resource"]),
            kind=str(raw["kind"]),
            namespaced=bool(raw["namespaced"]),
            has_status=bool(raw.get("hasStatus")),
        )
