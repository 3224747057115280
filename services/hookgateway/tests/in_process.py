"""A gateway in this process, called as a reconciler calls it, with a fake in the place of a cluster."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from metaloop.common.hooks.call import Verdict, target_header
from metaloop.common.json import JsonObject, JsonValue
from metaloop.hookgateway.app import gateway_of
from metaloop.hookgateway.call import Call, Gateway
from metaloop.hookgateway.core.connection import ObjectRef
from metaloop.hookgateway.core.target import parse_target
from metaloop.hookgateway.credential_store import CredentialStore
from metaloop.hookgateway.settings import Settings
from metaloop.hookgateway.watch_objects import NoCluster, ObjectData, ObjectWatcher

NO_CLUSTER = NoCluster("none is needed")


@dataclass(slots=True)
class FakeCluster:
    """Secrets and ConfigMaps that a test creates, changes and deletes."""

    objects: dict[ObjectRef, dict[str, bytes]] = field(default_factory=dict)
    watches: dict[ObjectRef, asyncio.Queue[ObjectData]] = field(default_factory=dict)
    watch_ended: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a watch has ended."""

    def put(self, ref: ObjectRef, **values: bytes) -> None:
        """Create or replace an object; double underscores in its keys stand for dots."""
        self.objects[ref] = {key.replace("__", "."): value for key, value in values.items()}
        self._notify(ref)

    def delete(self, ref: ObjectRef) -> None:
        """Delete an object."""
        del self.objects[ref]
        self._notify(ref)

    async def watch(self, ref: ObjectRef) -> AsyncGenerator[ObjectData, None]:
        """What the object holds, now and after each change."""
        queue = self.watches[ref] = asyncio.Queue()
        yield self.objects.get(ref)
        try:
            while True:
                yield await queue.get()
        finally:
            del self.watches[ref]
            self.watch_ended.set()

    def _notify(self, ref: ObjectRef) -> None:
        if ref in self.watches:
            self.watches[ref].put_nowait(self.objects.get(ref))


def target(webhook: JsonObject, *, controller: str = "sets", hook: str = "sync", endpoint_configs: list[JsonValue] | None = None) -> str:
    """The value of a target header."""
    identity: JsonObject = {"kind": "CompositeController", "name": controller, "uid": f"uid of {controller}"}
    return target_header({"controller": identity, "hook": hook, "webhook": webhook, "endpointConfigs": endpoint_configs or []})


@dataclass(frozen=True, slots=True)
class GatewayClient:
    """A gateway, and the calls that a reconciler makes."""

    gateway: Gateway

    async def call(
        self,
        webhook: JsonObject | str,
        *,
        body: bytes = b"{}",
        parent: str = "parent-1",
        revision: str = "",
        traceparent: str = "",
        **target_of: Any,
    ) -> Verdict:
        """The verdict on one call to a webhook, or to a URL."""
        raw: JsonObject = {"url": webhook} if isinstance(webhook, str) else webhook
        parsed = parse_target(target(raw, **target_of).encode())
        call = Call(target=parsed, parent_uid=parent, revision=revision, traceparent=traceparent, body=body)
        return await self.gateway.verdict_on(call)

    async def call_until(self, reached: Callable[[Verdict], bool], webhook: JsonObject | str) -> Verdict:
        """Call again and again until the verdict is as expected: a change takes a moment to arrive."""
        async with asyncio.timeout(30):
            while True:
                verdict = await self.call(webhook)
                if reached(verdict):
                    return verdict
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running_gateway(objects: ObjectWatcher = NO_CLUSTER, **settings: Any) -> AsyncIterator[GatewayClient]:
    """A gateway with these settings, until the scope ends."""
    store = CredentialStore(objects)
    gateway = gateway_of(Settings(**settings), store)
    async with asyncio.TaskGroup() as tasks:
        watching = tasks.create_task(store.run())
        yield GatewayClient(gateway)
        watching.cancel()
        await gateway.close()
