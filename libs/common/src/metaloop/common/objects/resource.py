"""Resources: an apiVersion with a plural name, and what discovery knows about it."""

from dataclasses import dataclass, field
from functools import lru_cache
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
    """A resource that the API server serves, from discovery."""

    api_version: str
    resource: str
    kind: str
    namespaced: bool
    has_status: bool = False
    id: ResourceId = field(init=False, repr=False, compare=False)
    """The resource's name as controllers write it."""

    def __post_init__(self) -> None:
        """Compute `id` once: it is needed several times per event and sync."""
        object.__setattr__(self, "id", ResourceId(self.api_version, self.resource))

    @property
    def group(self) -> str:
        """The API group, empty for core."""
        return group_of(self.api_version)

    def collection_path(self, namespace: str = "") -> str:
        """The URL path of the collection; within `namespace` if it is not empty and the resource is namespaced."""
        root = f"/apis/{self.api_version}" if "/" in self.api_version else f"/api/{self.api_version}"
        return f"{root}/namespaces/{namespace}/{self.resource}" if namespace and self.namespaced else f"{root}/{self.resource}"

    def path(self, namespace: str, name: str) -> str:
        """The URL path of one object; `namespace` is ignored for a cluster-scoped resource."""
        return f"{self.collection_path(namespace)}/{name}"

    def to_json(self) -> JsonObject:
        """The wire form for the bus: the fields in camelCase."""
        return {
            "apiVersion": self.api_version,
            "resource": self.resource,
            "kind": self.kind,
            "namespaced": self.namespaced,
            "hasStatus": self.has_status,
        }

    @classmethod
    def from_json(cls, raw: JsonObject) -> "ResourceInfo":
        """The value from the wire form of `to_json`."""
        return _known(str(raw["apiVersion"]), str(raw["resource"]), str(raw["kind"]), bool(raw["namespaced"]), bool(raw.get("hasStatus")))


@lru_cache(maxsize=4096)
def _known(api_version: str, resource: str, kind: str, namespaced: bool, has_status: bool) -> ResourceInfo:  # noqa: FBT001
    """One value for each resource: every sync reads some, of the same few resources, from the wire."""
    return ResourceInfo(api_version=api_version, resource=resource, kind=kind, namespaced=namespaced, has_status=has_status)
