"""The reflector: lists, then watches one resource within a scope, and passes on every change without gaps.

list        the streaming list where the server offers it (the objects, then a bookmark that ends them), else pages
watch       from the version of the list; bookmarks advance it, so that a resumption has little to catch up
clean end   the server ends watches now and then, also within a burst: resume at once from the last version, no list
expired     the version is too old: list again; the cache derives deletions and changes from the difference
broken      back off, with jitter, and resume from the last version. Where the server was away or silent, also ask how
            far it has come: one that was restored from a backup continues from an earlier version, and says nothing
            until it has come as far again
silent      nothing for `inactivity_seconds`: resume from the last version. That is no fault. An API server sends a
            bookmark a minute, but none for a kind that has not changed since the server started
unreadable  a garbled line is requested once more, from the last version; if it comes again, it is skipped

`core/watch_backoff.py` decides how long to wait before each resumption.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Protocol

from metaloop.common.errors import MetaloopError, Unavailable
from metaloop.common.json import JsonObject, JsonValue, is_array, is_object
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import Expired, Forbidden, NotFound, Refused, Unreadable
from metaloop.common.kube.stream import WatchEvent, watch_event
from metaloop.common.machine import randomness
from metaloop.common.objects import unstructured
from metaloop.common.telemetry import fields, get_logger, metrics
from metaloop.common.waiting import is_set_within
from metaloop.watcher.core.record import version_number
from metaloop.watcher.core.watch import Watch, WatchId, WatchStatus
from metaloop.watcher.core.watch_backoff import Ending, WatchBackoff
from metaloop.watcher.errors import MalformedObject

log = get_logger()

_PAGE = "500"
_INITIAL_EVENTS_END = "k8s.io/initial-events-end"
_LISTING_SILENCE_SECONDS = 10.0
"""After so much silence, the server does not know streaming lists and began a plain watch: pages are listed then."""
_LASTING_SECONDS = 10.0
"""A watch that lasted so long counts as progress, even if nothing happened."""
_LIMIT_LEFT = 0.9
_EVENTS_PER_TURN = 64
"""After so many events other tasks get their turn, so that a burst does not keep claims waiting."""
_EARLY_RETRIES = 2
"""How often in a row Retry-After is ignored: a server asks for a second where a new resource needs a tenth."""
_NOT_YET_SERVED = 3
"""How often in a row a resource may not be found before no more events of it are expected."""
_BRIEF_SECONDS = 1.0
"""How long nothing may be heard of a resource before that is a problem. An edited CRD ends its watches and refuses
everybody for two tenths of a second; and discovery lists a resource, or its CRD is established, a moment before it is
served."""
_MAX_UNREADABLE = 64
_LONGEST_RETRY_AFTER_SECONDS = 60.0
_CHECK_AGAIN_SECONDS = 5.0

_endings_total = metrics.counter("metaloop_watch_endings", "Watches that ended, by how.", ("resource", "ending"))
_lists_total = metrics.counter("metaloop_watch_lists", "Whole lists of a resource.", ("resource",))
_skipped_total = metrics.counter("metaloop_watch_skipped", "Malformed lines and objects that were skipped.", ("resource",))


def forget_metrics(watch: WatchId) -> None:
    """Stop exporting the metrics of a watch that is over."""
    for metric in (_endings_total, _lists_total, _skipped_total):
        metric.remove_by_labels({"resource": str(watch)})


class Sink(Protocol):
    """Takes the events of one watch, in order."""

    def begin_list(self) -> None:
        """A list begins."""

    def put(self, obj: JsonObject) -> None:
        """An object was added or changed, or was listed. Raises MalformedObject."""

    def remove(self, obj: JsonObject) -> None:
        """An object was deleted; `obj` is its last state. Raises MalformedObject."""

    def end_list(self, version: str) -> None:
        """The list was complete: what it did not show is gone."""

    def progress(self, version: str) -> None:
        """Nothing happened up to this version but what was passed on."""

    def status_changed(self) -> None:
        """The problem in the watch's status came, changed or went."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """How long a watch may be silent, how long the server is asked to keep it, and what of managedFields is kept."""

    inactivity_seconds: float = 70.0
    shortest_watch_seconds: int = 300
    """The server ends each watch after this time or up to twice as long, so that reconnections spread."""
    field_manager: str = "metacontroller"
    """The field manager that applies children server-side."""


class Reflector:
    """One watch: while `run` runs, its events go to a sink, and its status is kept."""

    def __init__(self, kube: KubeClient, watch: Watch, sink: Sink, *, status: WatchStatus, settings: WatchSettings) -> None:
        self._kube = kube
        self._watch = watch
        self._sink = sink
        self._status = status
        self._settings = settings
        self._params = {"labelSelector": watch.scope.labels} if watch.scope.labels else {}
        """What every request for the scope is made with."""
        self._version = ""
        """Where to resume; empty: list first."""
        self._streams_lists = True
        self._backoff = WatchBackoff()
        self._watches_since: float | None = None
        """When the list was over and this watch began; None before that."""
        self._has_advanced = False
        """Whether this watch has advanced from the version it began at."""
        self._opened = asyncio.Event()
        """Set when the server has accepted the watch that was requested last."""
        self._is_doubtful = False
        """Whether the server may have been restored to an earlier version than the one to resume at."""
        self._unreadable: set[int] = set()
        """The hashes of lines that were garbled once."""
        self._awakened = asyncio.Event()
        self._has_listed = False
        """Whether a list was complete. Before that, nothing can be missed."""

    def wake(self) -> None:
        """Try again now if it waits before its next try: the resource may be served now."""
        self._backoff.reset()
        self._awakened.set()

    async def run(self) -> None:
        """Watch until cancelled."""
        while True:
            self._watches_since, self._has_advanced = None, False
            try:
                await self._list_and_watch()
            except (MetaloopError, OSError, TimeoutError) as error:
                await self._go_on(self._ending_of(error), error)
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

    # -- list ----------------------------------------------------------------------------------------------------------

    async def _stream_list_and_watch(self) -> None:
        self._sink.begin_list()
        try:
            await self._stream({"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan", "resourceVersion": ""})
        except (Refused, TimeoutError) as error:
            if self._version or isinstance(error, (Forbidden, NotFound)):
                raise
            self._streams_lists = False

    async def _list_pages(self) -> None:
        self._sink.begin_list()
        params = {"limit": _PAGE}
        while True:
            try:
                page = await self._kube.list_page(self._watch.resource, self._watch.scope.namespace, {**self._params, **params})
            except Expired:
                if "continue" not in params:
                    raise
                self._sink.begin_list()
                params = {}  # a server that cannot keep the list long enough is asked for all of it at once
                continue
            self._status.heard_at = asyncio.get_running_loop().time()
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
        self._status.catch_up.flows(self._watches_since)
        self._has_listed = True
        _lists_total.labels(str(self._watch.id)).inc()
        self._sink.end_list(version)
        self._set_problem("")
        log.debug("watch.listed", **{fields.RESOURCE: str(self._watch.id)})

    # -- watch ---------------------------------------------------------------------------------------------------------

    async def _resume(self) -> None:
        """Watch from the last version. Raises Expired where the server turns out to be before that."""
        watch = self._stream({"resourceVersion": self._version})
        if not self._is_doubtful:
            await watch
            return
        try:
            async with asyncio.TaskGroup() as tasks:
                checking = tasks.create_task(self._check(self._version), name=f"check {self._watch.id}")
                await watch
                checking.cancel()
        except ExceptionGroup as problems:
            raise problems.exceptions[0] from None

    async def _check(self, version: str) -> None:
        """Return once the server has come as far as `version`. Raises Expired if it was restored to an earlier one."""
        await self._opened.wait()
        while self._is_doubtful:
            try:
                page = await self._kube.list_page(self._watch.resource, self._watch.scope.namespace, {**self._params, "limit": "1"})
            except MetaloopError:
                await asyncio.sleep(_CHECK_AGAIN_SECONDS)
                continue
            reached = unstructured.resource_version(page)
            if 0 < version_number(reached) < version_number(version):
                raise Expired(f"the server is at version {reached}, before {version}: it was restored")
            self._is_doubtful = False
            self._set_problem("")  # a kind that nobody changes says nothing by which this would be noticed otherwise

    async def _stream(self, start: dict[str, str]) -> None:
        """Pass on events until the server ends the watch. Raises TimeoutError after too long a silence."""
        self._opened.clear()
        async with asyncio.timeout(self._allowed_silence) as limit, aclosing(self._open(start)) as stream:
            async for lines in stream:
                for passed_on, line in enumerate(lines, start=1):
                    self._take(line)
                    if passed_on % _EVENTS_PER_TURN == 0:
                        self._hear(limit)
                        await asyncio.sleep(0)
                self._hear(limit)
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

    def _open(self, start: dict[str, str]) -> AsyncGenerator[list[bytes], None]:
        """Request a watch."""
        seconds = self._settings.shortest_watch_seconds
        params = {**self._params, **start, "allowWatchBookmarks": "true", "timeoutSeconds": str(randomness().randint(seconds, 2 * seconds))}
        return self._kube.watch_lines(self._watch.resource.collection_path(self._watch.scope.namespace), params, on_open=self._take_opening)

    def _hear(self, limit: asyncio.Timeout) -> None:
        """Count silence from now on. Called before each await, so that a stall of our own does not count as silence."""
        self._status.heard_at = now = asyncio.get_running_loop().time()
        allowed = self._allowed_silence
        # To move the limit each time would cost more than to read a line: it is moved once a tenth has passed.
        if (limit.when() or 0.0) - now < _LIMIT_LEFT * allowed:
            limit.reschedule(now + allowed)

    @property
    def _allowed_silence(self) -> float:
        """In seconds."""
        allowed = self._settings.inactivity_seconds
        return allowed if self._version else min(allowed, _LISTING_SILENCE_SECONDS)

    def _take_opening(self) -> None:
        """The server accepted the watch. What was missed arrives now, unless a list comes first."""
        self._opened.set()
        self._status.heard_at = asyncio.get_running_loop().time()
        if self._version:
            self._status.catch_up.flows(self._status.heard_at)

    def _read(self, line: bytes) -> WatchEvent | None:
        """The event of a line; None for one that was garbled twice and is skipped. Raises Unreadable the first time."""
        try:
            return watch_event(line)
        except Unreadable as problem:
            fingerprint = hash(line)
            if fingerprint not in self._unreadable:
                if len(self._unreadable) >= _MAX_UNREADABLE:
                    self._unreadable.clear()
                self._unreadable.add(fingerprint)
                raise
            self._report_skipped(problem)
            return None

    def _advance(self, event: WatchEvent) -> None:
        """Record how far the watch has come. In a list only its end says so."""
        is_bookmark = event.type == "BOOKMARK"
        version = unstructured.resource_version(event.object)
        if not self._version:
            if is_bookmark and _INITIAL_EVENTS_END in unstructured.annotations(event.object):
                self._end_list(version)
        elif version and version != self._version:
            self._version = version
            self._has_advanced = True
            self._set_problem("")
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
        """Count and log what is skipped because it makes no sense."""
        resource = str(self._watch.id)
        _skipped_total.labels(resource).inc()
        name = unstructured.name(obj) if obj else ""
        log.error("watch.skipped", **{fields.RESOURCE: resource, fields.NAME: name, fields.ERROR: str(problem)})

    # -- going on ------------------------------------------------------------------------------------------------------

    async def _go_on(self, ending: Ending, error: Exception | None) -> None:
        """Record how a watch ended, and wait as long as is due before the next."""
        began = self._watches_since
        lasted = began is not None and asyncio.get_running_loop().time() - began >= _LASTING_SECONDS
        seconds = self._backoff.after(ending, made_progress=self._has_advanced or lasted) * randomness().uniform(0.5, 1.0)
        if isinstance(error, Unavailable) and error.retry_after_seconds is not None and self._backoff.fruitless_ends > _EARLY_RETRIES:
            seconds = max(seconds, min(error.retry_after_seconds, _LONGEST_RETRY_AFTER_SECONDS))
        _endings_total.labels(str(self._watch.id), ending.value).inc()
        if ending in (Ending.EXPIRED, Ending.REFUSED):
            self._version = ""
        self._is_doubtful |= ending is Ending.SILENT or (ending is Ending.BROKEN and self._backoff.fruitless_ends > 1)
        if ending not in (Ending.CLEAN, Ending.SILENT) and self._has_listed:
            self._status.catch_up.broke(asyncio.get_running_loop().time())
        if ending is Ending.REFUSED and self._backoff.fruitless_ends > _NOT_YET_SERVED:
            self._status.catch_up.give_up()
        if ending is Ending.SILENT:
            log.debug("watch.silent", **{fields.RESOURCE: str(self._watch.id), fields.SECONDS: self._settings.inactivity_seconds})
        elif error is not None:
            self._report_ending(ending, error, seconds)
        await self._wait(seconds)

    def _ending_of(self, error: Exception) -> Ending:
        match error:
            case Expired():
                return Ending.EXPIRED
            case Refused():
                return Ending.REFUSED
            case Unreadable():
                return Ending.UNREADABLE
            case TimeoutError() if self._opened.is_set():
                return Ending.SILENT
            case _:
                return Ending.BROKEN

    def _report_ending(self, ending: Ending, error: Exception, seconds: float) -> None:
        reason = str(error) or f"no answer within {self._settings.inactivity_seconds:g} s"
        if self._status.catch_up.is_given_up(asyncio.get_running_loop().time()):
            reason += "; meanwhile what was seen last is used"
        write = log.info if ending is Ending.EXPIRED else log.warning
        keys = {fields.RESOURCE: str(self._watch.id), fields.ERROR: reason, fields.SECONDS: round(seconds, 3)}
        write("watch.ended", ending=ending.value, **keys)
        unheard_seconds = asyncio.get_running_loop().time() - self._status.heard_at
        # One broken stream is normal, even after a long silence.
        if (self._backoff.fruitless_ends > 1 and unheard_seconds >= _BRIEF_SECONDS) or isinstance(error, Forbidden):
            self._set_problem(reason, is_refused=ending is Ending.REFUSED)

    async def _wait(self, seconds: float) -> None:
        self._awakened.clear()
        if seconds > 0:
            await is_set_within(self._awakened, seconds)

    def _set_problem(self, problem: str, *, is_refused: bool = False) -> None:
        if problem != self._status.problem:
            self._status.problem, self._status.is_refused = problem, is_refused
            self._sink.status_changed()


def _items(page: JsonObject) -> list[JsonValue]:
    """The items of a list; servers write none as null.

    Raises Unreadable for anything else: read as an empty list, it would delete everything.
    """
    items = page.get("items")
    if is_array(items):
        return items
    if items is None and "items" in page:
        return []
    raise Unreadable(f"what came is no list: {', '.join(list(page)[:10])}")
