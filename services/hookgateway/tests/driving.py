"""Calls a gateway as a reconciler would, in this process; with a shelf in the place of a cluster."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from metaloop.common.hooks.call import Verdict, target_header
from metaloop.common.json import JsonObject, JsonValue
from metaloop.hookgateway.app import gateway_of
from metaloop.hookgateway.call import Call, Gateway
from metaloop.hookgateway.core.connection import Referent
from metaloop.hookgateway.core.target import parse_target
from metaloop.hookgateway.credentials import CredentialStore
from metaloop.hookgateway.follow import Contents, Follow, without_cluster
from metaloop.hookgateway.settings import Settings

NO_CLUSTER = without_cluster("none is needed")


@dataclass(slots=True)
class Shelf:
    """Secrets and ConfigMaps that a test puts down and takes away."""

    objects: dict[Referent, dict[str, bytes]] = field(default_factory=dict)
    followers: dict[Referent, asyncio.Queue[Contents]] = field(default_factory=dict)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when an object is followed no more."""

    def put(self, referent: Referent, **values: bytes) -> None:
        """Create or replace an object; double underscores in its keys stand for dots."""
        self.objects[referent] = {key.replace("__", "."): value for key, value in values.items()}
        self._tell(referent)

    def take(self, referent: Referent) -> None:
        """Delete an object."""
        del self.objects[referent]
        self._tell(referent)

    async def follow(self, referent: Referent) -> AsyncGenerator[Contents, None]:
        """What the object holds, now and after each change."""
        queue = self.followers[referent] = asyncio.Queue()
        yield self.objects.get(referent)
        try:
            while True:
                yield await queue.get()
        finally:
            del self.followers[referent]
            self.left.set()

    def _tell(self, referent: Referent) -> None:
        if referent in self.followers:
            self.followers[referent].put_nowait(self.objects.get(referent))


def target(webhook: JsonObject, *, controller: str = "sets", hook: str = "sync", endpoint_configs: list[JsonValue] | None = None) -> str:
    """The value of a target header."""
    identity: JsonObject = {"kind": "CompositeController", "name": controller, "uid": f"uid of {controller}"}
    return target_header({"controller": identity, "hook": hook, "webhook": webhook, "endpointConfigs": endpoint_configs or []})


@dataclass(frozen=True, slots=True)
class Asker:
    """A gateway, and what a reconciler would ask of it."""

    gateway: Gateway

    async def ask(
        self,
        webhook: JsonObject | str,
        *,
        body: bytes = b"{}",
        parent: str = "parent-1",
        revision: str = "",
        traceparent: str = "",
        **target_of: Any,
    ) -> Verdict:
        """The verdict on one call to a webhook, or to the URL of one."""
        raw: JsonObject = {"url": webhook} if isinstance(webhook, str) else webhook
        parsed = parse_target(target(raw, **target_of).encode())
        call = Call(target=parsed, parent_uid=parent, revision=revision, traceparent=traceparent, body=body)
        return await self.gateway.verdict_on(call)

    async def ask_until(self, reached: Callable[[Verdict], bool], webhook: JsonObject | str) -> Verdict:
        """Ask again and again: what a test has just changed takes a moment to arrive."""
        async with asyncio.timeout(10):
            while True:
                verdict = await self.ask(webhook)
                if reached(verdict):
                    return verdict
                await asyncio.sleep(0.01)


@asynccontextmanager
async def asking(follow: Follow = NO_CLUSTER, **settings: Any) -> AsyncIterator[Asker]:
    """A gateway with these settings, until the scope ends."""
    store = CredentialStore(follow)
    gateway = gateway_of(Settings(**settings), store)
    async with asyncio.TaskGroup() as tasks:
        following = tasks.create_task(store.run())
        yield Asker(gateway)
        following.cancel()
        await gateway.close()
