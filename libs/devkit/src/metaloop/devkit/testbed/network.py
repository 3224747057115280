"""The network between the services and what they reach: a proxy for each link, which delays, parts or cuts it."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from metaloop.devkit.ports import LOOPBACK, free_range
from metaloop.devkit.stack import Stack, StackOptions
from metaloop.devkit.testbed.lab import Platform
from metaloop.devkit.testbed.tcpproxy import TcpProxy

_GATEWAY_OFFSET = 1
"""The gateway has the port after the first watcher's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The links of services that run on a platform. The links to webhooks are not among them."""

    platform: Platform
    broker: TcpProxy
    gateway: TcpProxy
    api_server: TcpProxy
    kubeconfig: Path
    """Leads through the proxy before the API server."""
    port_base: int

    @property
    def links(self) -> Mapping[str, TcpProxy]:
        """All links, by what they lead to."""
        return {"broker": self.broker, "gateway": self.gateway, "api-server": self.api_server}

    @staticmethod
    @asynccontextmanager
    async def around(platform: Platform, *, services: int, kubeconfig: Path | None = None) -> AsyncIterator["Network"]:
        """The links of so many services on a platform, for as long as the block lasts.

        The API server is that of `kubeconfig`, by default the platform's.
        """
        direct = (kubeconfig or platform.plane.kubeconfig_path).read_text()
        server_url = json.loads(direct)["clusters"][0]["cluster"]["server"]
        base = free_range(services)
        gateway_url = f"http://{LOOPBACK}:{base + _GATEWAY_OFFSET}"
        async with (
            TcpProxy.before(platform.broker.url) as broker,
            TcpProxy.before(gateway_url) as gateway,
            TcpProxy.before(server_url) as api_server,
        ):
            proxied = platform.workdir / "network.kubeconfig"
            proxied.touch(mode=0o600)
            proxied.write_text(direct.replace(server_url, api_server.instead_of(server_url)))
            yield Network(platform=platform, broker=broker, gateway=gateway, api_server=api_server, kubeconfig=proxied, port_base=base)

    def stack(
        self,
        *,
        watchers: Sequence[Mapping[str, str]] = ({},),
        reconcilers: int = 2,
        settings: Mapping[str, str] | None = None,
        programs: Mapping[str, Sequence[str]] | None = None,
    ) -> AbstractAsyncContextManager[Stack]:
        """The services, which reach everything through the proxies, ready for as long as the block lasts."""
        options = StackOptions(
            kubeconfig=self.kubeconfig,
            nats_url=self.broker.instead_of(self.platform.broker.url),
            watchers=watchers,
            reconcilers=reconcilers,
            settings={"GATEWAY_URL": self.gateway.instead_of(f"http://{LOOPBACK}:{self.port_base + _GATEWAY_OFFSET}"), **(settings or {})},
            programs=programs or {},
            port_base=self.port_base,
        )
        return Stack.start(options, self.platform.workdir)

    def heal(self) -> None:
        """End all faults of all links."""
        for link in self.links.values():
            link.delay_seconds = 0.0
            link.heal()
