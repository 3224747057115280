"""Calls a gateway as a reconciler would: in this process for its stages, over HTTP for its surface."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from metaloop.common.hooks.call import Verdict, target_header
from metaloop.common.json import JsonObject, JsonValue
from metaloop.hookgateway.app import gateway_of
from metaloop.hookgateway.call import Call, Gateway
from metaloop.hookgateway.core.target import parse_target
from metaloop.hookgateway.credentials import CredentialStore
from metaloop.hookgateway.follow import Follow, without_cluster
from metaloop.hookgateway.settings import Settings

NO_CLUSTER = without_cluster("none is needed")


def target(webhook: JsonObject, *, controller: str = "sets", hook: str = "sync", endpoint_configs: list[JsonValue] | None = None) -> str:
    """The value of a target header."""
    identity: JsonObject = {"kind": "CompositeController", "name": controller, "uid": f"uid of {controller}"}
    return target_header({"controller": identity, "hook": hook, "webhook": webhook, "endpointConfigs": endpoint_configs or []})


@dataclass(frozen=True, slots=True)
class Asker:
    """A gateway, asked in this process."""

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
