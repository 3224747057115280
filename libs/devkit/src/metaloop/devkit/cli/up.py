"""`metaloop up`: runs all of Metaloop for one cluster."""

import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import typer

from metaloop.devkit import console, install
from metaloop.devkit.assets import ensure_jaeger
from metaloop.devkit.broker import Broker
from metaloop.devkit.cli.cluster import own_control_plane
from metaloop.devkit.cli.run import forever
from metaloop.devkit.stack import Service, Stack, StackOptions
from metaloop.devkit.testbed.jaeger import Jaeger
from metaloop.devkit.workdir import run_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of the command, as `metaloop up --help` explains them."""

    kubeconfig: Path | None
    reconcilers: int
    watchers: int
    target_label_selector: str
    discovery_interval_seconds: float
    apply_strategy: str
    install_crds: bool
    ready_file: Path | None
    metrics_port_base: int | None
    log_level: str
    jaeger: bool = False
    """Whether a Jaeger runs for this run, and gets the traces."""

    def settings(self, *, otlp_endpoint: str = "") -> dict[str, str]:
        """The settings of the services, which send their spans to `otlp_endpoint` if there is one."""
        return {
            **({"OTLP_ENDPOINT": otlp_endpoint} if otlp_endpoint else {}),
            "TARGET_LABEL_SELECTOR": self.target_label_selector,
            "DISCOVERY_INTERVAL_SECONDS": str(self.discovery_interval_seconds),
            "APPLY_STRATEGY": self.apply_strategy,
            "LOG_LEVEL": self.log_level,
            **({"LEADER_ELECTION": "true"} if self.watchers > 1 else {}),
        }


async def serve(options: UpOptions) -> None:
    """Serve a cluster until a signal to stop."""
    if options.ready_file:
        options.ready_file.unlink(missing_ok=True)
    with run_folder() as folder:
        async with _cluster(options, folder) as kubeconfig, _traces(options, folder) as otlp_endpoint:
            settings = options.settings(otlp_endpoint=otlp_endpoint)
            async with _services(options, settings, kubeconfig=kubeconfig, folder=folder) as stack:
                await _stay_ready(options.ready_file, kubeconfig=kubeconfig, stack=stack)


@asynccontextmanager
async def _cluster(options: UpOptions, folder: Path) -> AsyncIterator[Path]:
    """The kubeconfig of the cluster to serve: the user's cluster, or a control plane for this run."""
    if options.kubeconfig:
        yield options.kubeconfig
        return
    async with own_control_plane(folder) as plane:
        console.message(f"to use the cluster: export KUBECONFIG={plane.kubeconfig_path}")
        yield plane.kubeconfig_path


@asynccontextmanager
async def _traces(options: UpOptions, folder: Path) -> AsyncIterator[str]:
    """Where the services send their spans, as an OTLP endpoint; empty unless a Jaeger is wanted."""
    if not options.jaeger:
        yield ""
        return
    program = await ensure_jaeger()
    async with Jaeger.start(program, folder) as jaeger:
        console.message(f"traces are in Jaeger at {jaeger.query_url}, hooks at {jaeger.query_url}/search?service=metaloop-hookgateway")
        yield jaeger.otlp_endpoint


@asynccontextmanager
async def _services(options: UpOptions, settings: Mapping[str, str], *, kubeconfig: Path, folder: Path) -> AsyncIterator[Stack]:
    await install.prepare(kubeconfig, with_crds=options.install_crds)
    async with AsyncExitStack() as parts:
        with console.progress("starting Metaloop: nats-server, watcher, hookgateway, reconcilers") as progress:
            broker = await parts.enter_async_context(Broker.start(folder))
            stack_options = StackOptions(
                kubeconfig=kubeconfig,
                nats_url=broker.url,
                reconcilers=options.reconcilers,
                watchers=({},) * options.watchers,
                settings=settings,
                port_base=options.metrics_port_base,
            )
            stack = await parts.enter_async_context(Stack.start(stack_options, folder))
            progress.done("Metaloop ready")
        _print_addresses(stack)
        yield stack


def _print_addresses(stack: Stack) -> None:
    console.message(f"logs are in {stack.watcher.log.parent}; metrics and debug views are at")
    for service in stack.services:
        console.message(f"  {service.metrics_url} ({service.name})")
    for watcher in stack.watchers:
        console.message(f"  {watcher.debug_url}/queue (what waits in {watcher.name}, and why)")


async def _stay_ready(ready_file: Path | None, *, kubeconfig: Path, stack: Stack) -> None:
    with _ready_file(ready_file, kubeconfig=kubeconfig, stack=stack):
        typer.echo("metaloop: ready")
        await forever()


@contextmanager
def _ready_file(path: Path | None, *, kubeconfig: Path, stack: Stack) -> Iterator[None]:
    """The file exists, complete, for as long as the block lasts."""
    if path is None:
        yield
        return
    services = {service.name: _address(service) for service in stack.services}
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(json.dumps({"kubeconfig": str(kubeconfig.absolute()), "services": services}, indent=2) + "\n")
    draft.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _address(service: Service) -> dict[str, int | str]:
    found: dict[str, int | str] = {"pid": service.pid, "url": service.url}
    return {**found, "debug_url": service.debug_url} if service.debug_url else found
