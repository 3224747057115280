"""Keeps the credentials of endpoints current: reads them from Secrets and ConfigMaps, and watches those for changes."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Final

from metaloop.common.crashes import crash_logged
from metaloop.common.errors import MetaloopError
from metaloop.common.kube.errors import Forbidden
from metaloop.common.machine import monotonic
from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway.core.connection import PLAIN, ObjectRef
from metaloop.hookgateway.core.credentials import NO_CREDENTIALS, Credentials, credentials_from
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.errors import CredentialsUnavailable
from metaloop.hookgateway.watch_objects import ObjectData, ObjectWatcher

FIRST_READ_SECONDS: Final = 5.0
"""How long a call waits for an object that no call needed before."""

RETRY_SECONDS: Final = (0.2, 1.0, 5.0)
"""How long to wait after so many failures in a row.

A permission that is granted is noticed within the last of these.
"""

log = get_logger()


@dataclass(slots=True)
class WatchedObject:
    """A Secret or ConfigMap as last seen."""

    ref: ObjectRef
    data: ObjectData = field(default=None, repr=False)
    version: int = 0
    """Grows with each change, 0 until the first read. Credentials built from another version are out of date."""

    problem: str = ""
    """Why the last read failed, if it did. The data from before stays in use."""

    failures: int = 0
    """In a row."""

    used_at: float = field(default_factory=monotonic)
    was_attempted: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first attempt to read it has ended, by success or failure."""

    watch_task: asyncio.Task[None] | None = None

    def update(self, data: ObjectData) -> None:
        """Note what it holds now."""
        if data != self.data or not self.version:
            self.data, self.version = data, self.version + 1
        self.problem, self.failures = "", 0
        self.was_attempted.set()

    def failed(self, problem: str) -> None:
        """Note that it can't be read."""
        self.problem, self.failures = problem, self.failures + 1
        self.was_attempted.set()


@dataclass(slots=True)
class BuiltCredentials:
    """Credentials, and the versions of the objects that they were built from."""

    credentials: Credentials
    versions: tuple[int, ...]
    used_at: float


class CredentialStore:
    """The credentials of every endpoint in use, built anew when a Secret or ConfigMap of theirs has changed."""

    def __init__(self, objects: ObjectWatcher) -> None:
        self._objects = objects
        self._watched: dict[ObjectRef, WatchedObject] = {}
        """Exactly what endpoints in use refer to. Each entry has a watch task, or waits in `_new` for one."""

        self._new: asyncio.Queue[WatchedObject] = asyncio.Queue()
        self._built: dict[Endpoint, BuiltCredentials] = {}
        """An endpoint's credentials stay the same object while nothing changes: connection pools compare identities."""

    async def run(self) -> None:
        """Watch what endpoints refer to, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                watched = await self._new.get()
                watched.watch_task = tasks.create_task(self._keep_current(watched), name=f"credential {watched.ref}")

    async def credentials_of(self, endpoint: Endpoint) -> Credentials:
        """The endpoint's credentials as of now.

        Raises CredentialsUnavailable or CredentialsInvalid, which name the object.
        """
        if endpoint.connection is PLAIN and not endpoint.confidential:
            return NO_CREDENTIALS
        watched = [await self._read(ref) for ref in endpoint.connection.object_refs()]
        built = self._built.get(endpoint)
        if built is None or built.versions != tuple(each.version for each in watched):
            built = self._built[endpoint] = _build(endpoint, watched)
        built.used_at = monotonic()
        return built.credentials

    def forget_unused_since(self, moment: float) -> None:
        """Stop watching objects that no call has needed since then, and drop the credentials built from them."""
        for watched in [watched for watched in self._watched.values() if watched.used_at < moment]:
            del self._watched[watched.ref]
            if watched.watch_task is not None:
                watched.watch_task.cancel()
        self._built = {endpoint: built for endpoint, built in self._built.items() if built.used_at >= moment}

    async def _read(self, ref: ObjectRef) -> WatchedObject:
        """The object, read at least once. Raises CredentialsUnavailable."""
        watched = self._watched.get(ref)
        if watched is None:
            watched = self._watched[ref] = WatchedObject(ref)
            self._new.put_nowait(watched)
        watched.used_at = monotonic()
        if not watched.version:
            await _first_read(watched)
        return watched

    async def _keep_current(self, watched: WatchedObject) -> None:
        """Keep an object's data equal to the cluster's, until cancelled."""
        while True:
            problem = "an unforeseen error, which the gateway's log shows"
            with crash_logged("credentials.crashed", name=str(watched.ref)):
                problem = await self._follow(watched)
            if problem:
                watched.failed(problem)
            await asyncio.sleep(RETRY_SECONDS[min(watched.failures, len(RETRY_SECONDS) - 1)])

    async def _follow(self, watched: WatchedObject) -> str:
        """Take what the object holds until its watch ends. Returns why, if it failed."""
        try:
            async with aclosing(self._objects.watch(watched.ref)) as states:
                async for data in states:
                    watched.update(data)
        except MetaloopError as problem:
            log.warning("credentials.unreadable", **{fields.NAME: str(watched.ref), fields.ERROR: _explained(problem)})
            return _explained(problem)
        return ""


def _build(endpoint: Endpoint, watched: list[WatchedObject]) -> BuiltCredentials:
    contents = {each.ref: each.data for each in watched if each.data is not None}
    return BuiltCredentials(credentials_from(endpoint, contents), tuple(each.version for each in watched), used_at=monotonic())


async def _first_read(watched: WatchedObject) -> None:
    try:
        async with asyncio.timeout(FIRST_READ_SECONDS):
            await watched.was_attempted.wait()
    except TimeoutError as error:
        raise CredentialsUnavailable(f"{watched.ref} was not read within {FIRST_READ_SECONDS:g} s") from error
    if not watched.version:
        raise CredentialsUnavailable(f"{watched.ref} can't be read: {watched.problem}")


def _explained(problem: MetaloopError) -> str:
    if isinstance(problem, Forbidden):
        return f"the gateway lacks the permission to list and watch it. {problem}"
    return str(problem)
