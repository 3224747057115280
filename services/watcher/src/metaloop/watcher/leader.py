"""Leader election: of the replicas of a shard, the holder of its Lease leads; the others are warm standbys."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol, TypeAlias

from metaloop.common.errors import Conflict, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.client import KubeClient
from metaloop.common.kube.errors import AlreadyExists, NotFound
from metaloop.common.machine import boot_time, utc_now
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.common.waiting import is_set_within
from metaloop.watcher.core.election import Election, LeaseRecord
from metaloop.watcher.core.record import ObjectKey
from metaloop.watcher.errors import NotLeading

log = get_logger()

LEASES = ResourceInfo(api_version="coordination.k8s.io/v1", resource="leases", kind="Lease", namespaced=True)

Term: TypeAlias = Callable[[], Awaitable[object]]
"""What a leader does. It runs until it is cancelled."""

_RESIGN_SECONDS = 1.0
_CUT_OFF = "metaloop.dev/cut-off"
_WANTED_BY = "metaloop.dev/wanted-by"


class Leadership(Protocol):
    """Whether this watcher leads its shard, and when."""

    def leads(self) -> bool:
        """Whether this watcher leads at this moment. Ask before everything that only a leader may say."""
        ...

    async def run(self, term: Term) -> None:
        """Until cancelled: run `term` while this watcher leads. The term is over before another watcher's may begin."""
        ...


class SoleWatcher:
    """The only watcher of its shard: it always leads."""

    def leads(self) -> bool:
        """Whether it leads: always."""
        return True

    async def run(self, term: Term) -> None:
        """Run one term, which ends with the process."""
        await term()


class Candidate:
    """One of several watchers that may lead a shard.

    `announce_resignation` tells the other candidates that the Lease is free. `is_cut_off` says whether this one has not
    reached its workers for longer than the lease.
    """

    def __init__(
        self,
        kube: KubeClient,
        election: Election,
        *,
        lease: ObjectKey,
        announce_resignation: Callable[[], Awaitable[object]],
        is_cut_off: Callable[[], bool],
    ) -> None:
        self._kube = kube
        self._election = election
        self._namespace, self._name = lease
        self._announce_resignation = announce_resignation
        self._is_cut_off = is_cut_off
        self._awakened = asyncio.Event()

    def wake(self) -> None:
        """Look at the Lease now if another holds it: it may be free."""
        self._awakened.set()

    def leads(self) -> bool:
        """Whether this watcher leads at this moment."""
        return self._election.holds(boot_time())

    async def run(self, term: Term) -> None:
        """Lead whenever nobody else does, until cancelled."""
        try:
            while True:
                await self._win()
                log.info("leader.won", lease=self._name)
                await self._lead(term)
                log.warning("leader.lost", lease=self._name)
                await self._resign()
        finally:
            await self._resign()

    async def _win(self) -> None:
        while True:
            try:
                self._election.see(await self._read(), now=boot_time())
                if await self._may_begin():
                    return
            except (AlreadyExists, Conflict):
                pass  # somebody was faster
            except MetaloopError as error:
                log.warning("leader.unknown", **{fields.ERROR: str(error)})
            await is_set_within(self._awakened, self._election.retry_seconds / 2)
            self._awakened.clear()

    async def _may_begin(self) -> bool:
        """Whether the Lease is ours now.

        A candidate that is cut off doesn't take it; a holder that is cut off is asked for it.
        """
        if self._is_cut_off():
            return False
        if self._election.may_take(boot_time()):
            await self._bid()
            return True
        if self._election.may_ask:
            self._election.see(await self._write(self._election.request()), now=boot_time())
            log.info("leader.asked", lease=self._name)
        return False

    async def _lead(self, term: Term) -> None:
        try:
            async with asyncio.TaskGroup() as tasks:
                running = tasks.create_task(_until_cancelled(term), name="leader term")
                await self._keep()
                running.cancel()
        except* NotLeading:
            pass  # the term noticed before we did

    async def _keep(self) -> None:
        """Renew the Lease while that works in time.

        Return when it is lost, or when we are cut off and another candidate asked for it.
        """
        while self.leads():
            await asyncio.sleep(min(self._election.retry_seconds, self._election.seconds_left(boot_time())))
            if not await self._is_kept():
                return

    async def _is_kept(self) -> bool:
        """Whether to go on leading.

        The Lease was renewed, or may still be ours, and no candidate that reaches the workers asked for it.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(self._election.seconds_left(boot_time())):
                return await self._renew() and not (self._election.record.wanted_by and self._is_cut_off())
        return True

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
        """Whether the Lease that somebody wrote to or deleted names us, or nobody: then the next try renews it."""
        try:
            self._election.see(await self._read(), now=boot_time())
        except MetaloopError:
            return True
        return self._election.record.holder in {"", self._election.identity}

    async def _bid(self) -> None:
        sent = boot_time()
        written = await self._write(self._election.bid(at=_wall_clock(), is_cut_off=self._is_cut_off()))
        self._election.won(written, sent=sent, now=boot_time())

    async def _resign(self) -> None:
        """Free the Lease, so that another candidate can begin at once; where that fails, they wait until it expires."""
        if not self.leads():
            return
        record = self._election.resign(at=_wall_clock())
        with suppress(MetaloopError, TimeoutError):
            async with asyncio.timeout(_RESIGN_SECONDS):
                await self._write(record)
                log.info("leader.resigned", lease=self._name)
                await self._announce_resignation()

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


async def _until_cancelled(term: Term) -> None:
    await term()


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
    return utc_now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
