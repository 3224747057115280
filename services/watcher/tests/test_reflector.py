"""The reflector against servers that misbehave as real ones do: nothing is missed, nothing is listed without need."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import pytest
import uvloop
from aiohttp import web
from structlog.testing import capture_logs

from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.testing.polling import eventually
from metaloop.watcher.core.watch import Watch, WatchStatus
from metaloop.watcher.errors import MalformedObject
from metaloop.watcher.reflector import Reflector, WatchSettings

from .objects import CONFIGMAPS, obj

Answer: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
IN_TIME_SECONDS = 60.0


class Told:
    """A sink that remembers what it was told, in words."""

    def __init__(self) -> None:
        self.words: list[str] = []
        self.status = WatchStatus(heard_at=asyncio.get_running_loop().time())
        self.problems: list[str] = []
        self.stalls: dict[str, float] = {}
        """For how many seconds the process does nothing else when it is told of an object of this name."""
        self._news = asyncio.Event()

    def begin_list(self) -> None:
        self._tell("list")

    def put(self, obj: JsonObject) -> None:
        if "broken" in obj:
            raise MalformedObject("it is broken")
        time.sleep(self.stalls.pop(unstructured.name(obj), 0.0))
        self._tell(f"put {unstructured.name(obj)} {unstructured.resource_version(obj)}")

    def remove(self, obj: JsonObject) -> None:
        self._tell(f"remove {unstructured.name(obj)}")

    def end_list(self, version: str) -> None:
        self._tell(f"listed {version}")

    def progress(self, version: str) -> None:
        self._tell(f"progress {version}")

    def status_changed(self) -> None:
        self.problems.append(self.status.problem)

    def _tell(self, word: str) -> None:
        self.words.append(word)
        self._news.set()

    async def until(self, word: str) -> list[str]:
        """All that was told once `word` was."""
        async with asyncio.timeout(IN_TIME_SECONDS):
            while word not in self.words:
                self._news.clear()
                await self._news.wait()
        return self.words


def event(kind: str, name: str, version: int) -> bytes:
    return json.dumps({"type": kind, "object": obj(name, version=version)}).encode() + b"\n"


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    annotations = {"k8s.io/initial-events-end": "true"} if ends_list else {}
    return (
        json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version), "annotations": annotations}}}).encode()
        + b"\n"
    )


def sends(*lines: bytes, then_waits: bool = False) -> Answer:
    """A watch that says these lines, and ends cleanly or falls silent."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        if then_waits:
            await asyncio.Event().wait()
        return response

    return answer


def cuts(*lines: bytes) -> Answer:
    """A watch whose connection breaks."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        response.headers["Content-Length"] = "1000000"
        await response.prepare(request)
        for line in lines:
            await response.write(line)
        assert request.transport is not None
        request.transport.close()
        return response

    return answer


def refuses(code: int, reason: str) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": "no"}, status=code)

    return answer


SILENT = sends(then_waits=True)
LISTED = (event("ADDED", "a", 1), event("ADDED", "b", 2), bookmark(5, ends_list=True))


@asynccontextmanager
async def reflecting(tmp_path: Path, *answers: Answer, inactivity_seconds: float = 60.0) -> AsyncIterator[tuple[Told, list[str]]]:
    """A reflector of a server that gives these answers in turn, the last one for ever; what it told, and the versions
    that it asked from.
    """
    asked: list[str] = []
    script = list(answers)

    async def serve(request: web.Request) -> web.StreamResponse:
        asked.append(
            "list"
            if "sendInitialEvents" in request.query
            else "pages"
            if "watch" not in request.query
            else request.query["resourceVersion"]
        )
        return await (script.pop(0) if len(script) > 1 else script[0])(request)

    app = web.Application()
    app.router.add_get("/{tail:.*}", serve)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    told = Told()
    try:
        async with (
            KubeClient.connect(_kubeconfig(tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}")) as kube,
            asyncio.TaskGroup() as tasks,
        ):
            settings = WatchSettings(inactivity_seconds=inactivity_seconds)
            reflector = Reflector(kube, Watch(CONFIGMAPS), told, status=told.status, settings=settings)
            running = tasks.create_task(reflector.run())
            yield told, asked
            running.cancel()
    finally:
        await runner.cleanup()


def _kubeconfig(folder: Path, server: str) -> str:
    path = folder / "kubeconfig"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


async def test_a_streamed_list_ends_with_its_bookmark_and_goes_on_as_a_watch(tmp_path: Path):
    watch = sends(*LISTED, event("MODIFIED", "a", 6), event("DELETED", "b", 7), bookmark(9), then_waits=True)

    async with reflecting(tmp_path, watch) as (told, asked):
        words = await told.until("progress 9")

    assert words == ["list", "put a 1", "put b 2", "listed 5", "put a 6", "remove b", "progress 9"]
    assert asked == ["list"]


async def test_a_clean_end_in_a_burst_is_resumed_from_the_last_version_without_a_list(tmp_path: Path):
    bursts = [sends(*LISTED, event("MODIFIED", "a", 6)), sends(event("MODIFIED", "a", 7)), sends(event("MODIFIED", "a", 8)), SILENT]

    async with reflecting(tmp_path, *bursts) as (told, asked):
        words = await told.until("put a 8")

    assert words.count("list") == 1
    assert asked[:3] == ["list", "6", "7"]


async def test_an_expired_version_is_listed_anew(tmp_path: Path):
    gone = (
        json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}).encode() + b"\n"
    )

    async with reflecting(tmp_path, sends(*LISTED, gone), sends(event("ADDED", "a", 1), bookmark(9, ends_list=True), then_waits=True)) as (
        told,
        asked,
    ):
        words = await told.until("listed 9")

    assert words == ["list", "put a 1", "put b 2", "listed 5", "list", "put a 1", "listed 9"]
    assert asked == ["list", "list"]


async def test_a_version_that_expired_before_the_watch_began_is_listed_anew(tmp_path: Path):
    async with reflecting(tmp_path, sends(*LISTED), refuses(410, "Expired"), sends(bookmark(9, ends_list=True), then_waits=True)) as (
        told,
        asked,
    ):
        await told.until("listed 9")

    assert asked == ["list", "5", "list"]


async def test_a_silent_stream_is_dropped_and_resumed(tmp_path: Path):
    answers = [sends(*LISTED, then_waits=True), sends(event("MODIFIED", "a", 6), then_waits=True)]

    async with reflecting(tmp_path, *answers, inactivity_seconds=1.0) as (told, asked):
        await told.until("put a 6")

    assert asked[:2] == ["list", "5"]


async def test_a_quiet_kind_is_neither_a_problem_nor_behind(tmp_path: Path):
    """API servers send no bookmarks of a kind that has not changed since they started."""
    async with reflecting(tmp_path, sends(*LISTED, then_waits=True), SILENT, inactivity_seconds=0.8) as (told, asked):
        with capture_logs() as lines:
            await eventually(lambda: len(asked) >= 4)

        assert [line["event"] for line in lines if line["log_level"] != "debug"] == []
        assert "".join(told.problems) == ""
        assert not told.status.catch_up.is_behind(asyncio.get_running_loop().time())


async def test_a_server_that_accepts_no_watch_any_more_is_a_problem_and_behind(tmp_path: Path):
    async def hangs(_: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with reflecting(tmp_path, sends(*LISTED), hangs, inactivity_seconds=0.4) as (told, _):
        await eventually(lambda: "no answer within 0.4 s" in told.status.problem)

        assert told.status.catch_up.is_behind(asyncio.get_running_loop().time())


def test_stall_of_the_process_in_a_burst_is_no_silence_and_ends_no_watch(tmp_path: Path):
    """The server spoke all the time: it was us who did not listen. In the services' event loop timers come first."""
    burst = b"".join(event("ADDED", f"e{index}", 10 + index) for index in range(300))

    async def stall() -> None:
        async with reflecting(tmp_path, sends(*LISTED, burst, then_waits=True), inactivity_seconds=0.3) as (told, asked):
            # Just before other tasks get their turn, counted from the first event and from the first of the burst.
            told.stalls = {"e10": 0.4, "e60": 0.4, "e63": 0.4, "e127": 0.4}

            await told.until("put e299 309")

            assert asked == ["list"]

    uvloop.run(stall())


async def test_a_connection_cut_in_the_middle_of_a_line_loses_nothing(tmp_path: Path):
    half = event("MODIFIED", "a", 7)[:20]

    async with reflecting(tmp_path, cuts(*LISTED, event("MODIFIED", "a", 6), half), sends(event("MODIFIED", "a", 7), then_waits=True)) as (
        told,
        asked,
    ):
        words = await told.until("put a 7")

    assert words.count("list") == 1
    assert asked == ["list", "6"]


async def test_garbage_is_no_event_and_no_end(tmp_path: Path):
    async with reflecting(tmp_path, sends(*LISTED, b"<html>\n"), sends(event("MODIFIED", "a", 6), then_waits=True)) as (told, asked):
        await told.until("put a 6")

    assert asked == ["list", "5"]


async def test_a_line_that_is_garbled_twice_is_skipped(tmp_path: Path):
    garbled = sends(b'{"type":"MODIFIED","object":{"a\n', event("MODIFIED", "a", 7), then_waits=True)

    async with reflecting(tmp_path, sends(*LISTED, b'{"type":"MODIFIED","object":{"a\n'), garbled) as (told, asked):
        await told.until("put a 7")

    assert asked == ["list", "5"]


async def test_a_line_that_is_garbled_twice_does_not_keep_a_list_from_its_end(tmp_path: Path):
    listed = sends(event("ADDED", "a", 1), b"\xff\xfe\n", bookmark(5, ends_list=True), then_waits=True)

    async with reflecting(tmp_path, listed) as (told, asked):
        words = await told.until("listed 5")

    assert words == ["list", "put a 1", "list", "put a 1", "listed 5"]
    assert asked == ["list", "list"]


async def test_a_server_that_takes_a_streaming_list_for_a_watch_is_asked_for_pages(tmp_path: Path):
    """Servers from before the streaming list ignore what they don't know, and tell what is there without ever saying
    that this is all.
    """

    async with reflecting(tmp_path, sends(event("ADDED", "a", 1), then_waits=True), page("a"), SILENT, inactivity_seconds=0.3) as (
        told,
        asked,
    ):
        await told.until("listed 5")

    assert asked[:2] == ["list", "pages"]


async def test_a_server_that_ends_each_watch_at_once_is_not_asked_in_a_hot_loop(tmp_path: Path):
    async with reflecting(tmp_path, sends(*LISTED), sends(bookmark(5))) as (_, asked):
        await eventually(lambda: len(asked) >= 6)
        began, loop = len(asked), asyncio.get_running_loop()
        since = loop.time()
        await eventually(lambda: len(asked) >= began + 3)

    assert loop.time() - since > 0.5


async def test_a_server_whose_versions_all_expire_at_once_is_not_listed_in_a_hot_loop(tmp_path: Path):
    gone = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}).encode() + b"\n"

    async with reflecting(tmp_path, sends(*LISTED, gone)) as (_, asked):
        await eventually(lambda: len(asked) >= 4)
        began, loop = len(asked), asyncio.get_running_loop()
        since = loop.time()
        await eventually(lambda: len(asked) >= began + 2)

    assert loop.time() - since > 0.5
    assert set(asked) == {"list"}


async def test_a_refusal_is_told_and_forgotten_once_the_list_is_there(tmp_path: Path):
    async with reflecting(tmp_path, refuses(403, "Forbidden"), sends(*LISTED, then_waits=True)) as (told, _):
        await told.until("listed 5")

    assert told.problems[0].startswith("Forbidden: no")
    assert told.problems[-1] == ""


async def test_a_resource_that_is_not_served_yet_is_no_problem_for_a_moment(tmp_path: Path):
    """A CRD is established a moment before its resource is served."""
    async with reflecting(tmp_path, refuses(404, "NotFound"), refuses(404, "NotFound"), sends(*LISTED, then_waits=True)) as (told, _):
        told.status.heard_at += IN_TIME_SECONDS  # however long the two answers take here
        await told.until("listed 5")

    assert told.problems == []


async def test_one_malformed_object_is_nobody_elses_problem(tmp_path: Path):
    broken = json.dumps({"type": "MODIFIED", "object": {"broken": True}}).encode() + b"\n"

    async with reflecting(tmp_path, sends(*LISTED, broken, event("MODIFIED", "a", 6), then_waits=True)) as (told, asked):
        await told.until("put a 6")

    assert asked == ["list"]


async def test_a_list_that_breaks_off_is_begun_anew(tmp_path: Path):
    async with reflecting(tmp_path, cuts(event("ADDED", "a", 1)), sends(*LISTED, then_waits=True)) as (told, _):
        words = await told.until("listed 5")

    assert words == ["list", "put a 1", "list", "put a 1", "put b 2", "listed 5"]


def page(*names: str, continues: str = "", version: str = "5") -> Answer:
    """A page of a list."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"items": [obj(name) for name in names], "metadata": {"continue": continues, "resourceVersion": version}})

    return answer


def says(body: bytes) -> Answer:
    """A success with this body."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.Response(body=body)

    return answer


def is_at(version: str, watch: Answer) -> Answer:
    """A server that has come as far as this, and may be asked for it at the same time as for a watch."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (watch if "watch" in request.query else page("a", version=version))(request)

    return answer


@pytest.mark.parametrize(("code", "reason"), [(422, "Invalid"), (400, "BadRequest"), (405, "MethodNotAllowed"), (406, "NotAcceptable")])
async def test_a_server_without_streaming_lists_is_asked_for_pages(tmp_path: Path, code: int, reason: str):
    async with reflecting(tmp_path, refuses(code, reason), page("a", continues="more"), page("b"), SILENT) as (told, asked):
        words = await told.until("listed 5")
        await eventually(lambda: asked[-1] == "5")

    assert words == ["list", "list", "put a 1", "put b 1", "listed 5"]
    assert asked == ["list", "pages", "pages", "5"]


async def test_a_list_whose_next_page_has_expired_is_asked_for_at_once_as_a_whole(tmp_path: Path):
    pages = [page("a", continues="more"), refuses(410, "Expired"), page("b", "c")]

    async with reflecting(tmp_path, refuses(422, "Invalid"), *pages, SILENT) as (told, asked):
        words = await told.until("listed 5")
        await eventually(lambda: asked[-1] == "5")

    assert words == ["list", "list", "put a 1", "list", "put b 1", "put c 1", "listed 5"]
    assert asked == ["list", "pages", "pages", "pages", "5"]


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b"[]",
        b"null",
        b"<html>",
        b'{"items":{},"metadata":{}}',
        b'{"items":7}',
        b'{"kind":"Status","status":"Failure","metadata":{}}',
    ],
)
async def test_what_is_no_list_is_no_list_of_nothing(tmp_path: Path, body: bytes):
    """Else all that was known would be gone."""
    async with reflecting(tmp_path, refuses(422, "Invalid"), says(body), page("a"), SILENT) as (told, _):
        words = await told.until("listed 5")

    assert words == ["list", "list", "list", "put a 1", "listed 5"]


async def test_a_list_of_null_is_one_of_nothing(tmp_path: Path):
    listed = says(b'{"items":null,"metadata":{"resourceVersion":"5"}}')

    async with reflecting(tmp_path, refuses(422, "Invalid"), listed, SILENT) as (told, _):
        assert await told.until("listed 5") == ["list", "list", "listed 5"]


async def test_what_is_no_object_in_a_list_is_nobody_elses_problem(tmp_path: Path):
    items = b'[7,null,"x",{"broken":1},%s,{"metadata":{"name":"\xff","resourceVersion":"2"}}]' % json.dumps(obj("a")).encode()
    listed = says(b'{"items":%s,"metadata":{"resourceVersion":"5"}}' % items)

    async with reflecting(tmp_path, refuses(422, "Invalid"), listed, SILENT) as (told, _):
        assert await told.until("listed 5") == ["list", "list", "put a 1", "put \ufffd 2", "listed 5"]


AWAY = refuses(503, "down")


async def test_a_server_that_was_restored_from_a_backup_is_listed_anew(tmp_path: Path):
    """It takes a watch from a version that it has not come to yet, and says nothing of what happens until then."""
    restored = is_at("3", SILENT)
    relisted = sends(event("ADDED", "c", 3), bookmark(3, ends_list=True), then_waits=True)

    async with reflecting(tmp_path, sends(*LISTED), AWAY, restored, restored, relisted) as (told, asked):
        words = await told.until("listed 3")

    assert words[-3:] == ["list", "put c 3", "listed 3"]
    assert sorted(asked[2:]) == ["5", "list", "pages"]


async def test_a_server_that_was_away_and_knows_its_history_is_not_listed_anew(tmp_path: Path):
    back = is_at("6", sends(event("MODIFIED", "a", 6), then_waits=True))

    async with reflecting(tmp_path, sends(*LISTED), AWAY, back) as (told, asked):
        await told.until("put a 6")
        await eventually(lambda: "pages" in asked)

    assert asked.count("list") == 1


async def test_a_resource_that_is_not_served_is_asked_for_again_when_told_to(tmp_path: Path):
    async with reflecting(tmp_path, refuses(404, "NotFound"), sends(*LISTED, then_waits=True)) as (told, _):
        words = await told.until("listed 5")

    assert words[0] == "list"
