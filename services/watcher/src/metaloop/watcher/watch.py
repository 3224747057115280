"""Reflector: lists then watches one resource, and yields typed events without gaps.

list        the streaming list where the server offers it (the objects, then a bookmark that says so), else pages
watch       from the version of the list; bookmarks move it on, so that a resumption has little to catch up
clean end   the server ends watches now and then, also in the middle of a burst: resume at once from the last version, no list
expired     the version is from too long ago: list again; the cache tells the difference as deletions and changes
broken      back off, with jitter, and resume from the last version; where the server was away or silent, ask as well how far it has come: one
            that was restored from a backup counts on from an earlier version, and says nothing until it has come as far again
silent      nothing for `inactivity_seconds`, not even a bookmark (which come each minute): as broken
unreadable  a line that makes no sense is asked for once more, from the last version; where it comes again, it is skipped

How long it waits before each resumption is decided in `core/resume.py`.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from metaloop.common.errors import MetaloopError, Unavailable
from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import Expired, Forbidden, NotFound, Refused, Unreadable
from metaloop.common.kube.stream import WatchEvent, watch_event
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger, metrics
from metaloop.common.waiting import is_set_within
from metaloop.watcher.core.catchup import CatchUp
from metaloop.watcher.core.record import version_number
from metaloop.watcher.core.watch_backoff import Ending, WatchBackoff
from metaloop.watcher.errors import MalformedObject

log = get_logger()

_PAGE = "500"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_LISTING_SILENCE_SECONDS = 10.0
"""A streaming list that says nothing for so long comes from a server that doesn't know of them, and began a plain watch: then pages."""
_LASTING_SECONDS = 10.0
"""A watch that lasted so long was worth it, though nothing may have happened."""
_LIMIT_LEFT = 0.9
_BREATH = 64
"""After so many events, others get their turn, though more may be at hand: a burst must not keep claims waiting."""
_OWN_PACE = 2
"""So often in a row we come back sooner than the server wants us: it says a second where it needs a tenth to set up a new resource."""
_NOT_YET_SERVED = 3
"""So often in a row may a resource not be found before nothing more is expected of it."""
_EVERYDAY_SECONDS = 1.0
"""So long may nothing be heard of a resource before that is told. An edited CRD ends its watches and turns everybody away for two tenths of a
second; and a resource is listed by discovery, or its CRD established, a moment before it is served."""
_MOST_UNREADABLE = 64
_LONGEST_RETRY_AFTER_SECONDS = 60.0
_CHECK_AGAIN_SECONDS = 5.0

_endings_total = metrics.counter("metaloop_watch_endings", "Watches that ended, by how.", ("resource", "ending"))
_lists_total = metrics.counter("metaloop_watch_lists", "Whole lists of a resource.", ("resource",))
_skipped_total = metrics.counter("metaloop_watch_skipped", "Lines and objects that make no sense, and were skipped.", ("resource",))


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
    """How long a watch may be silent, how long the server is asked to keep it, and what of managedFields is kept."""

    inactivity_seconds: float = 70.0
    shortest_watch_seconds: int = 300
    """The server ends each watch after this time or up to twice as long, so that reconnections spread."""
    field_manager: str = "metacontroller"
    """Who applies children server-side."""


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
        self._backoff = WatchBackoff()
        self._watches_since: float | None = None
        """When this watch began to be one, the list being over; None before that."""
        self._told_news = False
        """Whether this watch moved on from the version it began at."""
        self._opened = asyncio.Event()
        """Set when the server has agreed to the watch that was asked for last."""
        self._is_doubtful = False
        """Whether the server may have begun anew, from an earlier version than the one to resume at."""
        self._unreadable: set[int] = set()
        """The hashes of lines that were garbled once."""
        self._wakened = asyncio.Event()
        self.heard_at = asyncio.get_running_loop().time()
        """When the server last said anything."""
        self.catch_up = CatchUp()
        """Whether it may have missed something that happened."""
        self._has_listed = False
        """Whether a whole list was told; before that, nothing can be missed."""
        self.problem = ""
        """What keeps it from watching now, for people; empty while all is well."""
        self.is_refused = False
        """Whether `problem` is that the resource isn't there, or that we may not watch it."""
        self.on_problem: Callable[[], None] = _nobody_listens
        """Called whenever `problem` changed."""

    def wake(self) -> None:
        """Try again at once, if it is waiting to: there is reason to think that the resource is served now."""
        self._backoff.reset()
        self._wakened.set()

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            self._watches_since, self._told_news = None, False
            try:
                await self._list_and_watch()
            except (MetaloopError, OSError, TimeoutError) as error:
                await self._go_on(_ending_of(error), error)
            else:
                await self._go_on(Ending.CLEAN, None)

    async def _list_and_watch(self) -> None:
        if not self._version and self._streams_lists:
            await self._stream_list_and_watch()
            return
        if not self._version:
            await self._list_pages()
        if self._version:
            self._watches_since = asyncio.get_running_loop().time()
            await self._resume()

    # -- list ------------------------------------------------------------------------------------------------------------------------

    async def _stream_list_and_watch(self) -> None:
        self._sink.begin_list()
        try:
            await self._watch({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": ""})
        except (Refused, TimeoutError) as error:
            if self._version or isinstance(error, (Forbidden, NotFound)):
                raise
            self._streams_lists = False

    async def _list_pages(self) -> None:
        self._sink.begin_list()
        params = {"limit": _PAGE}
        while True:
            try:
                page = await self._kube.list_page(self._resource, params=params)
            except Expired:
                if "continue" not in params:
                    raise
                self._sink.begin_list()
                params = {}  # who can't keep a list for as long as we read it is asked for all of it at once
                continue
            self.heard_at = asyncio.get_running_loop().time()
            for item in _items(page):
                if is_object(item):
                    self._put(item)
                else:
                    self._report_skipped(MalformedObject("an item of a list that is no object"))
            meta = unstructured.metadata(page)
            if not (token := unstructured.text(meta, "continue")):
                break
            params = {"limit": _PAGE, "continue": token}
        self._end_list(unstructured.text(meta, "resourceVersion"))

    def _end_list(self, version: str) -> None:
        self._version, self._is_doubtful = version, False
        self._watches_since = asyncio.get_running_loop().time()
        self.catch_up.flows(self._watches_since)
        self._has_listed = True
        _lists_total.labels(str(self._resource.id)).inc()
        self._sink.end_list(version)
        self._tell("")
        log.debug("watch.listed", **{fields.RESOURCE: str(self._resource.id)})

    # -- watch -----------------------------------------------------------------------------------------------------------------------

    async def _resume(self) -> None:
        """Watch from the last version. Raises Expired where the server turns out to be before that."""
        watch = self._watch({"resourceVersion": self._version})
        if not self._is_doubtful:
            await watch
            return
        self._opened.clear()
        try:
            async with asyncio.TaskGroup() as tasks:
                checking = tasks.create_task(self._check(self._version), name=f"check {self._resource.id}")
                await watch
                checking.cancel()
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None

    async def _check(self, version: str) -> None:
        """Return where the server has come as far as this version; it is asked once it is there again."""
        await self._opened.wait()
        while self._is_doubtful:
            try:
                page = await self._kube.list_page(self._resource, params={"limit": "1"})
            except MetaloopError:
                await asyncio.sleep(_CHECK_AGAIN_SECONDS)
                continue
            reached = unstructured.resource_version(page)
            if 0 < version_number(reached) < version_number(version):
                raise Expired(f"the server is at version {reached}, before {version}: it was restored")
            self._is_doubtful = False

    async def _watch(self, start: dict[str, str]) -> None:
        """Tell what happens until the server ends the watch."""
        told = 0
        async with aclosing(self._lines(start)) as lines:
            async for line in lines:
                self._take(line)
                told += 1
                if told % _BREATH == 0:
                    await asyncio.sleep(0)
        if not self._version:
            raise Unavailable("the watch ended in the middle of the list")

    def _take(self, line: bytes) -> None:
        event = self._read(line)
        if event is None:
            return
        match event.type:
            case "ADDED" | "MODIFIED":
                self._put(event.object)
            case "DELETED":
                self._remove(event.object)
            case "BOOKMARK":
                pass
        self._advance(event)

    async def _lines(self, start: dict[str, str]) -> AsyncGenerator[bytes, None]:
        """The lines of a watch; TimeoutError after too long a silence."""
        seconds = self._settings.shortest_watch_seconds
        params = {**start, "allowWatchBookmarks": "true", "timeoutSeconds": str(random.randint(seconds, 2 * seconds))}  # noqa: S311 - spreads load
        loop = asyncio.get_running_loop()
        patience = self._settings.inactivity_seconds
        while_listing = min(patience, _LISTING_SILENCE_SECONDS)
        async with (
            aclosing(self._kube.watch_lines(self._resource.collection_path(), params, on_open=self._open)) as lines,
            asyncio.timeout(patience if self._version else while_listing) as limit,
        ):
            async for line in lines:
                yield line
                self.heard_at = now = loop.time()
                allowed = patience if self._version else while_listing
                # Moving the limit for every line would cost more than reading most of them: only when a tenth of it is gone.
                if (limit.when() or 0.0) - now < _LIMIT_LEFT * allowed:
                    limit.reschedule(now + allowed)

    def _open(self) -> None:
        """The server agreed to the watch: what we missed comes now, unless a whole list comes first."""
        self._opened.set()
        self.heard_at = asyncio.get_running_loop().time()
        if self._version:
            self.catch_up.flows(self.heard_at)

    def _read(self, line: bytes) -> WatchEvent | None:
        """The event of a line; None for one that is skipped, since it was garbled twice. Raises Unreadable for one that is garbled at first."""
        try:
            return watch_event(line)
        except Unreadable as problem:
            fingerprint = hash(line)
            if fingerprint not in self._unreadable:
                if len(self._unreadable) >= _MOST_UNREADABLE:
                    self._unreadable.clear()
                self._unreadable.add(fingerprint)
                raise
            self._report_skipped(problem)
            return None

    def _advance(self, event: WatchEvent) -> None:
        """An event of a watch says how far it has come; in a list only the end does."""
        is_bookmark = event.type == "BOOKMARK"
        version = unstructured.resource_version(event.object)
        if not self._version:
            if is_bookmark and _INITIAL_EVENTS_END in unstructured.annotations(event.object):
                self._end_list(version)
        elif version and version != self._version:
            self._version = version
            self._told_news = True
            self._tell("")
            if is_bookmark:
                self._sink.progress(version)

    def _put(self, obj: JsonObject) -> None:
        try:
            self._sink.put(obj)
        except MalformedObject as problem:
            self._report_skipped(problem, obj)

    def _remove(self, obj: JsonObject) -> None:
        try:
            self._sink.remove(obj)
        except MalformedObject as problem:
            self._report_skipped(problem, obj)

    def _report_skipped(self, problem: MetaloopError, obj: JsonObject | None = None) -> None:
        """What makes no sense is nobody else's problem."""
        resource = str(self._resource.id)
        _skipped_total.labels(resource).inc()
        name = unstructured.name(obj) if obj else ""
        log.error("watch.skipped", **{fields.RESOURCE: resource, fields.NAME: name, fields.ERROR: str(problem)})

    # -- going on --------------------------------------------------------------------------------------------------------------------

    async def _go_on(self, ending: Ending, error: Exception | None) -> None:
        """Say what is to be said of a watch that ended, and wait as long as is due before the next."""
        began = self._watches_since
        lasted = began is not None and asyncio.get_running_loop().time() - began >= _LASTING_SECONDS
        seconds = self._backoff.after(ending, made_progress=self._told_news or lasted) * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load
        if isinstance(error, Unavailable) and error.retry_after_seconds is not None and self._backoff.fruitless_ends > _OWN_PACE:
            seconds = max(seconds, min(error.retry_after_seconds, _LONGEST_RETRY_AFTER_SECONDS))
        _endings_total.labels(str(self._resource.id), ending.value).inc()
        if ending in (Ending.EXPIRED, Ending.REFUSED):
            self._version = ""
        self._is_doubtful |= ending is Ending.BROKEN and (self._backoff.fruitless_ends > 1 or isinstance(error, TimeoutError))
        if ending is not Ending.CLEAN and self._has_listed:
            self.catch_up.broke()
        if ending is Ending.REFUSED and self._backoff.fruitless_ends > _NOT_YET_SERVED:
            self.catch_up.give_up()
        if error is not None:
            self._report_ending(ending, error, seconds)
        await self._wait(seconds)

    def _report_ending(self, ending: Ending, error: Exception, seconds: float) -> None:
        reason = str(error) or f"silent for {self._settings.inactivity_seconds:g} s"
        say = log.info if ending is Ending.EXPIRED else log.warning
        keys = {fields.RESOURCE: str(self._resource.id), fields.ERROR: reason, fields.SECONDS: round(seconds, 3)}
        say("watch.ended", ending=ending.value, **keys)
        unheard_seconds = asyncio.get_running_loop().time() - self.heard_at
        # One broken stream is everyday life, too, though it may have been silent for long.
        if (self._backoff.fruitless_ends > 1 and unheard_seconds >= _EVERYDAY_SECONDS) or isinstance(error, Forbidden):
            self._tell(reason, is_refused=ending is Ending.REFUSED)

    async def _wait(self, seconds: float) -> None:
        self._wakened.clear()
        if seconds > 0:
            await is_set_within(self._wakened, seconds)

    def _tell(self, problem: str, *, is_refused: bool = False) -> None:
        if problem != self.problem:
            self.problem, self.is_refused = problem, is_refused
            self.on_problem()


def _ending_of(error: Exception) -> Ending:
    match error:
        case Expired():
            return Ending.EXPIRED
        case Refused():
            return Ending.REFUSED
        case Unreadable():
            return Ending.UNREADABLE
        case _:
            return Ending.BROKEN


def _items(page: JsonObject) -> list[JsonValue]:
    """The items of a list, which is written as null where there are none. Raises Unreadable for what is no list: everything would be gone then."""
    items = page.get("items")
    if is_array(items):
        return items
    if items is None and "items" in page:
        return []
    raise Unreadable(f"what came is no list: {', '.join(list(page)[:10])}")


def _nobody_listens() -> None:
    """The listener of a reflector that nobody watches over."""
