"""Discovery: which resources the API server serves, by plural name and by kind.

It asks for aggregated discovery, which takes two requests. Older servers are asked for each group version. A version
whose discovery fails keeps its former entries: an aggregated API that is down for a minute must not make the children
of that API vanish.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject, is_array
from metaloop.common.kube.body import object_of
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import NotFound, Unreadable
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.unstructured import child_object, child_objects, text
from metaloop.common.telemetry import fields, get_logger

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
_LISTS = {"versions", "groups"}
_ACCEPT = ",".join((_AGGREGATED.format(version="v2"), _AGGREGATED.format(version="v2beta1"), "application/json"))

Resources: TypeAlias = Mapping[ResourceId, ResourceInfo]

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """The result of one discovery: the resources of each group version, and the versions whose discovery failed."""

    versions: Mapping[str, tuple[ResourceInfo, ...]]
    unknown: frozenset[str] = field(default=frozenset())
    """These may serve more than `versions` says."""

    @property
    def known(self) -> frozenset[str]:
        """The versions whose discovery succeeded, and that serve any resource."""
        return frozenset(version for version, infos in self.versions.items() if infos) - self.unknown


class Discovery:
    """The resources of the API server, as of the last refresh."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._resources: Resources = {}
        self._by_kind: Mapping[tuple[str, str], ResourceInfo] = {}

    async def refresh(self, *, announced: frozenset[str] = frozenset()) -> bool:
        """Run discovery again; returns whether anything changed.

        If it fails, raises what KubeClient raises and keeps the former resources.

        `announced` versions are served by aggregated APIs. The API server's list may lag up to a minute behind those.
        """
        served = merged([await self._served(root) for root in ("/api", "/apis")])
        if behind := announced - served.known:
            served = completed(served, await one_by_one(self._kube, sorted(behind)), behind=behind)
        if served.unknown:
            log.warning("discovery.partial", **{fields.GROUP_VERSION: sorted(served.unknown)})
        resources = retained(self._resources, served)
        if resources == self._resources:
            return False
        self._resources = resources
        self._by_kind = {(info.api_version, info.kind): info for info in reversed(resources.values())}
        return True

    def resources(self) -> Resources:
        """All resources, as of the last refresh."""
        return self._resources

    def by_resource(self, api_version: str, resource: str) -> ResourceInfo | None:
        """The resource with this plural name."""
        return self._resources.get(ResourceId(api_version, resource))

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource whose objects have this kind."""
        return self._by_kind.get((api_version, kind))

    async def _served(self, root: str) -> Served:
        answer = object_of(await self._kube.request("GET", root, accept=_ACCEPT))
        if text(answer, "kind") == "APIGroupDiscoveryList":
            return aggregated(answer)
        if not answer.keys() & _LISTS:
            raise Unreadable(f"GET {root}: the API server sent no list of versions")
        return await one_by_one(self._kube, group_versions(answer))


def merged(results: Iterable[Served]) -> Served:
    """Several results as one."""
    versions: dict[str, tuple[ResourceInfo, ...]] = {}
    unknown: frozenset[str] = frozenset()
    for result in results:
        versions |= result.versions
        unknown |= result.unknown
    return Served(versions=versions, unknown=unknown)


def completed(listed: Served, asked: Served, *, behind: frozenset[str]) -> Served:
    """`listed`, with the versions in `behind` replaced by what they answered themselves.

    A server that lists nothing is not ready: it counts as failed.
    """
    told = {version: infos for version, infos in asked.versions.items() if infos}
    return Served(versions={**listed.versions, **told}, unknown=(listed.unknown | behind) - asked.known)


def retained(before: Resources, served: Served) -> dict[ResourceId, ResourceInfo]:
    """The resources that are served now. Versions whose discovery failed keep their former resources."""
    kept = {id_: info for id_, info in before.items() if info.api_version in served.unknown}
    return kept | {info.id: info for infos in served.versions.values() for info in infos}


def aggregated(answer: JsonObject) -> Served:
    """The result in an APIGroupDiscoveryList. Versions that it marks as stale count as failed."""
    versions: dict[str, tuple[ResourceInfo, ...]] = {}
    stale: set[str] = set()
    for group in child_objects(answer, "items"):
        for version in child_objects(group, "versions"):
            group_version = _joined(text(child_object(group, "metadata"), "name"), text(version, "version"))
            versions[group_version] = tuple(
                _from_aggregated(group_version, raw)
                for raw in child_objects(version, "resources")
                if child_object(raw, "responseKind")  # other entries exist only for their subresources
            )
            if text(version, "freshness") == "Stale":
                stale.add(group_version)
    return Served(versions=versions, unknown=frozenset(stale))


def _from_aggregated(group_version: str, raw: JsonObject) -> ResourceInfo:
    return ResourceInfo(
        api_version=group_version,
        resource=text(raw, "resource"),
        kind=text(child_object(raw, "responseKind"), "kind"),
        namespaced=text(raw, "scope") == "Namespaced",
        has_status=any(text(entry, "subresource") == "status" for entry in child_objects(raw, "subresources")),
    )


def group_versions(answer: JsonObject) -> list[str]:
    """The group versions in an APIVersions or an APIGroupList."""
    core = answer.get("versions")
    listed = [version for version in core if isinstance(version, str)] if is_array(core) else []
    for group in child_objects(answer, "groups"):
        listed += [text(version, "groupVersion") for version in child_objects(group, "versions")]
    return listed


async def one_by_one(kube: KubeClient, listed: Iterable[str]) -> Served:
    """The result of asking each version itself.

    A version that is not found serves nothing; any other error counts as failed.
    """
    versions: dict[str, tuple[ResourceInfo, ...]] = {}
    failed: set[str] = set()
    for group_version in listed:
        root = "/apis" if "/" in group_version else "/api"
        try:
            answer = object_of(await kube.request("GET", f"{root}/{group_version}"))
        except NotFound:
            continue
        except MetaloopError:
            failed.add(group_version)
        else:
            if "resources" in answer:
                versions[group_version] = resource_list(group_version, answer)
            else:
                failed.add(group_version)
    return Served(versions=versions, unknown=frozenset(failed))


def resource_list(group_version: str, answer: JsonObject) -> tuple[ResourceInfo, ...]:
    """The resources in an APIResourceList, with subresources as properties of their resource."""
    entries = child_objects(answer, "resources")
    names = {text(entry, "name") for entry in entries}
    return tuple(
        ResourceInfo(
            api_version=group_version,
            resource=name,
            kind=text(entry, "kind"),
            namespaced=entry.get("namespaced") is True,
            has_status=f"{name}/status" in names,
        )
        for entry in entries
        if "/" not in (name := text(entry, "name"))
    )


def _joined(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version
