"""`metaloop explain` and `metaloop top` as a person runs them, on a parent of running services."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import pytest
from fastapi import Request, Response

from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.server import Address, App, serving
from metaloop.common.settings import Listener
from metaloop.devkit.cli.debug_views import TOKEN_HEADER, DebugOptions, debug_views
from metaloop.devkit.cli.explain import ParentName, explained
from metaloop.devkit.cli.top import Reading, rows_of
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story

PODS = ResourceInfo(api_version="v1", resource="pods", kind="Pod", namespaced=True, has_status=True)


async def test_parent_is_explained_from_its_change_to_what_was_written(story: Story) -> None:
    await story.controller()
    await story.parent("p")
    await eventually(lambda: story.settled("p"))

    lines = await eventually(lambda: _lines_with(story, "p", "Last sync: done"))
    told = "\n".join(lines)
    assert lines[0] == f"Thing {story.name}/p, of CompositeController/{story.name}"
    assert "Hooks: sync " in told
    assert "Written: " in told
    assert "It is paused" not in told

    unknown = await _lines(story, "nobody")
    assert "The watcher sees no such object" in "\n".join(unknown)
    async with debug_views(DebugOptions(url=story.lab.stack.watcher.debug_url)) as views:
        rows = rows_of(Reading(at=0.0, controllers=await views.read("controllers")), since=None)
    assert [row[2] for row in rows if row[0] == f"CompositeController {story.name}"] == ["1"]


async def test_views_of_a_pod_are_read_through_the_api_server_with_the_token(story: Story) -> None:
    async with _views_at(_own_address()) as address:
        pod: JsonObject = {
            "metadata": {"name": "watcher-1", "labels": {"app.kubernetes.io/name": "watcher"}},
            "spec": {"containers": [CONTAINER]},
        }
        await story.cluster.create(PODS, pod, namespace=story.name)
        status: JsonObject = {"status": {"podIP": address.host, "podIPs": [{"ip": address.host}]}}
        await story.cluster.patch(PODS, story.name, "watcher-1", status, subresource="status")
        options = DebugOptions(
            token="secret", namespace=story.name, port=address.port, kubeconfig=str(story.lab.platform.plane.kubeconfig_path)
        )

        async with debug_views(options) as views:
            shown = await views.read("explain", kind="Thing")

    assert shown == [{"path": "/debug/explain", "kind": "Thing", "token": "secret"}]


CONTAINER: JsonObject = {"name": "watcher", "image": "metaloop:dev"}


@asynccontextmanager
async def _views_at(host: str) -> AsyncIterator[Address]:
    """A server that answers what it was asked."""

    async def tell(request: Request) -> Response:
        told = {"path": request.url.path, "kind": request.query_params["kind"], "token": request.headers.get(TOKEN_HEADER)}
        return Response(dumps([told]), media_type="application/json")

    app = App("views")
    app.add_api_route("/debug/explain", tell)
    async with serving(app, Listener(host=host, port=0)) as address:
        yield address


def _own_address() -> str:
    """An address of this machine other than loopback, where the API server refuses to pass requests on."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as unused:
        try:
            unused.connect(("192.0.2.1", 9))  # sends nothing: it only chooses the address
        except OSError:
            pytest.skip("this machine has no address but loopback")
        return unused.getsockname()[0]


async def _lines(story: Story, name: str) -> list[str]:
    asked = ParentName(kind="Thing", namespace=story.name, name=name)
    async with debug_views(DebugOptions(url=story.lab.stack.watcher.debug_url)) as views:
        return [*explained(asked, await views.read("explain", kind=asked.kind, namespace=asked.namespace, name=asked.name))]


async def _lines_with(story: Story, name: str, text: str) -> list[str]:
    """The lines, of which one has to contain this text."""
    lines = await _lines(story, name)
    expect(any(text in line for line in lines), f"no line with {text!r} in {lines}")
    return lines
