"""One watch: the events of a resource, each after the others and some time after it happened."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from metaloop.common.json import JsonObject, dumps
from metaloop.common.objects import unstructured
from metaloop.simulation.cluster.routes import Target
from metaloop.simulation.cluster.store import Event, Store
from metaloop.simulation.network import API, Network, Port

BOOKMARK_SECONDS: Final = 60.0
_APART_SECONDS: Final = 1e-6
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


def opened(store: Store, target: Target, port: Port, network: Network) -> "WatchStream":
    """A watch from where its query says. Raises Refusal (410) where that is forgotten."""
    stream = WatchStream(store, target, port, network)
    query = target.query
    if query.get("sendInitialEvents") == "true":
        for obj in store.list(target.info, target.key.namespace):
            stream.push(Event(store.version, "ADDED", obj, None))
        stream.send(_bookmark(target, store.version, ends_list=True))
    else:
        for event in store.collections[target.info.id].since(int(query.get("resourceVersion") or 0)):
            stream.push(event)
    if seconds := float(query.get("timeoutSeconds") or 0):
        network.later(seconds, stream.end)
    return stream


class WatchStream:
    """The lines of one watch, which arrive in order."""

    def __init__(self, store: Store, target: Target, port: Port, network: Network) -> None:
        self._store, self._target, self.port, self._network = store, target, port, network
        self._selector = target.selector
        self._arrived: deque[bytes | None] = deque()
        self._waiting: asyncio.Future[None] | None = None
        self._due = 0.0
        """When the last lines arrive that are under way."""
        self._under_way: deque[list[bytes | None]] = deque()
        """Lines that arrive together, by when they do."""
        self._is_over = False
        self._is_dead = False
        """Whether the connection is dead and nobody noticed: the watch is silent from then on."""
        self._held: list[bytes | None] = []
        """What waits until the process can be reached again."""
        port.on_change.append(self._catch_up)
        self.on_end: Callable[[], None] = _nothing
        network.later(BOOKMARK_SECONDS, self._send_bookmark)

    async def next(self) -> list[bytes]:
        """The lines that arrived since; none at the end."""
        while not self._arrived:
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        lines: list[bytes] = []
        while self._arrived and (line := self._arrived[0]) is not None:
            lines.append(line)
            self._arrived.popleft()
        return lines

    def push(self, event: Event) -> None:
        """Send an event, if it is in the watch's scope. What enters or leaves the scope is added or deleted."""
        if self._target.key.namespace and unstructured.namespace(event.obj) != self._target.key.namespace:
            return
        if self._selector.is_empty:
            self.send(event.line)
            return
        was = event.before is not None and self._selector.matches(unstructured.labels(event.before))
        fits = event.type != "DELETED" and self._selector.matches(unstructured.labels(event.obj))
        if was or fits:
            kind = "DELETED" if not fits else "MODIFIED" if was else "ADDED"
            self.send(dumps({"type": kind, "object": event.obj}))

    def send(self, line: bytes) -> None:
        """Send a line. It arrives after all those that were sent before."""
        self._send(line)

    def end(self) -> None:
        """End the watch after what is under way."""
        if not self._is_over:
            self._send(None)
            self._is_over = True
            self.on_end()

    def _send(self, line: bytes | None) -> None:
        if self._is_over:
            return
        now = asyncio.get_running_loop().time()
        delay = self._network.trip() + self._network.faults.of_watch_event(self.port.process)
        if self._under_way and now + delay <= self._due:
            self._under_way[-1].append(line)  # it arrives with the one before
            return
        self._due = max(self._due + _APART_SECONDS, now + delay)
        self._under_way.append([line])
        self._network.at(self._due, self._arrive)

    def _arrive(self) -> None:
        """The next lines arrive that were sent together."""
        self._take(self._under_way.popleft())

    def _take(self, lines: list[bytes | None]) -> None:
        if self._is_dead or not self.port.is_alive:
            return
        if not self.port.reaches(API):
            self._held += lines
            return
        self._arrived += [*self._held, *lines]
        self._held.clear()
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def go_silent(self) -> None:
        """Have the connection die without a word."""
        self._is_dead = True

    def _catch_up(self) -> None:
        if self._held and self.port.reaches(API):
            self._take([])

    def _send_bookmark(self) -> None:
        if not self._is_over:
            self.send(_bookmark(self._target, self._store.version))
            self._network.later(BOOKMARK_SECONDS, self._send_bookmark)


def _bookmark(target: Target, version: int, *, ends_list: bool = False) -> bytes:
    metadata: JsonObject = {"resourceVersion": str(version)}
    if ends_list:
        metadata["annotations"] = {_INITIAL_EVENTS_END: "true"}
    kind: JsonObject = {"kind": target.info.kind, "apiVersion": target.info.api_version}
    return dumps({"type": "BOOKMARK", "object": {**kind, "metadata": metadata}})


def _nothing() -> None:
    """Do nothing at the end."""
