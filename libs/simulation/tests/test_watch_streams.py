"""Watches of the model: what each line says, when it arrives, and how a watch ends or falls silent."""

import asyncio

import pytest
from virtual import network, now, on_virtual_time

from metaloop.common.json import JsonObject, is_object, loads
from metaloop.common.kube.transport import Request
from metaloop.common.objects import unstructured
from metaloop.simulation.cluster.objects import Refusal
from metaloop.simulation.cluster.server import ApiServer
from metaloop.simulation.cluster.store import Key
from metaloop.simulation.cluster.watches import BOOKMARK_SECONDS, WatchStream
from metaloop.simulation.history import History
from metaloop.simulation.network import API, Port
from metaloop.simulation.resources import CONFIG_MAPS, THINGS

MAPS = "/api/v1/namespaces/default/configmaps"


class Cluster:
    """A server with the ConfigMaps of one test, and the port of one process."""

    def __init__(self) -> None:
        self.server = ApiServer(network(), History())
        self.server.store.serve(CONFIG_MAPS, THINGS)
        self.port = Port("watcher-1")

    def watch(self, query: str = "") -> WatchStream:
        return self.server.open_watch(Request(method="GET", target=f"{MAPS}?watch=true&{query}"), self.port)

    def create(self, name: str, *, namespace: str = "default", **labels: str) -> JsonObject:
        return self.server.store.create(CONFIG_MAPS, namespace, {"metadata": {"name": name, "labels": {**labels}}})

    def relabel(self, name: str, **labels: str) -> JsonObject:
        key = Key("default", name)
        found = self.server.store.get(CONFIG_MAPS, key)
        metadata: JsonObject = {**unstructured.metadata(found), "labels": {**labels}}
        return self.server.store.update(CONFIG_MAPS, key, {**found, "metadata": metadata})

    def delete(self, name: str) -> None:
        self.server.store.delete(CONFIG_MAPS, Key("default", name))


def shown(line: bytes) -> str:
    """A line as `TYPE name`; a bookmark has no name."""
    event = loads(line)
    assert is_object(event)
    return f"{event['type']} {unstructured.name(unstructured.child_object(event, 'object'))}".strip()


async def lines_within(stream: WatchStream, seconds: float = 1.0) -> list[str]:
    """What arrives within so many seconds, or until the watch ends."""
    lines: list[str] = []
    try:
        async with asyncio.timeout(seconds):
            while arrived := await stream.next():
                lines += map(shown, arrived)
            lines.append("END")
    except TimeoutError:
        pass
    return lines


def test_changes_arrive_in_their_order():
    async def main() -> list[str]:
        cluster = Cluster()
        watch = cluster.watch()
        for number in range(20):
            cluster.create(f"{number:02}")
        cluster.relabel("00", a="1")
        cluster.delete("01")
        return await lines_within(watch)

    assert on_virtual_time(main()) == [*(f"ADDED {number:02}" for number in range(20)), "MODIFIED 00", "DELETED 01"]


def test_a_watch_goes_on_after_the_version_that_it_names():
    async def main() -> list[str]:
        cluster = Cluster()
        cluster.create("a")
        version = unstructured.resource_version(cluster.create("b"))
        cluster.create("c")
        return await lines_within(cluster.watch(f"resourceVersion={version}"))

    assert on_virtual_time(main()) == ["ADDED c"]


def test_a_watch_from_a_forgotten_version_is_refused():
    async def main() -> Refusal:
        cluster = Cluster()
        version = unstructured.resource_version(cluster.create("a"))
        cluster.create("b")
        cluster.server.store.compact()
        with pytest.raises(Refusal) as refusal:
            cluster.watch(f"resourceVersion={version}")
        return refusal.value

    refusal = on_virtual_time(main())

    assert (refusal.code, refusal.reason) == (410, "Expired")


def test_a_streaming_list_shows_what_there_is_then_its_end_then_changes():
    async def main() -> list[str]:
        cluster = Cluster()
        cluster.create("b")
        cluster.create("a")
        cluster.server.store.compact()
        watch = cluster.watch("sendInitialEvents=true")
        cluster.create("c")
        return await lines_within(watch)

    assert on_virtual_time(main()) == ["ADDED a", "ADDED b", "BOOKMARK", "ADDED c"]


def test_a_watch_shows_only_its_namespace():
    async def main() -> list[str]:
        cluster = Cluster()
        watch = cluster.watch()
        cluster.create("a", namespace="elsewhere")
        cluster.create("b")
        return await lines_within(watch)

    assert on_virtual_time(main()) == ["ADDED b"]


def test_what_enters_or_leaves_a_selector_is_added_or_deleted():
    async def main() -> list[str]:
        cluster = Cluster()
        watch = cluster.watch("labelSelector=color%3Dred")
        cluster.create("a", color="blue")
        cluster.relabel("a", color="red")
        cluster.relabel("a", color="red", more="1")
        cluster.relabel("a", color="blue")
        cluster.relabel("a", color="green")
        cluster.delete("a")
        cluster.create("b", color="red")
        cluster.delete("b")
        return await lines_within(watch)

    assert on_virtual_time(main()) == ["ADDED a", "MODIFIED a", "DELETED a", "ADDED b", "DELETED b"]


def test_a_watch_ends_after_what_is_under_way_and_shows_nothing_more():
    async def main() -> list[str]:
        cluster = Cluster()
        watch = cluster.watch()
        cluster.create("a")
        cluster.server.end_watches()
        cluster.create("b")
        return await lines_within(watch)

    assert on_virtual_time(main()) == ["ADDED a", "END"]


def test_only_the_watches_of_the_named_resource_end():
    async def main() -> list[str]:
        cluster = Cluster()
        watch = cluster.watch()
        cluster.server.end_watches(THINGS.id)
        cluster.create("a")
        return await lines_within(watch)

    assert on_virtual_time(main()) == ["ADDED a"]


def test_a_watch_ends_when_its_time_is_over():
    async def main() -> tuple[list[str], float]:
        cluster, began = Cluster(), now()
        return await lines_within(cluster.watch("timeoutSeconds=30"), 120), now() - began

    lines, seconds = on_virtual_time(main())

    assert lines == ["END"]
    assert seconds == pytest.approx(30, abs=0.1)


def test_a_quiet_watch_gets_a_bookmark_each_minute():
    async def main() -> list[str]:
        return await lines_within(Cluster().watch(), 3 * BOOKMARK_SECONDS + 1)

    assert on_virtual_time(main()) == ["BOOKMARK"] * 3


def test_a_watch_that_fell_silent_says_nothing_not_even_its_end():
    async def main() -> tuple[list[str], list[str]]:
        cluster, another = Cluster(), Port("watcher-2")
        silent = cluster.watch()
        loud = cluster.server.open_watch(Request(method="GET", target=MAPS), another)
        cluster.server.silence_watches(cluster.port)
        cluster.create("a")
        cluster.server.end_watches()
        return await lines_within(silent, 3 * BOOKMARK_SECONDS), await lines_within(loud)

    assert on_virtual_time(main()) == ([], ["ADDED a", "END"])


def test_what_happened_while_a_process_was_cut_off_arrives_afterwards():
    async def main() -> tuple[list[str], list[str]]:
        cluster = Cluster()
        watch = cluster.watch()
        cluster.port.cut(API)
        cluster.create("a")
        cluster.create("b")
        during = await lines_within(watch, 5)
        cluster.port.join(API)
        cluster.create("c")
        return during, await lines_within(watch)

    assert on_virtual_time(main()) == ([], ["ADDED a", "ADDED b", "ADDED c"])


def test_a_resource_that_is_broken_ends_its_watches_and_takes_no_new_ones():
    async def main() -> tuple[list[str], int, list[str]]:
        cluster = Cluster()
        watch = cluster.watch()
        cluster.server.break_resource(CONFIG_MAPS.id, 503)
        with pytest.raises(Refusal) as refusal:
            cluster.watch()
        cluster.server.mend_resource(CONFIG_MAPS.id)
        again = cluster.watch()
        cluster.create("a")
        return await lines_within(watch), refusal.value.code, await lines_within(again)

    assert on_virtual_time(main()) == (["END"], 503, ["ADDED a"])
