"""Daemons: ready when started, restarted when they crash, down when stopped."""

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable
from pathlib import Path

import psutil
import pytest

from metaloop.devkit.errors import CrashLoop, StartFailed
from metaloop.devkit.ports import LOOPBACK, free_port
from metaloop.devkit.probes import Probe, tcp_greets
from metaloop.devkit.processes import Daemon, Program, group, start_on_free_port
from metaloop.devkit.testbed.eventually import eventually, expect

SERVER = """
import signal, socket, sys
signal.signal(signal.SIGTERM, lambda *_: (print("drained", flush=True), sys.exit(0)))
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), reuse_port=False)
while True:
    client, _ = server.accept()
    client.sendall(b"HELLO")
    client.close()
"""


def server(folder: Path, port: int, *, code: str = SERVER, ready: Probe | None = None, stop_seconds: float = 0) -> Program:
    return Program(
        name="server",
        argv=(sys.executable, "-c", code, str(port)),
        ready=ready or tcp_greets(LOOPBACK, port, greeting=b"HELLO"),
        folder=folder,
        start_seconds=60,
        stop_seconds=stop_seconds,
    )


async def serves(port: int) -> bool:
    return await tcp_greets(LOOPBACK, port, greeting=b"HELLO")()


async def until_it_serves(port: int) -> None:
    """Return once a server greets. A probe that gets no answer within a second says no."""

    async def check() -> None:
        expect(await serves(port), "nothing serves the port yet")

    await eventually(check)


async def at_once() -> bool:
    return True


async def failing() -> None:
    raise LookupError("ours")


async def run_until_failure(program: Program, then: Awaitable[object]) -> None:
    async with group() as daemons:
        await daemons.start(program)
        await then


async def restarted(daemon: Daemon, port: int, *, before: int) -> None:
    async def check() -> None:
        expect(daemon.pid != before and await serves(port), "no new process serves the port yet")

    await eventually(check)


async def test_a_started_daemon_serves(tmp_path: Path) -> None:
    port = free_port()

    async with group() as daemons:
        await daemons.start(server(tmp_path, port))

        await until_it_serves(port)


async def test_all_daemons_have_ended_after_the_block(tmp_path: Path) -> None:
    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, free_port()))
        pid = daemon.pid

    assert not psutil.pid_exists(pid)


async def test_a_daemon_that_ends_before_it_is_ready_fails_to_start_with_its_log(tmp_path: Path) -> None:
    broken = server(tmp_path, free_port(), code="print('no such setting'); raise SystemExit(3)")

    async with group() as daemons:
        with pytest.raises(StartFailed, match=r"(?s)exit code 3.*no such setting"):
            await daemons.start(broken)


async def test_a_daemon_killed_from_outside_is_started_again(tmp_path: Path) -> None:
    port = free_port()

    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, port))
        pid = daemon.pid
        os.kill(pid, signal.SIGKILL)

        await restarted(daemon, port, before=pid)


async def test_a_daemon_that_we_killed_stays_down_until_it_is_started(tmp_path: Path) -> None:
    port = free_port()

    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, port))
        await daemon.kill()
        down = not daemon.is_running
        await daemon.start()

        await until_it_serves(port)
        assert down


async def test_a_stopped_daemon_has_time_to_drain(tmp_path: Path) -> None:
    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, free_port(), stop_seconds=10))
        await daemon.stop()

    assert daemon.log.read_text() == "drained\n"


async def test_a_daemon_that_does_not_drain_in_time_is_killed(tmp_path: Path) -> None:
    port = free_port()
    stubborn = SERVER.replace('signal.signal(signal.SIGTERM, lambda *_: (print("drained", flush=True), sys.exit(0)))', "")
    stubborn = stubborn.replace("server =", "signal.signal(signal.SIGTERM, signal.SIG_IGN); server =")

    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, port, code=stubborn, stop_seconds=0.2))
        await daemon.stop()

    assert not await serves(port)


async def test_a_daemon_in_a_crash_loop_ends_the_block(tmp_path: Path) -> None:
    dying = server(tmp_path, free_port(), code="import time; print('why'); time.sleep(0.05); raise SystemExit(1)", ready=at_once)

    with pytest.raises(CrashLoop, match=r"(?s)server keeps crashing: 5 times.*exit code 1.*why"):
        await run_until_failure(dying, asyncio.Event().wait())


async def test_a_failure_of_the_block_is_raised_unchanged(tmp_path: Path) -> None:
    with pytest.raises(LookupError, match="ours"):
        await run_until_failure(server(tmp_path, free_port()), failing())


async def test_a_paused_daemon_answers_again_after_it_is_resumed(tmp_path: Path) -> None:
    port = free_port()

    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, port))
        daemon.pause()
        stalled = not await serves(port)
        daemon.resume()

        await until_it_serves(port)
        assert stalled


async def test_a_port_that_is_taken_before_the_start_is_replaced_by_another(tmp_path: Path) -> None:
    taken_once: list[int] = []

    def program(port: int) -> Program:
        if taken_once:
            return server(tmp_path, port)
        taken_once.append(port)
        return server(tmp_path, port, code="print('bind: address already in use'); raise SystemExit(1)")

    async with group() as daemons:
        _, port = await start_on_free_port(daemons, program)

        await until_it_serves(port)
        assert port not in taken_once


async def test_the_cpu_and_memory_of_a_daemon_are_known(tmp_path: Path) -> None:
    async with group() as daemons:
        daemon = await daemons.start(server(tmp_path, free_port()))

        assert daemon.cpu_seconds() > 0
        assert daemon.rss_bytes() > 1_000_000
