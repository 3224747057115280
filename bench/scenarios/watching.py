"""What it costs to watch: a burst of child events through one watcher, and a cache of very many objects; from a scripted source, so that nothing waits."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path

from bench import figures
from bench.figures import Figure
from bench.scenarios.scale import Scale
from metaloop.common.json import loads
from metaloop.devkit import probes
from metaloop.devkit.ports import LOOPBACK
from metaloop.devkit.processes import Program, group, start_on_free_port
from metaloop.devkit.testbed.apiproxy import write_kubeconfig
from metaloop.devkit.workdir import run_folder

_SOURCE = Path(__file__).parent.parent / "eventsource.py"
_SECONDS = 300.0


async def run_events(scale: Scale) -> list[Figure]:
    """10,000 children of 1,000 parents; 50,000 of their changes in a row."""
    events = scale.of(50_000)
    measured = await _measure(objects=scale.of(10_000), events=events)
    return [
        scale.judge(figures.EVENT_CPU, 1_000 * measured["eventCpu"] / events),
        scale.judge(figures.EVENTS_SECONDS, measured["eventSeconds"] * 5_000 / events),
        Figure(name="marks per event", value=measured["marksPerEvent"]),
        Figure(name="child events taken", value=events / measured["eventSeconds"], unit="/s"),
    ]


async def run_large(scale: Scale) -> list[Figure]:
    """100,000 ConfigMaps of 1 KB are listed and kept."""
    objects = scale.of(100_000)
    measured = await _measure(objects=objects, events=1)
    return [
        scale.judge(figures.MEMORY, measured["bytesPerObject"] / 1_000),
        Figure(name="100,000 ConfigMaps: listed within", value=measured["listSeconds"], unit="s"),
        Figure(name="  CPU of it", value=measured["listCpu"], unit="s"),
    ]


async def _measure(*, objects: int, events: int) -> Mapping[str, float]:
    with run_folder() as folder:
        async with group() as daemons:

            def source(port: int) -> Program:
                argv = (sys.executable, str(_SOURCE), str(port), str(objects), str(events))
                return Program(name="source", argv=argv, ready=probes.tcp_accepts(LOOPBACK, port), folder=folder, start_seconds=_SECONDS)

            _, port = await start_on_free_port(daemons, source)
            kubeconfig = write_kubeconfig(folder, f"http://{LOOPBACK}:{port}")
            argv = (sys.executable, "-m", "bench.watching", str(kubeconfig), str(objects), str(events))
            process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE)
            async with asyncio.timeout(_SECONDS):
                output, _ = await process.communicate()
    return loads(output.splitlines()[-1])  # what is logged comes before it
