"""The watches of an API server from prepared bytes, so that only the watcher is measured.

    python scripted_apiserver.py PORT OBJECTS EVENTS

It serves 1,000 parents and OBJECTS ConfigMaps of about 1 KB, each controlled by a parent, as streaming lists. After a
request for `/go`, EVENTS changes of the ConfigMaps follow as fast as they are read.
"""

import asyncio
import sys

import orjson
import uvloop
from aiohttp import web

PARENTS = 1_000
NAMESPACE = "bench"
_CONTENT = "x" * 450
"""With the metadata that a server adds, but without managedFields, a ConfigMap has 1 KB."""
_LINES_PER_WRITE = 64
_MANAGED: list[object] = [
    {
        "manager": "metacontroller",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {".": {}, "f:text": {}}, "f:metadata": {"f:labels": {".": {}, "f:parent": {}}, "f:ownerReferences": {}}},
    }
]


def _metadata(name: str, version: int, **more: object) -> dict[str, object]:
    uid = f"00000000-0000-4000-8000-{abs(hash(name)) % 10**12:012d}"
    base = {"name": name, "namespace": NAMESPACE, "uid": uid, "resourceVersion": str(version), "generation": 1}
    return {**base, "creationTimestamp": "2026-01-01T00:00:00Z", "managedFields": _MANAGED, **more}


def _line(type_: str, obj: dict[str, object]) -> bytes:
    return orjson.dumps({"type": type_, "object": obj}) + b"\n"


def _parent(number: int, version: int) -> dict[str, object]:
    metadata = _metadata(f"p{number}", version, labels={"app": "bench"})
    return {
        "apiVersion": "testbed.example.com/v1",
        "kind": "Thing",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": "no"}}},
    }


def _child(number: int, version: int) -> dict[str, object]:
    parent = f"p{number % PARENTS}"
    owner = {
        "apiVersion": "testbed.example.com/v1",
        "kind": "Thing",
        "name": parent,
        "uid": _metadata(parent, 0)["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }
    annotations = {"metacontroller.k8s.io/last-applied-configuration": "y" * 100}
    metadata = _metadata(f"c{number}", version, labels={"parent": parent}, ownerReferences=[owner], annotations=annotations)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": _CONTENT}}


def _end_of_list(version: int) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"}
    return _line("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


class Watches:
    """The watch of the parents, and that of their children."""

    def __init__(self, *, objects: int, events: int) -> None:
        self._objects = objects
        # Prepared, so that this process is faster than its reader.
        self._changes = [_line("MODIFIED", _child(number % objects, 10_000_000 + number)) for number in range(events)]
        self._go = asyncio.Event()

    async def things(self, request: web.Request) -> web.StreamResponse:
        """The parents, which never change."""
        return await self._stream(request, [_line("ADDED", _parent(number, 1 + number)) for number in range(PARENTS)], changes=[])

    async def config_maps(self, request: web.Request) -> web.StreamResponse:
        """The children, and then their changes."""
        listed = (_line("ADDED", _child(number, 1 + number)) for number in range(self._objects))
        return await self._stream(request, [*listed], changes=self._changes)

    async def go(self, _: web.Request) -> web.Response:
        """Begin with the changes."""
        self._go.set()
        return web.Response()

    async def _stream(self, request: web.Request, listed: list[bytes], *, changes: list[bytes]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        for lines in (listed, [_end_of_list(9_000_000)]):
            for start in range(0, len(lines), _LINES_PER_WRITE):
                await response.write(b"".join(lines[start : start + _LINES_PER_WRITE]))
        await self._go.wait()
        for start in range(0, len(changes), _LINES_PER_WRITE):
            await response.write(b"".join(changes[start : start + _LINES_PER_WRITE]))
        await asyncio.Event().wait()
        return response


async def serve(port: int, *, objects: int, events: int) -> None:
    """Serve until the process is killed."""
    watches = Watches(objects=objects, events=events)
    app = web.Application()
    app.router.add_get("/apis/testbed.example.com/v1/things", watches.things)
    app.router.add_get("/api/v1/configmaps", watches.config_maps)
    app.router.add_get("/go", watches.go)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), objects=int(sys.argv[2]), events=int(sys.argv[3])))
