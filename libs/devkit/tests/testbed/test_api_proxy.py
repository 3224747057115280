"""The proxy in front of a real API server: what passes it without faults, and with each kind of fault."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from metaloop.common.json import JsonObject, loads
from metaloop.common.objects import unstructured
from metaloop.devkit.controlplane import ControlPlane
from metaloop.devkit.testbed.apiproxy import ApiProxy, ProxiedRequest, WatchFault
from metaloop.devkit.testbed.builtin import named
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES, Cluster
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio(loop_scope="session")]

SELECTOR = {"labelSelector": "seen=yes"}
NUMBERS = itertools.count()


class Proxied:
    """A client of the API server through the proxy, and a client that goes around it."""

    def __init__(self, proxy: ApiProxy, session: aiohttp.ClientSession, cluster: Cluster, namespace: str) -> None:
        self.proxy = proxy
        self.session = session
        self.path = CONFIG_MAPS.collection_path(namespace)
        self._cluster = cluster
        self._namespace = namespace

    async def create(self, name: str) -> None:
        """Create a ConfigMap that the watches select, around the proxy."""
        await self._cluster.create(CONFIG_MAPS, config_map(name, labels={"seen": "yes"}), namespace=self._namespace)

    async def status(self, path: str, **query: str) -> int:
        """The status of the answer to a GET through the proxy."""
        async with self.session.get(path, params=query) as answer:
            await answer.read()
            return answer.status

    @asynccontextmanager
    async def watching(self) -> AsyncIterator["Lines"]:
        """A watch through the proxy that has got the ConfigMap `first`, for as long as the block lasts."""
        await self.create("first")
        async with self.session.get(self.path, params={"watch": "true", **SELECTOR}) as answer:
            lines = Lines(answer)
            assert await lines.next_name() == "first"
            yield lines


class Lines:
    """The lines of an open watch."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self._answer = answer

    async def next(self) -> bytes:
        """The next line; empty at a regular end. Raises aiohttp.ClientError if the connection breaks."""
        async with asyncio.timeout(20):
            return await self._answer.content.readline()

    async def next_event(self) -> JsonObject:
        return loads(await self.next())

    async def next_name(self) -> str:
        """The name of the object in the next event."""
        return unstructured.name(unstructured.child_object(await self.next_event(), "object"))


@pytest_asyncio.fixture(loop_scope="session")
async def proxied(shared_plane: ControlPlane, tmp_path: Path) -> AsyncIterator[Proxied]:
    namespace = f"api-proxy-{next(NUMBERS)}"
    async with Cluster.connect(shared_plane) as cluster, ApiProxy.before(shared_plane, tmp_path) as proxy:
        await cluster.create(NAMESPACES, named(NAMESPACES, namespace))
        server = json.loads(proxy.kubeconfig_path.read_text())["clusters"][0]["cluster"]["server"]
        async with aiohttp.ClientSession(server) as session:
            yield Proxied(proxy, session, cluster, namespace)


@pytest.mark.parametrize(
    ("method", "query", "is_list", "is_watch"),
    [
        ("GET", {"limit": "500"}, True, False),
        ("GET", {"watch": "true", "sendInitialEvents": "true"}, True, True),
        ("GET", {"watch": "true", "resourceVersion": "7"}, False, True),
        ("GET", {}, False, False),
        ("DELETE", {"limit": "500"}, False, False),
    ],
    ids=["a paged list", "a streamed list", "a watch", "a get", "a deletion"],
)
async def test_lists_and_watches_are_told_by_their_query(method: str, query: dict[str, str], *, is_list: bool, is_watch: bool) -> None:
    request = ProxiedRequest(method, "/api/v1/pods", query)

    assert (request.is_list, request.is_watch) == (is_list, is_watch)


async def test_requests_are_sent_on_as_the_administrator_and_recorded(proxied: Proxied) -> None:
    assert await proxied.status("/api/v1/secrets", limit="1") == 200

    assert proxied.proxy.asked == [ProxiedRequest("GET", "/api/v1/secrets", {"limit": "1"})]


async def test_body_of_a_write_and_the_error_of_the_server_pass(proxied: Proxied) -> None:
    created = await proxied.session.post(proxied.path, json=config_map("a", data={"text": "x"}))
    again = await proxied.session.post(proxied.path, json=config_map("a"))

    assert (created.status, (await created.json())["data"]) == (201, {"text": "x"})
    assert (again.status, (await again.json())["reason"]) == (409, "AlreadyExists")


async def test_refusal_applies_to_the_paths_that_contain_its_key(proxied: Proxied) -> None:
    proxied.proxy.refusals["configmaps"] = 503

    assert await proxied.status(proxied.path) == 503
    assert await proxied.status("/api/v1/secrets") == 200


async def test_forged_body_is_a_successful_answer(proxied: Proxied) -> None:
    proxied.proxy.forgeries["configmaps"] = b"not JSON"

    async with proxied.session.get(proxied.path) as answer:
        assert (answer.status, await answer.read()) == (200, b"not JSON")


@pytest.mark.parametrize(("streams_lists", "status"), [(True, 200), (False, 422)])
async def test_streaming_lists_can_be_refused(proxied: Proxied, *, streams_lists: bool, status: int) -> None:
    proxied.proxy.streams_lists = streams_lists
    query = {"watch": "true", "sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": "true"}

    async with proxied.session.get(proxied.path, params=query) as answer:
        assert answer.status == status
    assert await proxied.status(proxied.path, limit="1") == 200


async def test_requests_above_the_limit_are_told_to_come_again(proxied: Proxied) -> None:
    proxied.proxy.most_at_once, proxied.proxy.busy_seconds = 2, 1.0

    async def asked() -> tuple[int, str]:
        async with proxied.session.get(proxied.path) as answer:
            return answer.status, answer.headers.get("Retry-After", "")

    answers = await asyncio.gather(*(asked() for _ in range(5)))

    assert sorted(answers) == [(200, ""), (200, ""), (429, "1"), (429, "1"), (429, "1")]
    assert proxied.proxy.turned_away == 3
    assert await proxied.status(proxied.path) == 200


async def test_watches_are_not_limited(proxied: Proxied) -> None:
    proxied.proxy.most_at_once = 1
    async with proxied.watching():
        assert await proxied.status(proxied.path) == 200
        async with proxied.session.get(proxied.path, params={"watch": "true"}) as second:
            assert second.status == 200
    assert proxied.proxy.turned_away == 0


async def test_delayed_event_arrives_after_the_delay_and_in_order(proxied: Proxied) -> None:
    loop = asyncio.get_running_loop()
    async with proxied.watching() as lines:
        proxied.proxy.watch_delay_seconds = 0.3
        began = loop.time()
        await proxied.create("second")
        await proxied.create("third")

        assert [await lines.next_name(), await lines.next_name()] == ["second", "third"]
    assert loop.time() - began >= 0.3


async def test_frozen_traffic_is_held_back_until_it_is_thawed(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        proxied.proxy.freeze()
        await proxied.create("second")
        event = asyncio.ensure_future(lines.next_name())
        status = asyncio.ensure_future(proxied.status(proxied.path))
        done, _ = await asyncio.wait([event, status], timeout=0.3)

        proxied.proxy.thaw()

        assert not done
        assert (await event, await status) == ("second", 200)


async def test_watch_that_ends_has_a_regular_end(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        assert proxied.proxy.break_watches(WatchFault.END) == 1

        assert await lines.next() == b""


async def test_watch_that_is_cut_has_no_regular_end(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        proxied.proxy.break_watches(WatchFault.CUT)

        with pytest.raises(aiohttp.ClientError):
            await lines.next()


async def test_watch_that_is_cut_within_a_line_gives_no_whole_event(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        proxied.proxy.break_watches(WatchFault.CUT_WITHIN_A_LINE)
        await proxied.create("second")

        with pytest.raises(aiohttp.ClientError):
            await lines.next()


async def test_watch_that_expires_says_so_and_ends(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        proxied.proxy.break_watches(WatchFault.EXPIRE)

        event = await lines.next_event()
        assert (event["type"], unstructured.child_object(event, "object")["code"]) == ("ERROR", 410)
        assert await lines.next() == b""


async def test_garbled_event_is_lost_and_the_next_one_is_not(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        proxied.proxy.break_watches(WatchFault.GARBLE)
        await proxied.create("lost")
        garbled = await lines.next()
        await proxied.create("seen")

        with pytest.raises(ValueError):  # noqa: PT011 - the message is the parser's
            loads(garbled)
        assert await lines.next_name() == "seen"


@pytest.mark.parametrize(("of", "number"), [("configmaps", 1), ("", 1), ("secrets", 0)])
async def test_forged_line_goes_to_the_watches_of_a_path(proxied: Proxied, of: str, number: int) -> None:
    async with proxied.watching() as lines:
        reached = proxied.proxy.inject(b'{"type":"FORGED","object":{"metadata":{"name":"forged"}}}\n', of=of)
        await proxied.create("real")

        assert reached == number
        assert [await lines.next_name() for _ in range(number + 1)] == [*["forged"] * number, "real"]


async def test_fault_of_another_resource_leaves_a_watch_alone(proxied: Proxied) -> None:
    async with proxied.watching() as lines:
        assert proxied.proxy.break_watches(WatchFault.CUT, of="secrets") == 0
        await proxied.create("second")

        assert await lines.next_name() == "second"


async def test_watch_that_its_client_closed_is_no_longer_broken(proxied: Proxied) -> None:
    async with proxied.watching():
        pass

    async def nothing_is_open() -> None:
        expect(proxied.proxy.break_watches(WatchFault.END) == 0, "the watch is still open")

    await eventually(nothing_is_open)
