"""Which replica of this shard may dispatch: a Lease, and a warm standby."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeAlias

from metaloop.common.errors import Conflict, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import AlreadyExists, NotFound
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within
from metaloop.watcher.core.election import Election, LeaseRecord
from metaloop.watcher.errors import NotLeading

log = get_logger()

LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)

Reign: TypeAlias = Callable[[], Awaitable[object]]
"""What a leader does, until it is cancelled."""
Herald: TypeAlias = Callable[[], Awaitable[object]]
"""Tells the other candidates that the Lease is free."""

_RESIGN_SECONDS = 1.0
_CUT_OFF = "metaloop.dev/cut-off"
_WANTED_BY = "metaloop.dev/wanted-by"


def now_awake_or_asleep() -> float:
    """Seconds on a clock that goes on while this process is stopped, and while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Leader:
    """One candidate for the leadership of a shard."""

    def __init__(self, kube: KubeClient, election: Election, *, namespace: str, name: str) -> None:
        self._kube = kube
        self._election = election
        self._namespace = namespace
        self._name = name
        self._wakened = asyncio.Event()
        self.on_resigned: Herald = _nobody_waits
        """What is done once the Lease is given back."""
        self.is_cut_off: Callable[[], bool] = _never
        """Whether we have been out of reach of those whom we would lead for longer than the lease."""

    def wake(self) -> None:
        """Look at the Lease now, if it isn't ours: there is reason to think that it is free."""
        self._wakened.set()

    def leads(self) -> bool:
        """Whether we lead at this moment: to be asked before each word that only a leader may say."""
        return self._election.holds(now_awake_or_asleep())

    async def run(self, reign: Reign) -> None:
        """Lead whenever nobody else does, for ever: `reign` runs while we lead, and is over before anybody else may begin."""
        try:
            while True:
                await self._win()
                log.info("leader.won", lease=self._name)
                await self._lead(reign)
                log.warning("leader.lost", lease=self._name)
                await self._resign()
        finally:
            await self._resign()

    async def _win(self) -> None:
        while True:
            try:
                self._election.see(await self._read(), now=now_awake_or_asleep())
                if await self._may_begin():
                    return
            except (AlreadyExists, Conflict):
                pass  # somebody was faster
            except MetaloopError as error:
                log.warning("leader.unknown", **{fields.ERROR: str(error)})
            await is_set_within(self._wakened, self._election.retry_seconds / 2)
            self._wakened.clear()

    async def _may_begin(self) -> bool:
        """Whether we have the Lease, which who is cut off leaves to others; a holder that is cut off is asked for it."""
        if self.is_cut_off():
            return False
        if self._election.may_take(now_awake_or_asleep()):
            await self._bid()
            return True
        if self._election.may_ask:
            self._election.see(await self._write(self._election.request()), now=now_awake_or_asleep())
            log.info("leader.asked", lease=self._name)
        return False

    async def _lead(self, reign: Reign) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                reigning = tasks.create_task(_until_cancelled(reign), name="reign")
                await self._keep()
                reigning.cancel()
        except* NotLeading:
            pass  # the reign noticed before we did

    async def _keep(self) -> None:
        """Renew the Lease for as long as that works in time; return when it is ours no more, or somebody should have it who can do more with it."""
        while self.leads():
            await asyncio.sleep(min(self._election.retry_seconds, self._election.seconds_left(now_awake_or_asleep())))
            with suppress(TimeoutError):
                async with asyncio.timeout(self._election.seconds_left(now_awake_or_asleep())):
                    if not await self._renew() or (self._election.record.wanted_by and self.is_cut_off()):
                        return

    async def _renew(self) -> bool:
        """Whether the Lease may still be ours."""
        try:
            await self._bid()
        except (Conflict, NotFound):
            return await self._is_still_ours()
        except MetaloopError as error:
            log.warning("leader.unsure", **{fields.ERROR: str(error)})
        return True

    async def _is_still_ours(self) -> bool:
        """Somebody wrote to the Lease, or it is gone: if it names us, or nobody, it can be renewed with the next try."""
        try:
            self._election.see(await self._read(), now=now_awake_or_asleep())
        except MetaloopError:
            return True
        return self._election.record.holder in {"", self._election.identity}

    async def _bid(self) -> None:
        sent = now_awake_or_asleep()
        written = await self._write(self._election.bid(at=_wall_clock(), is_cut_off=self.is_cut_off()))
        self._election.won(written, sent=sent, now=now_awake_or_asleep())

    async def _resign(self) -> None:
        """Let others begin at once; where that fails, they wait until the lease is over."""
        if not self.leads():
            return
        record = self._election.resign(at=_wall_clock())
        with suppress(MetaloopError, TimeoutError):
            async with asyncio.timeout(_RESIGN_SECONDS):
                await self._write(record)
                log.info("leader.resigned", lease=self._name)
                await self.on_resigned()

    async def _read(self) -> LeaseRecord:
        try:
            return _record(await self._kube.get(LEASES, self._namespace, self._name))
        except NotFound:
            return LeaseRecord()

    async def _write(self, record: LeaseRecord) -> LeaseRecord:
        lease = _lease(record, namespace=self._namespace, name=self._name)
        if record.resource_version:
            return _record(await self._kube.replace(LEASES, lease))
        return _record(await self._kube.create(LEASES, lease))


async def _nobody_waits() -> None:
    """Where nobody listens, the others look at the Lease now and then."""


def _never() -> bool:
    return False


async def _until_cancelled(reign: Reign) -> None:
    await reign()


def _record(lease: JsonObject) -> LeaseRecord:
    spec, annotations = unstructured.child_object(lease, "spec"), unstructured.annotations(lease)
    return LeaseRecord(
        holder=unstructured.text(spec, "holderIdentity"),
        duration_seconds=unstructured.integer(spec, "leaseDurationSeconds"),
        acquired=unstructured.text(spec, "acquireTime"),
        renewed=unstructured.text(spec, "renewTime"),
        transitions=unstructured.integer(spec, "leaseTransitions"),
        resource_version=unstructured.resource_version(lease),
        is_cut_off=_CUT_OFF in annotations,
        wanted_by=annotations.get(_WANTED_BY, ""),
    )


def _lease(record: LeaseRecord, *, namespace: str, name: str) -> JsonObject:
    metadata: JsonObject = {"namespace": namespace, "name": name}
    if record.resource_version:
        metadata["resourceVersion"] = record.resource_version
    if record.is_cut_off:
        metadata["annotations"] = {_CUT_OFF: "true", **({_WANTED_BY: record.wanted_by} if record.wanted_by else {})}
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": metadata,
        "spec": {
            "holderIdentity": record.holder,
            "leaseDurationSeconds": record.duration_seconds,
            "acquireTime": record.acquired,
            "renewTime": record.renewed,
            "leaseTransitions": record.transitions,
        },
    }


def _wall_clock() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
