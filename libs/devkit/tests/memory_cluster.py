"""An in-memory API server over real HTTP: discovery, paged lists, single objects and merge patches.

It refuses all other requests.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web

from metaloop.common.api.kinds import KINDS
from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import reference_to
from metaloop.common.objects.resource import ResourceInfo
from metaloop.devkit.testbed.apiproxy import write_kubeconfig
from metaloop.devkit.testbed.kinds import patched

THINGS = ResourceInfo(api_version="example.com/v1", resource="things", kind="Thing", namespaced=True, has_status=True)
CONFIG_MAPS = ResourceInfo(api_version="v1", resource="configmaps", kind="ConfigMap", namespaced=True)
SECRETS = ResourceInfo(api_version="v1", resource="secrets", kind="Secret", namespaced=True)
NAMESPACES = ResourceInfo(api_version="v1", resource="namespaces", kind="Namespace", namespaced=False, has_status=True)
NODES = ResourceInfo(api_version="v1", resource="nodes", kind="Node", namespaced=False, has_status=True)
COMPOSITES, DECORATORS, COMPONENTS = (
    KINDS[kind].resource for kind in ("CompositeController", "DecoratorController", "ComponentController")
)
REVISIONS = ResourceInfo(
    api_version="metacontroller.k8s.io/v1alpha1", resource="controllerrevisions", kind="ControllerRevision", namespaced=True
)
SERVED = (THINGS, CONFIG_MAPS, SECRETS, NAMESPACES, NODES, COMPOSITES, DECORATORS, COMPONENTS, REVISIONS)


class MemoryCluster:
    """The stored objects and the received requests."""

    def __init__(self) -> None:
        self.kubeconfig = Path()
        self.asked: list[str] = []
        """Each request: its method, and its path with the query."""
        self.page_size = 500
        """How many objects a page has at most."""
        self._objects: dict[str, list[JsonObject]] = {}
        self._version = 0

    @staticmethod
    @asynccontextmanager
    async def serving(folder: Path) -> AsyncIterator["MemoryCluster"]:
        """The cluster, while the block lasts."""
        cluster = MemoryCluster()
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", cluster._answered)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            cluster.kubeconfig = write_kubeconfig(folder, f"http://127.0.0.1:{runner.addresses[0][1]}")
            yield cluster
        finally:
            await runner.cleanup()

    def put(self, info: ResourceInfo, obj: JsonObject) -> JsonObject:
        """Store an object. Returns it with a UID and a version."""
        self._version += 1
        name = unstructured.name(obj)
        metadata: JsonObject = {
            "uid": f"uid-of-{name}",
            "generation": 1,
            "resourceVersion": str(self._version),
            **unstructured.metadata(obj),
        }
        stored: JsonObject = {"apiVersion": info.api_version, "kind": info.kind, **obj, "metadata": metadata}
        self._objects.setdefault(info.collection_path(), []).append(stored)
        return stored

    def thing(
        self, name: str = "p", *, labels: JsonObject | None = None, annotations: JsonObject | None = None, **parts: object
    ) -> JsonObject:
        """A stored parent that selects children labelled with its name."""
        metadata: JsonObject = {"name": name, "namespace": "default", "labels": labels or {}, "annotations": annotations or {}}
        spec: JsonObject = {"selector": {"matchLabels": {"parent": name}}}
        return self.put(THINGS, {"metadata": metadata, "spec": spec, **parts})  # type: ignore[dict-item]

    def config_map(self, name: str, *, of: JsonObject | None = None, namespace: str = "default", text: str = "") -> JsonObject:
        """A stored ConfigMap, which is the child of a parent if one is given."""
        metadata: JsonObject = {"name": name, "namespace": namespace}
        if of is not None:
            metadata |= {"labels": {"parent": unstructured.name(of)}, "ownerReferences": [reference_to(of)]}
        return self.put(CONFIG_MAPS, {"metadata": metadata, "data": {"text": text}})

    def composite(self, name: str, *, parents: ResourceInfo = THINGS, labels: JsonObject | None = None, **spec: object) -> JsonObject:
        """A stored CompositeController of parents with these labels, with ConfigMaps as children."""
        rule: JsonObject = {"apiVersion": parents.api_version, "resource": parents.resource}
        if labels:
            rule["labelSelector"] = {"matchLabels": labels}
        own: JsonObject = {
            "parentResource": rule,
            "childResources": [{"apiVersion": "v1", "resource": "configmaps", "updateStrategy": {"method": "InPlace"}}],
            "hooks": {"sync": {"webhook": {"url": "http://hook.example/sync"}}},
        }
        return self.put(COMPOSITES, {"metadata": {"name": name}, "spec": {**own, **spec}})  # type: ignore[dict-item]

    def decorator(self, name: str, *, labels: JsonObject | None = None, **spec: object) -> JsonObject:
        """A stored DecoratorController of Things with these labels, and ConfigMaps as attachments."""
        own: JsonObject = {
            "resources": [
                {
                    "apiVersion": THINGS.api_version,
                    "resource": THINGS.resource,
                    "labelSelector": {"matchLabels": labels or {}},
                }
            ],
            "attachments": [{"apiVersion": "v1", "resource": "configmaps"}],
            "hooks": {"sync": {"webhook": {"url": "http://hook.example/sync"}}},
        }
        return self.put(DECORATORS, {"metadata": {"name": name}, "spec": {**own, **spec}})  # type: ignore[dict-item]

    def component(self, name: str, *, prefix: str = "op.example.com", **spec: object) -> JsonObject:
        """A stored ComponentController of Things."""
        own: JsonObject = {
            "prefix": prefix,
            "parentResource": {"apiVersion": THINGS.api_version, "resource": THINGS.resource},
            "generator": {"webhook": {"url": "http://hook.example/generate"}},
        }
        return self.put(COMPONENTS, {"metadata": {"name": name}, "spec": {**own, **spec}})  # type: ignore[dict-item]

    async def _answered(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path_qs}")
        answer = self._answer_to(request)
        if request.method == "PATCH":
            answer = self._patched(answer, loads(await request.read()))
        elif request.method != "GET":
            answer = _status(405, "this cluster creates and deletes nothing")
        return web.Response(status=int(str(answer.get("code", 200))), body=dumps(answer), content_type="application/json")

    def _patched(self, found: JsonObject, patch: JsonObject) -> JsonObject:
        """The object after a merge patch, if it is the one that the patch is for."""
        expected = unstructured.metadata(patch)
        for precondition in ("uid", "resourceVersion"):
            if precondition in expected and expected[precondition] != unstructured.metadata(found).get(precondition):
                return _status(409, f"another {precondition}")
        self._version += 1
        found.update(patched(found, patch))
        unstructured.metadata(found)["resourceVersion"] = str(self._version)
        return found

    def _answer_to(self, request: web.Request) -> JsonObject:
        if request.path in {"/api", "/apis"}:
            return _discovery([info for info in SERVED if ("/" in info.api_version) == (request.path == "/apis")])
        for info in SERVED:
            path, objects = info.collection_path(), self._objects.get(info.collection_path(), [])
            root, _, _ = path.rpartition("/")
            rest = request.path.removeprefix(root).strip("/").split("/")
            match rest:
                case [info.resource]:
                    return self._page(info, objects, request)
                case [info.resource, name] if not info.namespaced:
                    return _one(objects, "", name)
                case ["namespaces", space, info.resource] if info.namespaced:
                    return self._page(info, [each for each in objects if unstructured.namespace(each) == space], request)
                case ["namespaces", space, info.resource, name] if info.namespaced:
                    return _one(objects, space, name)
                case _:
                    continue
        return _status(404, f"there is no {request.path}")

    def _page(self, info: ResourceInfo, objects: list[JsonObject], request: web.Request) -> JsonObject:
        start = int(request.query.get("continue", "0"))
        size = min(self.page_size, int(request.query.get("limit", "500")))
        # As in any list, the items are without what the list says of them all.
        items = [{key: value for key, value in each.items() if key not in {"apiVersion", "kind"}} for each in objects[start : start + size]]
        rest = str(start + size) if start + size < len(objects) else ""
        return {"kind": f"{info.kind}List", "apiVersion": info.api_version, "metadata": {"continue": rest}, "items": [*items]}


def _one(objects: Iterable[JsonObject], namespace: str, name: str) -> JsonObject:
    found = (each for each in objects if (unstructured.namespace(each), unstructured.name(each)) == (namespace, name))
    return next(found, _status(404, f"there is no {name}"))


def _status(code: int, message: str) -> JsonObject:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "code": code,
        "reason": {404: "NotFound", 409: "Conflict"}.get(code, ""),
        "message": message,
    }


def _discovery(served: list[ResourceInfo]) -> JsonObject:
    groups: dict[str, list[ResourceInfo]] = {}
    for info in served:
        groups.setdefault(info.group, []).append(info)
    items = [{"metadata": {"name": group}, "versions": _versions(infos)} for group, infos in groups.items()]
    return {"kind": "APIGroupDiscoveryList", "items": [*items]}  # type: ignore[list-item]


def _versions(infos: list[ResourceInfo]) -> list[JsonObject]:
    """The version of a group. All served groups have only one."""
    [version] = {info.api_version.rpartition("/")[2] for info in infos}
    return [{"version": version, "freshness": "Current", "resources": [_resource(info) for info in infos]}]


def _resource(info: ResourceInfo) -> JsonObject:
    return {
        "resource": info.resource,
        "responseKind": {"kind": info.kind},
        "scope": "Namespaced" if info.namespaced else "Cluster",
        "subresources": [{"subresource": "status"}] if info.has_status else [],
    }
