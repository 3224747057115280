"""`metaloop top`: a live table of controllers."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from rich.console import Console
from rich.live import Live
from rich.table import Table

from metaloop.common.json import JsonObject, is_array
from metaloop.devkit.cli.debug_views import DebugOptions, debug_views

_COLUMNS = ("CONTROLLER", "READY", "PARENTS", "FAILING", "PARTS", "WAITING", "IN FLIGHT", "OLDEST", "SYNCS/S", "RETRIES/S", "P50", "P99")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The view of controllers at one moment."""

    at: float
    controllers: Sequence[JsonObject]


async def top(options: DebugOptions, *, every_seconds: float, is_once: bool) -> None:
    """Show the controllers until interrupted, or once."""
    async with debug_views(options) as views:
        loop = asyncio.get_running_loop()

        async def read() -> Reading:
            return Reading(at=loop.time(), controllers=await views.read("controllers"))

        before = await read()
        if is_once:
            Console().print(table_of(before, since=None))
            return
        with Live(table_of(before, since=None), auto_refresh=False) as live:
            while True:
                await asyncio.sleep(every_seconds)
                now = await read()
                live.update(table_of(now, since=before), refresh=True)
                before = now


def table_of(now: Reading, *, since: Reading | None) -> Table:
    """The table of a reading; rates and durations are those since an earlier one, if there is one."""
    table = Table(*_COLUMNS, box=None, pad_edge=False)
    for row in rows_of(now, since=since):
        table.add_row(*row)
    return table


def rows_of(now: Reading, *, since: Reading | None) -> list[tuple[str, ...]]:
    """The cells of each controller, by name."""
    former = {str(each["controller"]): each for each in since.controllers} if since is not None else {}
    seconds = now.at - since.at if since is not None else 0.0
    return [
        _row(each, former.get(str(each["controller"])), seconds)
        for each in sorted(now.controllers, key=lambda each: str(each["controller"]))
    ]


def _row(now: JsonObject, before: JsonObject | None, seconds: float) -> tuple[str, ...]:
    durations = _difference(_buckets(now), _buckets(before) if before else [])
    numbers = (str(now[name]) for name in ("parents", "failingParents", "parts", "waiting", "inFlight"))
    return (
        str(now["controller"]),
        "yes" if now["ready"] else str(now["reason"]),
        *numbers,
        f"{now['oldestSeconds']:.1f}s",
        _rate(now, before, "synced", seconds),
        _rate(now, before, "retries", seconds),
        _duration(quantile(durations, 0.5)),
        _duration(quantile(durations, 0.99)),
    )


def _rate(now: JsonObject, before: JsonObject | None, name: str, seconds: float) -> str:
    if before is None or seconds <= 0:
        return "-"
    return f"{max(0.0, float(str(now[name])) - float(str(before[name]))) / seconds:.1f}"


def _duration(seconds: float) -> str:
    if not seconds:
        return "-"
    return ">1000s" if seconds == inf else f"<{seconds:g}s"


Buckets = Sequence[tuple[float, int]]


def _buckets(controller: JsonObject) -> Buckets:
    """Upper bounds of durations, each with how many syncs took no longer; the last bound is infinite."""
    worked = controller.get("workedBuckets")
    pairs: Iterable[object] = worked if is_array(worked) else ()
    return [(inf if bound is None else float(bound), int(count)) for bound, count in pairs]  # type: ignore[misc, has-type]


def _difference(now: Buckets, before: Buckets) -> Buckets:
    """What was added since; all of it where the counts began anew meanwhile."""
    counts = dict(before)
    added = [(bound, count - counts.get(bound, 0)) for bound, count in now]
    return now if any(count < 0 for _, count in added) else added


def quantile(buckets: Buckets, share: float) -> float:
    """The bound within which this share of the durations lies; 0 where there are none."""
    total = buckets[-1][1] if buckets else 0
    return next((bound for bound, count in buckets if count >= share * total), 0.0) if total else 0.0
