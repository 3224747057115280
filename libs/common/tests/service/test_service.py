"""The life cycle of a service: a process that is started, probed and signalled."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path

import httpx
import pytest

from metaloop.devkit.ports import free_port

SAMPLE = Path(__file__).parent / "sample_service.py"


class Process:
    """The sample service with one of its behaviours."""

    def __init__(self, behaviour: str, port: int, **settings: str) -> None:
        self.port = port
        self.popen = subprocess.Popen(
            [sys.executable, str(SAMPLE), behaviour],
            env={**os.environ, "METALOOP_PORT": str(port), **{f"METALOOP_{name.upper()}": value for name, value in settings.items()}},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"http://127.0.0.1:{self.port}{path}", trust_env=False, timeout=30)

    def until_ready(self) -> None:
        deadline = time.monotonic() + 60
        while True:
            try:
                if self.get("/readyz").status_code == 200:
                    return
            except httpx.HTTPError:
                assert time.monotonic() < deadline
            time.sleep(0.05)

    def line(self) -> str:
        assert self.popen.stdout
        return self.popen.stdout.readline().strip()

    def tell(self) -> None:
        assert self.popen.stdin
        self.popen.stdin.write("\n")
        self.popen.stdin.flush()

    def signal(self) -> None:
        self.popen.send_signal(signal.SIGTERM)

    def end(self) -> tuple[int, str, str]:
        out, err = self.popen.communicate(timeout=60)
        return self.popen.returncode, out, err


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    processes: list[Process] = []

    def start(behaviour: str, **settings: str) -> Process:
        processes.append(Process(behaviour, free_port(), **settings))
        return processes[-1]

    yield start
    for process in processes:
        process.popen.kill()
        process.popen.communicate()


def test_service_serves_its_own_routes_beside_the_probes(start: Start):
    process = start("idles")
    process.until_ready()

    assert process.get("/own").json() == "own"
    assert process.get("/healthz").json() == {"checks": ["tasks"], "failing": {}}
    assert "python_info" in process.get("/metrics").text


def test_metrics_tell_the_version_of_the_service(start: Start):
    process = start("idles")
    process.until_ready()

    assert f'metaloop_build_info{{service="sample",version="{metadata.version("metaloop-common")}"}} 1.0' in process.get("/metrics").text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_ends_it_with_success_after_everything_is_closed(start: Start, number: signal.Signals):
    process = start("idles")
    process.until_ready()

    process.popen.send_signal(number)
    status, out, err = process.end()

    assert (status, out.split()) == (0, ["cancelled", "closed"])
    assert '"event":"service.stopped"' in err


def test_draining_service_is_not_ready_but_its_tasks_run(start: Start):
    process = start("drains")
    process.until_ready()

    process.signal()
    assert process.line() == "draining, stopping=True"
    assert process.get("/readyz").json()["failing"] == {"service": "draining"}
    assert process.get("/own").status_code == 200
    process.tell()

    status, out, _ = process.end()
    assert (status, out.split()) == (0, ["drained", "cancelled", "closed"])


def test_work_in_progress_gets_as_long_as_the_setting_says(start: Start):
    process = start("drains-for-ever", drain_seconds="0.2")
    process.until_ready()

    process.signal()
    _, _, err = process.end()

    assert '{"seconds":0.2,"event":"service.drain_unfinished"' in err


def test_failing_task_ends_it_with_failure_and_is_named(start: Start):
    process = start("fails")
    process.until_ready()

    process.tell()
    status, out, err = process.end()

    assert (status, out.split()) == (1, ["cancelled"])
    assert '"task":"failing"' in err
    assert '{"error":"RuntimeError: told to fail","event":"service.failed"' in err


@pytest.mark.parametrize(("behaviour", "task"), [("returns", "returning"), ("is-cancelled", "cancelled")])
def test_task_that_ends_unasked_ends_it_with_failure(start: Start, behaviour: str, task: str):
    process = start(behaviour)
    process.until_ready()

    process.tell()
    status, out, err = process.end()

    assert (status, out.split()) == (1, ["cancelled"])
    assert f"the task {task} ended although the service goes on" in err


def test_service_with_a_failed_task_is_not_ready_while_it_ends(start: Start):
    process = start("fails-and-ends-slowly")
    process.until_ready()

    process.tell()
    assert {process.line(), process.line()} == {"cancelled"}

    assert process.get("/readyz").json()["failing"] == {"service": "ending: the task failing failed"}
    assert process.get("/healthz").json()["failing"] == {"tasks": "the task failing failed"}
    process.tell()
    assert process.end()[0] == 1


def test_failing_build_ends_it_with_failure_and_one_plain_line(start: Start):
    status, _, err = start("cannot-connect").end()

    assert status == 1
    assert "the bus is away" in err
    assert "Traceback" not in err


def test_service_is_alive_and_not_ready_while_it_is_built(start: Start):
    process = start("connects-for-ever")
    assert process.line() == "connecting"

    assert process.get("/healthz").status_code == 200
    assert process.get("/readyz").json()["failing"] == {"service": "starting"}


def test_signal_while_it_is_built_ends_it_with_success(start: Start):
    process = start("connects-for-ever")
    assert process.line() == "connecting"

    process.signal()
    status, _, _ = process.end()

    assert status == 0


def test_second_signal_ends_it_at_once(start: Start):
    process = start("drains")
    process.until_ready()

    process.signal()
    assert process.line() == "draining, stopping=True"
    process.signal()
    status, _, _ = process.end()

    assert status == 1


def test_stuck_event_loop_is_ended(start: Start):
    """By itself it would go on for a minute."""
    process = start("gets-stuck")
    process.until_ready()

    began = time.monotonic()
    process.signal()
    assert process.line() == "stuck"
    status, _, _ = process.end()

    assert status == 1
    assert time.monotonic() - began < 50


def test_port_in_use_ends_it_at_once(start: Start):
    first = start("idles")
    first.until_ready()
    second = Process("idles", first.port)
    status, _, err = second.end()

    assert status == 1
    assert "Address already in use" in err


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="the kernel's timers are read from /proc")
def test_silent_caller_is_probed_by_keep_alive(start: Start):
    """A machine that is gone closes no connection: without probes, its requests would run until their timeout."""
    process = start("idles")
    process.until_ready()

    with socket.create_connection(("127.0.0.1", process.port)) as caller:
        caller.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert caller.recv(100).startswith(b"HTTP/1.1 200")
        seconds = _keep_alive_seconds(local=process.port, remote=caller.getsockname()[1])

    assert 0 < seconds <= 2


KEEPALIVE_TIMER = 2


def _keep_alive_seconds(*, local: int, remote: int) -> float:
    """In how many seconds an idle connection is probed. Its timer serves the answer until that is acknowledged."""
    deadline = time.monotonic() + 30
    while True:
        kind, seconds = _kernel_timer(local=local, remote=remote)
        if kind == KEEPALIVE_TIMER:
            return seconds
        assert time.monotonic() < deadline, f"it has a timer of kind {kind}"
        time.sleep(0.01)


def _kernel_timer(*, local: int, remote: int) -> tuple[int, float]:
    """The kind of timer that the kernel has on one end of a connection, and in how many seconds it is due."""
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        _, ours, theirs, _, _, timer, *_ = line.split()
        if (int(ours.split(":")[1], 16), int(theirs.split(":")[1], 16)) == (local, remote):
            kind, ticks = timer.split(":")
            return int(kind, 16), int(ticks, 16) / os.sysconf("SC_CLK_TCK")
    raise AssertionError("no such connection")
