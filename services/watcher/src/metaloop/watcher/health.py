"""Writes how each controller fares into its status: seldom, never in its first seconds, and only where it says something new."""

import asyncio
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeAlias

from metaloop.common.errors import MetaloopError
from metaloop.common.json import JsonObject, dumps
from metaloop.common.kube.client import MERGE_PATCH, KubeClient
from metaloop.common.objects import unstructured
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.health import Health, Patient, status_of

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often is looked, and how seldom written."""

    look_seconds: float = 1.0
    first_seconds: float = 5.0
    """Who creates a controller, or edits its spec, and updates what came back must not meet a conflict: so long we don't write to it."""
    turn_seconds: float = 5.0
    """A condition that changed is told no sooner than this after what was told last."""
    count_seconds: float = 30.0
    """Numbers and words are told no more often than this."""
    settle_seconds: float = 30.0
    """So long what was told last stands, while it isn't known yet how all parents fare: after a change of leader, or of the spec."""


Patients: TypeAlias = Callable[[], Iterable[Patient]]


_USUAL = Pace()


@dataclass(slots=True)
class _Chart:
    """What we know of the status of one controller."""

    generation: int
    quiet_until: float
    told: Health | None = None
    told_at: float = float("-inf")
    unsettled_since: float | None = None


class HealthWriter:
    """Looks at all controllers every second, for as long as it runs."""

    def __init__(
        self, kube: KubeClient, *, patients: Patients, clock: Callable[[], float], leads: Callable[[], bool], pace: Pace = _USUAL
    ) -> None:
        self._kube = kube
        self._leads = leads
        """Whether it is ours to write at this moment: to be asked before each write, since we may have slept after the last."""
        self._patients = patients
        self._clock = clock
        self._pace = pace
        self._charts: dict[str, _Chart] = {}
        """By the UID of the controller."""

    async def run(self) -> None:
        """Write for ever."""
        while True:
            await asyncio.sleep(self._pace.look_seconds)
            charts: dict[str, _Chart] = {}
            for patient in tuple(self._patients()):
                uid = unstructured.uid(patient.raw)
                charts[uid] = chart = self._chart(uid, unstructured.generation(patient.raw))
                if self._is_due(chart, patient.health) and self._leads():
                    await self._tell(chart, patient)
            self._charts = charts

    def _chart(self, uid: str, generation: int) -> _Chart:
        chart = self._charts.get(uid)
        if chart is None:
            return _Chart(generation, self._clock() + self._pace.first_seconds)
        if chart.generation != generation:
            chart.generation, chart.quiet_until = generation, self._clock() + self._pace.first_seconds
        return chart

    def _is_due(self, chart: _Chart, health: Health) -> bool:
        now = self._clock()
        chart.unsettled_since = None if health.is_settled else chart.unsettled_since or now
        if health == chart.told or now < chart.quiet_until or now < (chart.unsettled_since or -math.inf) + self._pace.settle_seconds:
            return False
        turned = chart.told is None or chart.told.condition != health.condition
        return now >= chart.told_at + (self._pace.turn_seconds if turned else self._pace.count_seconds)

    async def _tell(self, chart: _Chart, patient: Patient) -> None:
        """Have it said, unless it is there already; a failed attempt is repeated when it would be due next."""
        raw = patient.raw
        chart.told_at = self._clock()
        before = unstructured.child_object(raw, "status")
        status = status_of(patient.health, before, at=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
        if status != before:
            patch: JsonObject = {"metadata": {"uid": unstructured.uid(raw)}, "status": status}
            try:
                await self._kube.patch(patient.resource, "", unstructured.name(raw), dumps(patch), MERGE_PATCH, subresource="status")
            except MetaloopError as error:
                log.warning("health.not_told", **{fields.NAME: unstructured.describe(raw), fields.ERROR: str(error)})
                return
        chart.told = patient.health
