"""The API server of prepared bytes, as the process that it is: what its watches stream."""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest_asyncio

from bench import scripted_apiserver
from metaloop.common.json import JsonObject, loads
from metaloop.common.objects import unstructured
from metaloop.devkit.ports import LOOPBACK, free_port
from metaloop.devkit.probes import tcp_accepts
from metaloop.devkit.processes import Program, group

OBJECTS, EVENTS = 25, 60
THINGS = "/apis/testbed.example.com/v1/things"
CONFIG_MAPS = "/api/v1/configmaps"


@pytest_asyncio.fixture
async def session(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """A client of the server, which has 25 ConfigMaps and 60 changes of them."""
    port = free_port()
    argv = (sys.executable, scripted_apiserver.__file__, str(port), str(OBJECTS), str(EVENTS))
    async with group() as daemons:
        await daemons.start(Program(name="server", argv=argv, ready=tcp_accepts(LOOPBACK, port), folder=tmp_path))
        async with aiohttp.ClientSession(f"http://{LOOPBACK}:{port}", read_bufsize=2**20) as session:
            yield session


class Stream:
    """The events of one watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def events(self, count: int) -> list[JsonObject]:
        """The next events."""
        async with asyncio.timeout(30):
            return [loads(await self._answer.content.readline()) for _ in range(count)]

    async def listed(self) -> list[JsonObject]:
        """The objects up to the bookmark that ends the list."""
        objects: list[JsonObject] = []
        while True:
            [event] = await self.events(1)
            if event["type"] == "BOOKMARK":
                return objects
            assert event["type"] == "ADDED"
            objects.append(unstructured.child_object(event, "object"))


@asynccontextmanager
async def watching(session: aiohttp.ClientSession, path: str) -> AsyncIterator[Stream]:
    """A watch, while the block lasts."""
    async with session.get(path) as answer:
        yield Stream(answer)


async def test_list_of_parents_is_streamed_up_to_a_bookmark(session: aiohttp.ClientSession) -> None:
    async with watching(session, THINGS) as stream:
        parents = await stream.listed()

    assert len({unstructured.uid(parent) for parent in parents}) == len(parents) == scripted_apiserver.PARENTS
    assert {unstructured.kind(parent) for parent in parents} == {"Thing"}
    assert {unstructured.namespace(parent) for parent in parents} == {scripted_apiserver.NAMESPACE}


async def test_bookmark_says_that_the_initial_events_have_ended(session: aiohttp.ClientSession) -> None:
    async with watching(session, CONFIG_MAPS) as stream:
        bookmark = (await stream.events(OBJECTS + 1))[-1]

    obj = unstructured.child_object(bookmark, "object")
    assert bookmark["type"] == "BOOKMARK"
    assert unstructured.annotations(obj) == {"k8s.io/initial-events-end": "true"}
    assert unstructured.resource_version(obj)


async def test_each_config_map_is_controlled_by_a_listed_parent(session: aiohttp.ClientSession) -> None:
    async with watching(session, THINGS) as stream:
        uids = {unstructured.name(parent): unstructured.uid(parent) for parent in await stream.listed()}
    async with watching(session, CONFIG_MAPS) as stream:
        children = await stream.listed()

    owners = [owner for child in children for owner in unstructured.child_objects(unstructured.metadata(child), "ownerReferences")]
    assert len(children) == len(owners) == OBJECTS
    assert all(owner["controller"] and owner["uid"] == uids[str(owner["name"])] for owner in owners)


async def test_config_map_has_about_one_kilobyte(session: aiohttp.ClientSession) -> None:
    async with watching(session, CONFIG_MAPS) as stream:
        [child, *_] = await stream.listed()

    unstructured.metadata(child).pop("managedFields")
    assert 900 <= len(str(child)) <= 1_300


async def test_no_change_is_sent_before_the_start_is_asked_for(session: aiohttp.ClientSession) -> None:
    async with watching(session, CONFIG_MAPS) as stream:
        await stream.listed()
        first = asyncio.ensure_future(stream.events(1))
        done, _ = await asyncio.wait([first], timeout=0.2)

        async with session.get("/go") as answer:
            assert answer.status == 200

        assert not done
        assert (await first)[0]["type"] == "MODIFIED"


async def test_changes_are_spread_evenly_and_get_ever_newer(session: aiohttp.ClientSession) -> None:
    async with watching(session, CONFIG_MAPS) as stream:
        listed = {unstructured.name(child) for child in await stream.listed()}
        await session.get("/go")
        changes = [unstructured.child_object(event, "object") for event in await stream.events(EVENTS)]

    counts = Counter(unstructured.name(change) for change in changes)
    versions = [int(unstructured.resource_version(change)) for change in changes]
    assert set(counts) == listed
    assert max(counts.values()) - min(counts.values()) <= 1
    assert versions == sorted(set(versions))
