"""The cluster that a component is deployed to: who it is, and which kinds it serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from metaloop.common.objects.resource import ResourceInfo


class KindName(NamedTuple):
    """A kind in one version of its group."""

    api_version: str
    kind: str


class Address(NamedTuple):
    """Where one object is to be found."""

    info: ResourceInfo
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster, as far as it was asked about."""

    uid: str
    """Of its namespace kube-system."""
    resources: Mapping[KindName, ResourceInfo] = field(default_factory=dict[KindName, ResourceInfo])
    """The kinds that are served, of those that were asked about."""

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource whose objects have this kind; None if it is not served."""
        return self.resources.get(KindName(api_version, kind))
