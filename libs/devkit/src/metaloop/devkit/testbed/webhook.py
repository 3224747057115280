"""A real webhook whose behaviour a test sets as a plain function, and which remembers who called it, and whether calls overlapped."""

import asyncio
import inspect
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.testbed.eventually import expect

# A call whose caller died counts as dead once its connection is gone; we may read of the new call before we read of that end.
_GRACE_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP answer, for behaviours that want to misbehave."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Answer: TypeAlias = JsonObject | Reply
Behaviour: TypeAlias = Callable[[JsonObject], Answer | Awaitable[Answer]]


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call: what was asked, and since when until when it was live."""

    hook: str
    request: JsonObject
    started_at: float
    ended_at: float | None = None
    answered: bool = False
    """Whether it ended with an answer, rather than because the caller went away."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    client: str = ""
    """The name in the certificate that the caller showed, if one was asked for."""
    port: int = 0
    """The caller's, by which its connections can be told apart."""

    @property
    def parent(self) -> JsonObject:
        """The parent that it was about, by whichever name its kind of controller has for it."""
        return unstructured.child_object(self.request, "parent") or unstructured.child_object(self.request, "object")

    @property
    def parent_name(self) -> str:
        """The name of that parent."""
        return unstructured.name(self.parent)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two calls for one parent that were live at once: what must never be."""

    earlier: Call
    later: Call

    def __str__(self) -> str:
        lead = self.later.started_at - self.earlier.started_at
        return f"{self.later.hook}: {self.later.parent_name} was asked about again {lead:.3f} s after a call that is still live"


class Webhook:
    """An HTTP server on loopback: each hook has a name of its own, its path, and a behaviour."""

    def __init__(self) -> None:
        """Hold no behaviour yet; calls of unknown hooks are answered with 404."""
        self._behaviours: dict[str, Behaviour] = {}
        self._calls: dict[str, list[Call]] = defaultdict(list)
        self._live: dict[tuple[str, str], set[Call]] = defaultdict(set)
        self._base_url = ""
        self.overlaps: list[Overlap] = []
        self.tokens: frozenset[str] = frozenset()
        """The bearer tokens of which a caller must show one; empty: everybody is answered."""
        self.turned_away = 0
        """How many calls showed none of them."""

    @staticmethod
    @asynccontextmanager
    async def serve(*, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator["Webhook"]:
        """A webhook that answers for as long as the block lasts."""
        webhook = Webhook()
        app = web.Application(client_max_size=64 * 1024 * 1024)
        app.router.add_post("/{hook}", webhook._answered)
        # Cancelled when the caller hangs up, so that a call does not outlive who wants its answer.
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        try:
            site = web.TCPSite(runner, LOOPBACK, port, ssl_context=tls)
            await site.start()
            webhook._base_url = f"{'https' if tls else 'http'}://{LOOPBACK}:{runner.addresses[0][1]}"
            yield webhook
        finally:
            await runner.cleanup()

    def url(self, hook: str) -> str:
        """Where a hook is called."""
        return f"{self._base_url}/{hook}"

    def on(self, hook: str, behaviour: Behaviour) -> str:
        """The URL of a hook, which from now on behaves so."""
        self._behaviours[hook] = behaviour
        return self.url(hook)

    def calls(self, hook: str, *, parent: str = "") -> list[Call]:
        """All calls of a hook so far, in their order, or those about one parent."""
        return [call for call in self._calls[hook] if not parent or call.parent_name == parent]

    async def called(self, times: int, hook: str, *, parent: str = "") -> None:
        """Raises AssertionError until a hook was called so often."""
        seen = len(self.calls(hook, parent=parent))
        expect(seen >= times, f"the hook {hook} was called {seen} times, not yet {times}")

    def no_more_than(self, times: int, hook: str, *, parent: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was not called more often than that."""

        async def check() -> None:
            seen = len(self.calls(hook, parent=parent))
            expect(seen <= times, f"the hook {hook} was called {seen} times, more than {times}")

        return check

    async def _answered(self, request: web.Request) -> web.Response:
        hook = request.match_info["hook"]
        behaviour = self._behaviours.get(hook)
        if behaviour is None:
            return web.Response(status=404)
        if self.tokens and request.headers.get("Authorization", "").removeprefix("Bearer ") not in self.tokens:
            self.turned_away += 1
            return web.Response(status=401)
        call = Call(
            hook=hook,
            request=loads(await request.read()),
            started_at=time.monotonic(),
            headers=request.headers,
            client=_common_name(request.transport),
            port=request.transport.get_extra_info("peername")[1] if request.transport else 0,
        )
        self._calls[hook].append(call)
        live = self._live[hook, unstructured.uid(call.parent)]
        live.add(call)
        try:
            await self._note_overlap(call, live)
            return await _answer(behaviour, call)
        finally:
            live.discard(call)
            call.ended_at = time.monotonic()

    async def _note_overlap(self, call: Call, live: set[Call]) -> None:
        others = {other for other in live - {call} if not _are_revisions(call, other)}
        if not others:
            return
        await asyncio.sleep(_GRACE_SECONDS)
        self.overlaps += [Overlap(earlier=other, later=call) for other in others & live]


def _are_revisions(call: Call, other: Call) -> bool:
    """Whether one sync asks about two revisions of its parent: the same version of it, with different specs."""
    versions = {unstructured.resource_version(each.parent) for each in (call, other)}
    return len(versions) == 1 and call.parent.get("spec") != other.parent.get("spec")


def _common_name(connection: asyncio.Transport | None) -> str:
    certificate = connection.get_extra_info("peercert") if connection else None
    names = dict(pair for part in certificate["subject"] for pair in part) if certificate else {}
    return names.get("commonName", "")


async def _answer(behaviour: Behaviour, call: Call) -> web.Response:
    answer = behaviour(call.request)
    if inspect.isawaitable(answer):
        answer = await answer
    call.answered = True
    if isinstance(answer, Reply):
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)
    return web.Response(body=dumps(answer), content_type="application/json")
