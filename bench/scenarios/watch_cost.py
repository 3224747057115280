"""What it costs to watch: a burst of child events through one watcher, and a cache of very many objects.

A scripted API server sends them, so that the watcher never waits for a real one.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import bounds
from bench.figures import Figure, Raw
from bench.run import Run
from metaloop.common.json import loads
from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Program, group, start_on_free_port
from metaloop.devkit.testbed.apiproxy import write_kubeconfig
from metaloop.devkit.workdir import run_folder

_API_SERVER = Path(__file__).parent.parent / "scripted_apiserver.py"
_SECONDS = 300.0
_OBJECT_BYTES = 1_000


async def measure_events(run: Run) -> list[Figure]:
    """10,000 children of 1,000 parents; 50,000 of their changes in a row."""
    events = run.of(50_000)
    measured = await _measure(objects=run.of(10_000), events=events)
    return [
        run.judge_cpu(bounds.CHILD_EVENT_CPU, measured["eventCpu"] / events),
        run.judge_seconds(bounds.CHILD_EVENTS, measured["eventSeconds"]),
        run.judge(bounds.CHILD_EVENT_MARKS, measured["marks"] / events),
        Figure(name="child events taken", value=events / measured["eventSeconds"], unit="/s"),
    ]


async def measure_cache(run: Run) -> list[Figure]:
    """100,000 ConfigMaps of 1 KB are listed and kept."""
    objects = run.of(100_000)
    measured = await _measure(objects=objects, events=1)
    each = measured["cacheBytes"] / objects
    return [
        run.judge(bounds.MEMORY, each / _OBJECT_BYTES, raw=Raw(value=each / 1_000, unit="KB")),
        run.judge_seconds(bounds.LIST, measured["listSeconds"]),
        Figure(name="  CPU of it", value=measured["listCpu"], unit="s"),
    ]


async def _measure(*, objects: int, events: int) -> Mapping[str, float]:
    """What `bench.watch_process` measured of itself."""
    with run_folder() as folder:
        async with group() as daemons:

            def api_server(port: int) -> Program:
                argv = (sys.executable, str(_API_SERVER), str(port), str(objects), str(events))
                ready = probes.tcp_accepts(LOOPBACK, port)
                return Program(name="apiserver", argv=argv, ready=ready, folder=folder, start_seconds=_SECONDS)

            _, port = await start_on_free_port(daemons, api_server)
            return await _watched(write_kubeconfig(folder, f"http://{LOOPBACK}:{port}"), events=events)


async def _watched(kubeconfig: Path, *, events: int) -> Mapping[str, float]:
    argv = (sys.executable, "-m", "bench.watch_process", str(kubeconfig), str(events))
    process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(_SECONDS):
        output, _ = await process.communicate()
    return loads(output.splitlines()[-1])  # what is logged comes before it
