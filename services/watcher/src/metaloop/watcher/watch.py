"""Reflector: lists then watches one resource, and yields typed events without gaps.

list      the streaming list where the server offers it (the objects, then a bookmark that says so), else pages
watch     from the version of the list; bookmarks move it on, so that a resumption has little to catch up
clean end the server ends watches now and then, also in the middle of a burst: resume at once from the last version, no list
expired   the version is from too long ago: list again; the cache tells the difference as deletions and changes
broken    back off, with jitter, and resume from the last version
silent    nothing for `inactivity_seconds`, not even a bookmark (which come each minute): as broken
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from metaloop.common.errors import MetaloopError, Unavailable
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import Expired, Invalid, Refused
from metaloop.common.kube.stream import watch_event
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger

log = get_logger()

_PAGE = "500"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_FIRST_BACKOFF_SECONDS = 0.1
_LONGEST_BACKOFF_SECONDS = 30.0
_FRUITLESS_ENDS = 3
"""So many clean ends in a row without any event are no longer resumed at once."""


class Sink(Protocol):
    """What takes the events of one resource; called in order, never awaited."""

    def begin_list(self) -> None:
        """A list of everything begins."""

    def put(self, obj: JsonObject) -> None:
        """The object was added, or changed, or was there already."""

    def remove(self, obj: JsonObject) -> None:
        """The object was deleted; this is its last state."""

    def end_list(self, version: str) -> None:
        """The list was whole: what it didn't show is gone."""

    def progress(self, version: str) -> None:
        """Nothing happened up to this version but what was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How long a watch may be silent, and how long the server is asked to keep it."""

    inactivity_seconds: float = 70.0
    shortest_watch_seconds: int = 300
    """The server ends each watch after this time or up to twice as long, so that reconnections spread."""


class Reflector:
    """One resource of one API server, told to a sink for as long as `run` runs."""

    def __init__(self, kube: KubeClient, resource: ResourceInfo, sink: Sink, *, settings: WatchSettings) -> None:
        self._kube = kube
        self._resource = resource
        self._sink = sink
        self._settings = settings
        self._version = ""
        """Where to resume; empty: list first."""
        self._streams_lists = True
        self._failures = 0
        self._fruitless_ends = 0
        self._wakened = asyncio.Event()
        self.problem = ""
        """What keeps it from watching now, for people; empty while all is well."""
        self.on_problem: Callable[[], None] = _nobody_listens
        """Called whenever `problem` changed."""

    def wake(self) -> None:
        """Try again at once, if it is waiting to: there is reason to think that the resource is served now."""
        self._failures = 0
        self._wakened.set()

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            try:
                await self._list_and_watch()
            except Expired:
                log.info("watch.expired", **{fields.RESOURCE: str(self._resource.id)})
                self._version = ""
            except (MetaloopError, OSError, TimeoutError) as error:
                await self._back_off(error)

    async def _list_and_watch(self) -> None:
        if self._version:
            await self._watch({"resourceVersion": self._version})
        elif self._streams_lists:
            await self._stream_list_and_watch()
        else:
            await self._list_pages()

    async def _stream_list_and_watch(self) -> None:
        try:
            self._sink.begin_list()
            await self._watch({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": ""})
        except Invalid:
            self._streams_lists = False

    async def _list_pages(self) -> None:
        self._sink.begin_list()
        params = {"limit": _PAGE}
        while True:
            page = await self._kube.list_page(self._resource, params=params)
            for item in _items(page):
                self._put(item)
            meta = unstructured.metadata(page)
            if not (token := unstructured.text(meta, "continue")):
                break
            params = {"limit": _PAGE, "continue": token}
        self._version = unstructured.text(meta, "resourceVersion")
        self._end_list()

    async def _watch(self, start: dict[str, str]) -> None:
        """Tell what happens until the server ends the watch."""
        listing = "sendInitialEvents" in start
        told = False
        async with aclosing(self._lines(start)) as lines:
            async for line in lines:
                told = True
                event = watch_event(line)
                match event.type:
                    case "ADDED" | "MODIFIED":
                        self._put(event.object)
                    case "DELETED":
                        self._remove(event.object)
                    case "BOOKMARK":
                        pass
                if not listing:
                    self._advance(event.object, is_bookmark=event.type == "BOOKMARK")
                elif event.type == "BOOKMARK" and _INITIAL_EVENTS_END in unstructured.annotations(event.object):
                    listing = False
                    self._version = unstructured.resource_version(event.object)
                    self._end_list()
        if listing:
            raise Unavailable("the watch ended in the middle of the list")
        await self._after_clean_end(told=told)

    async def _lines(self, start: dict[str, str]) -> AsyncGenerator[bytes, None]:
        """The lines of a watch; TimeoutError after too long a silence."""
        seconds = self._settings.shortest_watch_seconds
        params = {**start, "allowWatchBookmarks": "true", "timeoutSeconds": str(random.randint(seconds, 2 * seconds))}  # noqa: S311 - spreads load
        loop, patience = asyncio.get_running_loop(), self._settings.inactivity_seconds
        async with (
            aclosing(self._kube.watch_lines(self._resource.collection_path(), params)) as lines,
            asyncio.timeout(patience) as limit,
        ):
            async for line in lines:
                self._recovered()
                # Moving the limit for every line would cost more than reading most of them.
                if (limit.when() or 0.0) - loop.time() < patience - 1.0:
                    limit.reschedule(loop.time() + patience)
                yield line

    def _put(self, obj: JsonObject) -> None:
        try:
            self._sink.put(obj)
        except (ValueError, TypeError, KeyError) as error:
            self._report_malformed(obj, error)

    def _remove(self, obj: JsonObject) -> None:
        try:
            self._sink.remove(obj)
        except (ValueError, TypeError, KeyError) as error:
            self._report_malformed(obj, error)

    def _report_malformed(self, obj: JsonObject, error: Exception) -> None:
        """One object that makes no sense is nobody else's problem."""
        log.error(
            "watch.malformed_object",
            **{fields.RESOURCE: str(self._resource.id), fields.NAME: unstructured.name(obj), fields.ERROR: repr(error)},
        )

    def _advance(self, obj: JsonObject, *, is_bookmark: bool) -> None:
        version = unstructured.resource_version(obj)
        if version:
            self._version = version
            if is_bookmark:
                self._sink.progress(version)

    def _end_list(self) -> None:
        self._recovered()
        self._sink.end_list(self._version)
        log.debug("watch.listed", **{fields.RESOURCE: str(self._resource.id)})

    async def _after_clean_end(self, *, told: bool) -> None:
        """A server that ends watches as soon as they begin must not be asked in a hot loop."""
        self._fruitless_ends = 0 if told else self._fruitless_ends + 1
        if self._fruitless_ends >= _FRUITLESS_ENDS:
            await asyncio.sleep(_jittered(_FIRST_BACKOFF_SECONDS))

    def _recovered(self) -> None:
        self._failures = 0
        if self.problem:
            self._tell("")

    def _tell(self, problem: str) -> None:
        self.problem = problem
        self.on_problem()

    async def _back_off(self, error: Exception) -> None:
        reason = str(error) or f"silent for {self._settings.inactivity_seconds:g} s"
        seconds = _jittered(min(_FIRST_BACKOFF_SECONDS * 2**self._failures, _LONGEST_BACKOFF_SECONDS))
        self._failures = min(self._failures + 1, 16)
        log.warning("watch.failed", **{fields.RESOURCE: str(self._resource.id), fields.ERROR: reason, fields.SECONDS: round(seconds, 3)})
        # One broken stream is everyday life; a refusal, or a second failure on end, is something to know of.
        if isinstance(error, Refused) or self._failures > 1:
            self._tell(reason)
        if isinstance(error, Refused):
            self._version = ""
        self._wakened.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wakened.wait()
        except TimeoutError:
            return


def _items(page: JsonObject) -> list[JsonObject]:
    items = page.get("items")
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _jittered(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load


def _nobody_listens() -> None:
    """The listener of a reflector that nobody watches over."""
