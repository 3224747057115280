"""Writes the health of each controller into its status: rarely, and never in its first seconds."""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from metaloop.common.crashes import crash_logged
from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.machine import utc_now
from metaloop.common.objects import unstructured
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.health import ControllerHealth, HealthSummary, status_of

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusIntervals:
    """How often the health is checked, and how rarely it is written."""

    check_seconds: float = 1.0
    first_seconds: float = 5.0
    """How long a new or edited controller is not written, so that its author meets no conflict."""
    condition_seconds: float = 5.0
    """The shortest time between two writes where a condition changed."""
    count_seconds: float = 30.0
    """The shortest time between two writes where only counts or messages changed."""
    settle_seconds: float = 30.0
    """How long the last status stands while some parents have not been synced, after a change of leader or spec."""

    @classmethod
    def scaled(cls, condition_seconds: float) -> "StatusIntervals":
        """The default intervals, all shorter or longer in proportion; health is checked every second at least."""
        default = cls()
        by = condition_seconds / default.condition_seconds
        return cls(
            check_seconds=min(default.check_seconds, default.check_seconds * by),
            first_seconds=default.first_seconds * by,
            condition_seconds=condition_seconds,
            count_seconds=default.count_seconds * by,
            settle_seconds=default.settle_seconds * by,
        )


HealthSource: TypeAlias = Callable[[], Iterable[ControllerHealth]]


@dataclass(slots=True)
class _Written:
    """What is known of the status of one controller."""

    generation: int
    quiet_until: float
    last: HealthSummary | None = None
    last_at: float = float("-inf")
    unsettled_since: float | None = None


class HealthWriter:
    """Checks all controllers every `check_seconds` while it runs."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        source: HealthSource,
        clock: Callable[[], float],
        leads: Callable[[], bool],
        intervals: StatusIntervals,
    ) -> None:
        self._kube = kube
        self._leads = leads
        """Whether this watcher leads now. Asked before each write, as the process may have stalled since the last."""
        self._source = source
        self._clock = clock
        self._intervals = intervals
        self._written: dict[str, _Written] = {}
        """By the UID of the controller."""

    async def run(self) -> None:
        """Check and write until cancelled."""
        while True:
            await asyncio.sleep(self._intervals.check_seconds)
            current: dict[str, _Written] = {}
            for health in tuple(self._source()):
                uid = unstructured.uid(health.raw)
                current[uid] = written = self._written_of(uid, unstructured.generation(health.raw))
                if self._is_due(written, health.summary) and self._leads():
                    with crash_logged("health.crashed", name=unstructured.describe(health.raw)):
                        await self._write(written, health)
            self._written = current

    def _written_of(self, uid: str, generation: int) -> _Written:
        written = self._written.get(uid)
        if written is None:
            return _Written(generation, self._clock() + self._intervals.first_seconds)
        if written.generation != generation:
            written.generation, written.quiet_until = generation, self._clock() + self._intervals.first_seconds
        return written

    def _is_due(self, written: _Written, summary: HealthSummary) -> bool:
        now = self._clock()
        written.unsettled_since = None if summary.is_settled else written.unsettled_since or now
        settled_at = (written.unsettled_since or -math.inf) + self._intervals.settle_seconds
        if summary == written.last or now < written.quiet_until or now < settled_at:
            return False
        is_turn = written.last is None or written.last.condition != summary.condition
        return now >= written.last_at + (self._intervals.condition_seconds if is_turn else self._intervals.count_seconds)

    async def _write(self, written: _Written, health: ControllerHealth) -> None:
        """Write the status unless it says the same. A failed write is repeated when the next one would be due."""
        raw = health.raw
        written.last_at = self._clock()
        before = unstructured.child_object(raw, "status")
        status = status_of(health.summary, before, at=utc_now().strftime("%Y-%m-%dT%H:%M:%SZ"))
        if status != before:
            patch: JsonObject = {"metadata": {"uid": unstructured.uid(raw)}, "status": status}
            try:
                await self._kube.patch(health.resource, "", unstructured.name(raw), dumps(patch), MERGE_PATCH, subresource="status")
            except MetaloopError as error:
                log.warning("health.write_failed", **{fields.NAME: unstructured.describe(raw), fields.ERROR: str(error)})
                return
        written.last = health.summary
