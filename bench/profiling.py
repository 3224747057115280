"""Where each service's CPU goes, as py-spy samples it; needs `py-spy` on the PATH (`uv tool install py-spy`)."""

import asyncio
import shutil
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from metaloop.devkit.stack import Service

_SAMPLES_PER_SECOND = 199
_TOP = 25


class NoSampler(Exception):
    """py-spy is not installed."""


@asynccontextmanager
async def sampled(services: Sequence[Service], *, into: Path | None) -> AsyncIterator[None]:
    """Sample each service into `NAME.raw`, one line a stack, while the block lasts; do nothing without a folder."""
    if into is None:
        yield
        return
    program = shutil.which("py-spy")
    if program is None:
        raise NoSampler("py-spy is not on the PATH: `uv tool install py-spy`")
    samplers = [await _sampler(program, service, into / f"{service.name}.raw") for service in services]
    try:
        yield
    finally:
        for sampler in samplers:
            await _stop(sampler)


async def _stop(sampler: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):  # it ends by itself when its service does
        sampler.send_signal(signal.SIGINT)
    await sampler.wait()


async def _sampler(program: str, service: Service, output: Path) -> asyncio.subprocess.Process:
    options = ("--format", "raw", "--output", str(output), "--rate", str(_SAMPLES_PER_SECOND), "--nonblocking", "--duration", "unlimited")
    quiet = asyncio.subprocess.DEVNULL
    return await asyncio.create_subprocess_exec(program, "record", "--pid", str(service.pid), *options, stdout=quiet, stderr=quiet)


def summary(file: Path) -> str:
    """The functions with most samples: with those of their callees, and without."""
    within, alone, total = Counter[str](), Counter[str](), 0
    for line in file.read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        frames = [frame.rpartition(":")[0] or frame for frame in stack.split(";")]
        total += int(count)
        alone[frames[-1]] += int(count)
        for frame in set(frames):
            within[frame] += int(count)
    rows = [f"  {100 * count / total:5.1f} %  {100 * alone[name] / total:5.1f} %  {name}" for name, count in within.most_common(_TOP)]
    selves = [f"           {100 * count / total:5.1f} %  {name}" for name, count in alone.most_common(_TOP)]
    return "\n".join([f"{file.stem}: {total} samples; with callees, alone", *rows, "  most alone:", *selves])
