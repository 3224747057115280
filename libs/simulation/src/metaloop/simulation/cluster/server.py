"""The API server of a run: it serves requests and watches over the network, and collects garbage."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from typing import Final

from metaloop.common.http.answer import Answer
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.errors import Unanswered
from metaloop.common.kube.transport import Exchanges, Request, failure_of
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import owner_references
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.simulation.cluster.objects import Refusal
from metaloop.simulation.cluster.routes import WRITES, Routes
from metaloop.simulation.cluster.store import Event, Key, Store
from metaloop.simulation.cluster.watches import WatchStream, opened
from metaloop.simulation.history import History
from metaloop.simulation.machines import EPOCH_SECONDS
from metaloop.simulation.network import API, Answered, Network, Port, RequestFate

REQUEST_SECONDS: Final = 30.0
_COLLECT_SECONDS: Final = (0.05, 0.8)
"""How long the garbage collector takes to notice that an owner is gone."""
_QUOTE: Final = b'"'
_REASONS: Final = {
    404: "NotFound",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
    503: "ServiceUnavailable",
    504: "Timeout",
}


class ApiServer:
    """The server with its store. Processes reach it through a `transport`."""

    def __init__(self, network: Network, history: History) -> None:
        self.store = Store(clock=self._clock, on_change=self._changed)
        self.routes = Routes(self.store)
        self.observers: list[Callable[[ResourceInfo, Event, str], None]] = []
        """Called after each change, with who made it."""
        self.broken: dict[ResourceId, int] = {}
        """Resources whose requests and watches all fail with this status."""
        self._network = network
        self._history = history
        self._watches: dict[ResourceId, list[WatchStream]] = {}
        self._actor = ""
        self._collecting: asyncio.TimerHandle | None = None

    def transport(self, port: Port) -> Exchanges:
        """The way of one process to this server."""
        return Transport(self, port, self._network)

    def act(self, actor: str, request: Request) -> Answer:
        """Execute a request, and tell the observers who did it."""
        self._actor = actor
        try:
            answer = Answer(201 if request.method == "POST" else 200, (), dumps(self.routes.answer(request)))
        except Refusal as refusal:
            answer = refused(refusal)
        if request.method in WRITES:
            self._history.note(actor, f"{request.method} {request.target.partition('?')[0]} → {_shown(answer)}")
        return answer

    def by_user(self, change: Callable[[], JsonObject]) -> JsonObject:
        """The object after a user's change, made at the server itself."""
        self._actor = "user"
        return change()

    def break_resource(self, info: ResourceId, code: int) -> None:
        """Fail all requests for a resource with this status, and end its watches, until `mend_resource`."""
        self.broken[info] = code
        self.end_watches(info)

    def mend_resource(self, info: ResourceId) -> None:
        """Serve the resource again."""
        self.broken.pop(info, None)

    def end_watches(self, info: ResourceId | None = None) -> None:
        """End the watches of a resource, or all of them, as a server does that restarts."""
        for id_, streams in self._watches.items():
            for stream in tuple(streams) if info in {None, id_} else ():
                stream.end()

    def silence_watches(self, port: Port) -> None:
        """Have the connections of a process' watches die without a word."""
        for streams in self._watches.values():
            for stream in streams:
                if stream.port is port:
                    stream.go_silent()

    def open_watch(self, request: Request, port: Port) -> WatchStream:
        """A watch. Raises Refusal."""
        target = self.routes.target(request)
        self._check_served(request)
        stream = opened(self.store, target, port, self._network)
        streams = self._watches.setdefault(target.info.id, [])
        streams.append(stream)
        stream.on_end = lambda: streams.remove(stream) if stream in streams else None
        return stream

    def check(self, request: Request) -> Answer | None:
        """The answer to a request for a resource that fails; None where it does not."""
        try:
            self._check_served(request)
        except Refusal as refusal:
            return refused(refusal)
        return None

    def _check_served(self, request: Request) -> None:
        if not self.broken:
            return
        try:
            code = self.broken.get(self.routes.target(request).info.id)
        except Refusal:
            return
        if code is not None:
            raise Refusal(code, _REASONS[code], "the model fails requests for this resource")

    def _changed(self, info: ResourceInfo, event: Event) -> None:
        for observer in self.observers:
            observer(info, event, self._actor)
        for stream in tuple(self._watches.get(info.id, ())):
            stream.push(event)
        if event.type == "DELETED" or (event.before is None and owner_references(event.obj)):
            self._collect_soon()

    def _collect_soon(self) -> None:
        if self._collecting is None:
            self._collecting = self._network.later(self._network.random.uniform(*_COLLECT_SECONDS), self._collect)

    def _collect(self) -> None:
        """Delete what only owners had that are gone, and remove the references to those from the rest."""
        self._collecting = None
        self._actor = "garbage collector"
        for info, key, obj in [*self.store.dangling()]:
            self._collect_one(info, key, obj)

    def _collect_one(self, info: ResourceInfo, key: Key, obj: JsonObject) -> None:
        if unstructured.is_deleting(obj):
            return
        living = [reference for reference in owner_references(obj) if reference.get("uid") in self.store.by_uid]
        self._history.note("collector", f"{'keep' if living else 'DELETE'} {info.resource}/{key}")
        if not living:
            self.store.delete(info, key, uid=unstructured.uid(obj))
            return
        self.store.update(info, key, {**obj, "metadata": {**unstructured.metadata(obj), "ownerReferences": [*living]}})

    def _clock(self) -> str:
        at = datetime.fromtimestamp(EPOCH_SECONDS + asyncio.get_running_loop().time(), UTC)
        return at.strftime("%Y-%m-%dT%H:%M:%SZ")


class Transport:
    """Carries the requests of one process."""

    def __init__(self, server: ApiServer, port: Port, network: Network) -> None:
        self._server = server
        self._port = port
        self._network = network

    async def exchange(self, request: Request) -> bytes:
        """The body of a successful answer. Raises the errors of kube/errors.py."""
        self._check(request)
        reply: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        fate = self._network.faults.of_request(self._port.process, request)
        request.permit()
        self._network.later(self._network.trip() + fate.delay_seconds, self._arrive, request, fate, reply)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                answer = await reply
        except TimeoutError as late:
            raise Unanswered(f"{request}: no answer within {REQUEST_SECONDS:g} s") from late
        if answer is None:
            raise Unanswered(f"{request}: the connection broke")
        if answer.status >= 300:
            raise failure_of(request, answer)
        return answer.body

    async def lines(self, request: Request, on_open: Callable[[], None]) -> AsyncGenerator[list[bytes], None]:
        """The lines of a watch until it ends, each list with those that arrived together.

        Raises Unanswered if the connection breaks.
        """
        self._check(request)
        await asyncio.sleep(self._network.trip())
        self._check(request)
        try:
            stream = self._server.open_watch(request, self._port)
        except Refusal as refusal:
            raise failure_of(request, refused(refusal)) from None
        try:
            on_open()
            while lines := await stream.next():
                yield lines
        finally:
            stream.end()

    def _check(self, request: Request) -> None:
        if not self._port.reaches(API):
            raise Unanswered(f"{request}: the server can't be reached")

    def _arrive(self, request: Request, fate: RequestFate, reply: "asyncio.Future[Answer | None]") -> None:
        """The request arrives at the server, also where its process is gone by now."""
        answer = self._answer(request, fate)
        if request.method in WRITES and fate.answered not in {Answered.REFUSED, Answered.UNSENT}:
            self._network.faults.after_write(self._port.process, request)
        self._network.later(self._network.trip(), self._return, answer, reply)

    def _answer(self, request: Request, fate: RequestFate) -> Answer | None:
        match fate.answered:
            case Answered.SERVED:
                return self._server.check(request) or self._server.act(self._port.process, request)
            case Answered.REFUSED:
                return _failed(fate.code)
            case Answered.FAILED:
                self._server.act(self._port.process, request)
                return _failed(fate.code)
            case Answered.LOST:
                self._server.act(self._port.process, request)
                return None
            case Answered.UNSENT:
                return None

    def _return(self, answer: Answer | None, reply: "asyncio.Future[Answer | None]") -> None:
        if self._port.is_alive and not reply.done() and (answer is None or self._port.reaches(API)):
            reply.set_result(answer)


def refused(refusal: Refusal) -> Answer:
    """The answer to a request that is refused."""
    headers = ((b"Retry-After", str(refusal.retry_after_seconds).encode()),) if refusal.retry_after_seconds is not None else ()
    return Answer(refusal.code, headers, dumps(refusal.status))


def _failed(code: int) -> Answer:
    return refused(Refusal(code, _REASONS[code], "the model fails this request", retry_after_seconds=1 if code == 429 else None))


def _shown(answer: Answer) -> str:
    if answer.status >= 300:
        return str(answer.status)
    _, found, rest = answer.body.partition(b'"resourceVersion":"')
    return f"{answer.status} v{rest.partition(_QUOTE)[0].decode()}" if found else str(answer.status)
