"""The three services as processes: which are run, on which ports, and with which settings."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from metaloop.devkit.ports import free_range
from metaloop.devkit.stack import Service, Stack, StackOptions

# A program in place of a service: it is ready at once, and tells its settings.
SERVICE = """
import json, os
from http.server import BaseHTTPRequestHandler, HTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        settings = {key.removeprefix("METALOOP_"): value for key, value in os.environ.items() if key.startswith("METALOOP_")}
        self.wfile.write(json.dumps(settings).encode())

HTTPServer(("127.0.0.1", int(os.environ["METALOOP_PORT"])), Handler).serve_forever()
"""
PROGRAMS: Mapping[str, Sequence[str]] = dict.fromkeys(("watcher", "hookgateway", "reconciler"), ("-c", SERVICE))


@asynccontextmanager
async def running(
    folder: Path,
    *,
    watchers: tuple[Mapping[str, str], ...] = ({},),
    reconcilers: int = 1,
    settings: Mapping[str, str] | None = None,
    port_base: int | None = None,
) -> AsyncIterator[Stack]:
    """These services, while the block lasts."""
    options = StackOptions(
        kubeconfig=folder / "kubeconfig",
        nats_url="nats://127.0.0.1:4222",
        watchers=watchers,
        reconcilers=reconcilers,
        settings=settings or {},
        programs=PROGRAMS,
        port_base=port_base,
    )
    async with Stack.start(options, folder) as stack:
        yield stack


async def settings_of(service: Service) -> dict[str, str]:
    """The settings that a service was started with."""
    async with httpx.AsyncClient() as client:
        return json.loads((await client.get(service.metrics_url)).content)


async def test_services_have_consecutive_ports_in_a_fixed_order(tmp_path: Path) -> None:
    base = free_range(5)

    async with running(tmp_path, watchers=({}, {}), reconcilers=2, port_base=base) as stack:
        found = [(service.name, service.url) for service in stack.services]

    names = ["watcher", "hookgateway", "reconciler-0", "reconciler-1", "watcher-1"]
    assert found == [(name, f"http://127.0.0.1:{base + index}") for index, name in enumerate(names)]


async def test_services_get_free_ports_that_differ(tmp_path: Path) -> None:
    async with running(tmp_path, reconcilers=2) as stack:
        ports = [(await settings_of(service))["PORT"] for service in stack.services]

        assert len(set(ports)) == 4
        assert [service.url.rpartition(":")[2] for service in stack.services] == ports


async def test_all_services_find_the_cluster_and_one_another(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        settings = [await settings_of(service) for service in stack.services]

        assert {each["KUBECONFIG"] for each in settings} == {str(tmp_path / "kubeconfig")}
        assert {each["NATS_URL"] for each in settings} == {"nats://127.0.0.1:4222"}
        assert {each["GATEWAY_URL"] for each in settings} == {stack.hookgateway.url}
        assert {each["HOST"] for each in settings} == {"127.0.0.1"}


async def test_services_share_a_secret_that_another_stack_does_not_have(tmp_path: Path) -> None:
    async with running(tmp_path / "one") as one, running(tmp_path / "two") as two:
        tokens = [{(await settings_of(service))["GATEWAY_TOKEN"] for service in stack.services} for stack in (one, two)]

    assert [len(each) for each in tokens] == [1, 1]
    assert tokens[0] != tokens[1]
    assert all(min(each) for each in tokens)


async def test_settings_of_one_watcher_override_those_of_all_services(tmp_path: Path) -> None:
    async with running(
        tmp_path, watchers=({"SHARD": "1/2"}, {"SHARD": "2/2", "LOG_LEVEL": "debug"}), settings={"LOG_LEVEL": "info"}
    ) as stack:
        first, second = [await settings_of(watcher) for watcher in stack.watchers]
        reconciler = await settings_of(stack.reconcilers[0])

    assert (first["SHARD"], first["LOG_LEVEL"]) == ("1/2", "info")
    assert (second["SHARD"], second["LOG_LEVEL"]) == ("2/2", "debug")
    assert ("SHARD" in reconciler, reconciler["LOG_LEVEL"]) == (False, "info")


async def test_own_settings_override_the_connections(tmp_path: Path) -> None:
    async with running(tmp_path, settings={"GATEWAY_URL": "http://127.0.0.1:1"}) as stack:
        assert (await settings_of(stack.reconcilers[0]))["GATEWAY_URL"] == "http://127.0.0.1:1"


async def test_watchers_alone_have_debug_views_each_on_a_port_of_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, watchers=({}, {})) as stack:
        debug_ports = [(await settings_of(service))["DEBUG_PORT"] for service in stack.services]
        urls = [service.debug_url for service in stack.services]

    first, gateway, reconciler, second = debug_ports
    assert (gateway, reconciler) == ("0", "0")
    assert first != second
    assert urls == [f"http://127.0.0.1:{first}/debug", "", "", f"http://127.0.0.1:{second}/debug"]


async def test_killed_service_stays_down_and_starts_again_on_its_port(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        reconciler = stack.reconcilers[0]
        before = reconciler.pid

        await reconciler.kill()
        with pytest.raises(httpx.ConnectError):
            await settings_of(reconciler)
        await reconciler.start()

        assert reconciler.pid != before
        assert f"127.0.0.1:{(await settings_of(reconciler))['PORT']}" in reconciler.url


async def test_logs_are_in_a_folder_that_no_other_user_reads(tmp_path: Path) -> None:
    async with running(tmp_path) as stack:
        logs = [service.log for service in stack.services]

    assert [log.name for log in logs] == ["watcher.log", "hookgateway.log", "reconciler-0.log"]
    assert {log.parent for log in logs} == {tmp_path / "services"}
    assert (tmp_path / "services").stat().st_mode & 0o077 == 0
