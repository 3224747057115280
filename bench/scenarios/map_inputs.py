"""One parent of a MapController and very many inputs: what it takes to map them, what is kept, and what rest costs."""

import asyncio
from collections.abc import Sequence

from bench import bounds
from bench.cost import cpu_each, cpu_ratio, in_namespace, reads_of, requests_each
from bench.figures import Figure, Raw
from bench.load import counting
from bench.mapping import bytes_of_a_pair, create_inputs, inputs, is_mapped, seconds_to_map
from bench.run import Run
from bench.system import PARENTS, System
from bench.usage import SERVICES
from metaloop.devkit.testbed.audit import Request
from metaloop.devkit.testbed.cluster import CONFIG_MAPS

_REST_SECONDS = 5.0
_MOST_KEPT_BYTES = 3_000
"""For an input with its output, beside these."""
_STATUS = f"{PARENTS.resource}/status"


async def measure(run: Run) -> list[Figure]:
    """20,000 inputs are there when the parent appears. Later nothing happens, and then 1,000 more appear at once."""
    count, burst = run.of(20_000), run.of(1_000)
    async with System.start(run) as system:
        await system.create_map_controller()
        empty = system.usage().rss_bytes["watcher"]
        await create_inputs(system.cluster, inputs(count))
        mark, before = system.audit.mark(), system.usage()
        seconds = await seconds_to_map(system, count)
        await system.quiet()
        requests, used = await system.audit.ours_since(mark), system.usage().since(before)
        calls, pair = len(await system.hook.calls()), await bytes_of_a_pair(system.cluster)
        at_rest = await _at_rest(run, system)
        status_writes = await _status_writes_of_a_burst(system, count=count, burst=burst)
    rate, kept = count / seconds, (used.rss_bytes["watcher"] - empty) / count - pair
    return [
        run.judge(bounds.MAP_RATE, rate / run.calibration.creates_per_second, raw=Raw(value=rate, unit="/s")),
        cpu_ratio(run, bounds.MAP_CPU, used),
        run.judge(bounds.MAP_CALLS, calls / count),
        run.judge(bounds.MAP_WRITES, _writes(requests, CONFIG_MAPS.resource) / count),
        run.judge(bounds.MAP_READS, reads_of(requests)),
        run.judge(bounds.MAP_MEMORY, kept / _MOST_KEPT_BYTES, raw=Raw(value=kept / 1_000, unit="KB")),
        *at_rest,
        run.judge(bounds.MAP_BURST, status_writes),
        *requests_each(requests, count=count, what="input"),
        *cpu_each(used, count=count, what="input"),
        Figure(name="  writes of the status meanwhile", value=_writes(requests, _STATUS)),
        *[Figure(name=f"  resident, {name}", value=used.rss_bytes[name] / 2**20, unit="MiB") for name in SERVICES],
    ]


async def _at_rest(run: Run, system: System) -> list[Figure]:
    """What is done while nothing happens."""
    await system.hook.forget_calls()
    mark = system.audit.mark()
    await asyncio.sleep(_REST_SECONDS)
    requests, calls = await system.audit.ours_since(mark), await system.hook.calls()
    return [run.judge(bounds.MAP_REST_WRITES, len(in_namespace(requests))), run.judge(bounds.MAP_REST_CALLS, len(calls))]


async def _status_writes_of_a_burst(system: System, *, count: int, burst: int) -> int:
    """Create more inputs at once; how often the status is written until it counts them all."""
    mark = system.audit.mark()
    async with counting(system.cluster, lambda obj: is_mapped(obj, count + burst)) as counted:
        await create_inputs(system.cluster, inputs(count + burst)[count:])
        await counted.reach(1)
    await system.quiet()
    return _writes(await system.audit.ours_since(mark), _STATUS)


def _writes(requests: Sequence[Request], resource: str) -> int:
    return sum(request.is_write and request.resource == resource for request in in_namespace(requests))
