"""Parents from nothing: how long until all statuses are right, and what it costs."""

from dataclasses import dataclass

from bench import bounds
from bench.cost import cpu_each, cpu_ratio, reads_of, requests_each, writes_of
from bench.figures import Figure, Judged
from bench.load import converge
from bench.run import Run
from bench.system import System
from bench.usage import SERVICES, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class _Size:
    """How many parents with how many children each, and the bounds for that."""

    parents: int
    children: int
    time: Judged
    cpu: Judged
    calls: Judged
    writes: Judged
    reads: Judged


_NARROW = _Size(
    parents=1_000,
    children=3,
    time=bounds.CREATE,
    cpu=bounds.CREATE_CPU,
    calls=bounds.CREATE_CALLS,
    writes=bounds.CREATE_WRITES,
    reads=bounds.CREATE_READS,
)
_WIDE = _Size(
    parents=300,
    children=10,
    time=bounds.WIDE,
    cpu=bounds.WIDE_CPU,
    calls=bounds.WIDE_CALLS,
    writes=bounds.WIDE_WRITES,
    reads=bounds.WIDE_READS,
)


async def measure(run: Run) -> list[Figure]:
    """1,000 x 3."""
    return await _create(run, _NARROW)


async def measure_wide(run: Run) -> list[Figure]:
    """300 x 10: more children for each parent."""
    return await _create(run, _WIDE)


async def _create(run: Run, size: _Size) -> list[Figure]:
    parents = run.of(size.parents)
    async with System.start(run) as system:
        await system.create_controller()
        mark, before = system.audit.mark(), system.usage()
        seconds = await converge(system.cluster, [f"p{index}" for index in range(parents)], children=size.children)
        await system.quiet()
        used, calls = system.usage().since(before), len(await system.hook.calls())
        requests = await system.audit.ours_since(mark)
    return [
        run.judge_seconds(size.time, seconds),
        cpu_ratio(run, size.cpu, used),
        run.judge(size.calls, calls / parents),
        run.judge(size.writes, writes_of(requests) / parents),
        run.judge(size.reads, reads_of(requests) / parents),
        *requests_each(requests, count=parents, what="parent"),
        *cpu_each(used, count=parents, what="parent"),
        *_memory(used),
    ]


def _memory(used: Usage) -> list[Figure]:
    return [Figure(name=f"  resident, {name}", value=used.rss_bytes[name] / 2**20, unit="MiB") for name in SERVICES]
