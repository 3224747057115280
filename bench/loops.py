"""How long the services' event loops were held up, by their own metric; and the most memory that each has used."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import aiohttp

from metaloop.devkit.stack import Service

_BUCKET = re.compile(r'metaloop_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')
_PEAK = re.compile(r"VmHWM:\s*(\d+) kB")

Lags: TypeAlias = Mapping[str, Mapping[float, float]]
"""By service: how many timers were no later than each bound, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """The turns of one service's event loop within some time."""

    longest: float
    """No turn took longer, in seconds; a bound of the metric."""
    long: float
    """How many took longer than 0.1 s."""


async def lags_of(services: Sequence[Service]) -> Lags:
    """What the services have measured so far."""
    async with aiohttp.ClientSession() as session:
        return {service.name: lags_in(await _text(session, service.metrics_url)) for service in services}


def lags_in(exposition: str) -> dict[float, float]:
    """The buckets of the metric."""
    return {float(bound): float(count) for bound, count in _BUCKET.findall(exposition)}


def turns_between(before: Mapping[float, float], after: Mapping[float, float]) -> Turns:
    """The turns that were measured after `before` and until `after`."""
    new = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
    total = new[float("inf")]
    return Turns(longest=min(bound for bound, count in new.items() if count == total), long=total - new[0.1])


def peak_bytes(service: Service) -> int:
    """The most memory that the process has had resident."""
    return peak_in(Path(f"/proc/{service.pid}/status").read_text())


def peak_in(status: str) -> int:
    """The most resident memory, from the kernel's account of a process. Raises ValueError where it is missing."""
    found = _PEAK.search(status)
    if found is None:
        raise ValueError("no VmHWM")
    return int(found[1]) * 1024


async def _text(session: aiohttp.ClientSession, url: str) -> str:
    async with session.get(url) as response:
        return await response.text()
