"""A real webhook whose behaviour is a plain function that a test sets.

It records all calls, and which of them overlapped.
"""

import asyncio
import inspect
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from aiohttp import web

from metaloop.common.json import JsonObject, dumps, loads
from metaloop.common.objects import unstructured
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.testbed.eventually import expect

# A call of a killed caller ends when its connection is closed; the webhook may read a new call before it sees that end.
_GRACE_SECONDS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An arbitrary HTTP answer, for hooks that misbehave."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Answer: TypeAlias = JsonObject | Reply
Behaviour: TypeAlias = Callable[[JsonObject], Answer | Awaitable[Answer]]


@dataclass(slots=True, kw_only=True, eq=False)
class Call:
    """One call: its request, and when it began and ended."""

    hook: str
    request: JsonObject
    started_at: float
    ended_at: float | None = None
    answered: bool = False
    """Whether it ended with an answer, not because the caller disconnected."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    client: str = ""
    """The common name in the caller's certificate, if one was requested."""
    port: int = 0
    """The caller's port, which identifies its connection."""

    @property
    def parent(self) -> JsonObject:
        """The parent in the request: `parent` of a composite, `object` of a decorator."""
        return unstructured.child_object(self.request, "parent") or unstructured.child_object(self.request, "object")

    @property
    def parent_name(self) -> str:
        """The name of that parent."""
        return unstructured.name(self.parent)

    @property
    def shown_versions(self) -> frozenset[str]:
        """The resourceVersions of that parent and of its children, attachments or outputs in the request."""
        shown = [self.parent]
        for key in ("children", "attachments", "outputs"):
            for group in unstructured.child_object(self.request, key).values():
                shown += [obj for obj in group.values() if isinstance(obj, dict)] if isinstance(group, dict) else []
        return frozenset(unstructured.resource_version(obj) for obj in shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two concurrent calls for one parent, or for one part of a parent, which must never happen."""

    earlier: Call
    later: Call

    def __str__(self) -> str:
        lead = self.later.started_at - self.earlier.started_at
        return f"{self.later.hook}: a second call for {self.later.parent_name} began {lead:.3f} s after one that has not ended"


class Webhook:
    """An HTTP server on loopback; each hook has a name, which is its path, and a behaviour."""

    def __init__(self) -> None:
        """There are no hooks yet; calls of unknown hooks are answered with 404."""
        self._behaviours: dict[str, Behaviour] = {}
        self._calls: dict[str, list[Call]] = defaultdict(list)
        self._live: dict[tuple[str, str, str], set[Call]] = defaultdict(set)
        self._base_url = ""
        self.overlaps: list[Overlap] = []
        self.tokens: frozenset[str] = frozenset()
        """The accepted bearer tokens; empty: no token is needed."""
        self.turned_away = 0
        """How many calls were answered with 401, for lack of a token."""

    @staticmethod
    @asynccontextmanager
    async def serve(*, port: int = 0, tls: ssl.SSLContext | None = None) -> AsyncIterator["Webhook"]:
        """A webhook that serves for as long as the block lasts."""
        webhook = Webhook()
        app = web.Application(client_max_size=256 * 1024 * 1024)
        app.router.add_post("/{hook}", webhook._answered)
        # A call is cancelled when its caller disconnects.
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
        """The URL of a hook."""
        return f"{self._base_url}/{hook}"

    def on(self, hook: str, behaviour: Behaviour) -> str:
        """Set the behaviour of a hook, and return its URL."""
        self._behaviours[hook] = behaviour
        return self.url(hook)

    def calls(self, hook: str, *, parent: str = "") -> list[Call]:
        """All calls of a hook so far, or those for one parent."""
        return [call for call in self._calls[hook] if not parent or call.parent_name == parent]

    async def called(self, times: int, hook: str, *, parent: str = "") -> None:
        """Raise AssertionError unless a hook was called at least this many times."""
        seen = len(self.calls(hook, parent=parent))
        expect(seen >= times, f"the hook {hook} was called {seen} times, not yet {times}")

    def no_more_than(self, times: int, hook: str, *, parent: str = "") -> Callable[[], Awaitable[None]]:
        """A check that a hook was called at most this many times."""

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
        live = self._live[hook, unstructured.uid(call.parent), unstructured.text(call.request, "mapKey")]
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


def expect_last_call_shows(calls: Sequence[Call], objects: Sequence[JsonObject]) -> None:
    """Raise AssertionError unless the last of some calls showed a parent and its children as they are, and is answered.

    Such a call is the last until one of them changes.
    """
    expect(calls and calls[-1].ended_at is not None, "there was no call yet, or it is not answered")
    shown, current = calls[-1].shown_versions, {unstructured.resource_version(obj) for obj in objects}
    expect(shown == current, f"the last call showed the versions {sorted(shown)}, not yet {sorted(current)}")


def _are_revisions(call: Call, other: Call) -> bool:
    """Whether both calls are of one sync for two revisions: the same resourceVersion with different specs."""
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
