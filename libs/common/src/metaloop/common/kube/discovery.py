"""Discovery: which resources the API server serves, by plural and by kind.

It asks for the aggregated form, two requests for everything, and reads group by group from servers that don't know it. What can't be
learned now keeps its former entries: an aggregated API that is down for a minute must not make the children of that API vanish.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.kube.body import object_of
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import NotFound, Unreadable
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.objects.unstructured import child_object, text
from metaloop.common.telemetry import fields, get_logger

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
_LISTS = {"versions", "groups"}
_ACCEPT = ",".join((_AGGREGATED.format(version="v2"), _AGGREGATED.format(version="v2beta1"), "application/json"))

Resources: TypeAlias = Mapping[ResourceId, ResourceInfo]

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What one look at the API server told: by group and version, what it serves, and which of them it could not tell about."""

    versions: Mapping[str, tuple[ResourceInfo, ...]]
    unknown: frozenset[str] = field(default=frozenset())
    """These may serve more than `versions` says."""

    @property
    def known(self) -> frozenset[str]:
        """The versions that were told about, and serve anything."""
        return frozenset(version for version, infos in self.versions.items() if infos) - self.unknown


class Discovery:
    """What is known of the API server's resources."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube
        self._resources: Resources = {}
        self._by_kind: Mapping[tuple[str, str], ResourceInfo] = {}

    async def refresh(self, *, announced: frozenset[str] = frozenset()) -> bool:
        """Ask again, and say whether anything changed. Raises what KubeClient does if nothing could be learned; then all is kept.

        `announced` versions are known to be served by others than the API server itself, whose list may be up to a minute behind them.
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
        """Everything that is served, as of the last refresh."""
        return self._resources

    def by_resource(self, api_version: str, resource: str) -> ResourceInfo | None:
        """The resource of a plural name."""
        return self._resources.get(ResourceId(api_version, resource))

    def by_kind(self, api_version: str, kind: str) -> ResourceInfo | None:
        """The resource whose objects are of a kind."""
        return self._by_kind.get((api_version, kind))

    async def _served(self, root: str) -> Served:
        answer = object_of(await self._kube.request("GET", root, accept=_ACCEPT))
        if text(answer, "kind") == "APIGroupDiscoveryList":
            return aggregated(answer)
        if not answer.keys() & _LISTS:
            raise Unreadable(f"GET {root}: the API server sent no list of versions")
        return await one_by_one(self._kube, group_versions(answer))


def merged(looks: Iterable[Served]) -> Served:
    """Several looks as one."""
    versions: dict[str, tuple[ResourceInfo, ...]] = {}
    unknown: frozenset[str] = frozenset()
    for look in looks:
        versions |= look.versions
        unknown |= look.unknown
    return Served(versions=versions, unknown=unknown)


def completed(listed: Served, asked: Served, *, behind: frozenset[str]) -> Served:
    """A list with what versions that it was `behind` of say themselves; a server that says nothing isn't itself yet, and could not tell."""
    told = {version: infos for version, infos in asked.versions.items() if infos}
    return Served(versions={**listed.versions, **told}, unknown=(listed.unknown | behind) - asked.known)


def retained(before: Resources, served: Served) -> dict[ResourceId, ResourceInfo]:
    """What is served now; for the versions that could not tell, what they served before as well."""
    kept = {id_: info for id_, info in before.items() if info.api_version in served.unknown}
    return kept | {info.id: info for infos in served.versions.values() for info in infos}


def aggregated(answer: JsonObject) -> Served:
    """What an APIGroupDiscoveryList says; versions that it marks as stale are those it could not tell about."""
    versions: dict[str, tuple[ResourceInfo, ...]] = {}
    stale: set[str] = set()
    for group in _objects(answer.get("items")):
        for version in _objects(group.get("versions")):
            group_version = _joined(text(child_object(group, "metadata"), "name"), text(version, "version"))
            versions[group_version] = tuple(
                _from_aggregated(group_version, raw)
                for raw in _objects(version.get("resources"))
                if child_object(raw, "responseKind")  # others are there for their subresources only
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
        has_status=any(text(entry, "subresource") == "status" for entry in _objects(raw.get("subresources"))),
    )


def group_versions(answer: JsonObject) -> list[str]:
    """The versions that an APIVersions or an APIGroupList lists."""
    core = answer.get("versions")
    listed = [version for version in core if isinstance(version, str)] if is_array(core) else []
    for group in _objects(answer.get("groups")):
        listed += [text(version, "groupVersion") for version in _objects(group.get("versions"))]
    return listed


async def one_by_one(kube: KubeClient, listed: Iterable[str]) -> Served:
    """What each version says of itself; one that fails is one that could not tell, one that is gone serves nothing."""
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
    """What an APIResourceList lists, with subresources as a property of their resource."""
    entries = _objects(answer.get("resources"))
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


def _objects(value: JsonValue) -> list[JsonObject]:
    return [item for item in value if is_object(item)] if is_array(value) else []
