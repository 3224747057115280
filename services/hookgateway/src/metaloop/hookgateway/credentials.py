"""Reads CA bundles, client certificates and tokens from Secrets and ConfigMaps, and follows their changes."""

import asyncio
from contextlib import aclosing
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from metaloop.common.errors import MetaloopError
from metaloop.common.kube.errors import Forbidden
from metaloop.common.telemetry import fields, get_logger
from metaloop.hookgateway.core.connection import PLAIN, Referent
from metaloop.hookgateway.core.credentials import NO_CREDENTIALS, Credentials, credentials_from
from metaloop.hookgateway.core.endpoint import Endpoint
from metaloop.hookgateway.errors import CredentialsUnavailable
from metaloop.hookgateway.follow import Contents, Follow

FIRST_READ_SECONDS: Final = 5.0
"""How long a call waits for a Secret that no call needed before."""

RETRY_SECONDS: Final = (0.2, 1.0, 5.0)
"""How long to wait after so many failures in a row: within the last of these, a permission that is granted is noticed."""

log = get_logger()


@dataclass(slots=True)
class Followed:
    """A Secret or ConfigMap as we last saw it."""

    referent: Referent
    contents: Contents = field(default=None, repr=False)
    version: int = 0
    """Grows with each change: what was made of another version is out of date. 0 until it has been read once."""

    trouble: str = ""
    """Why reading it failed last, if it did. What we knew before stays in use."""

    failures: int = 0
    """In a row."""

    used_at: float = field(default_factory=monotonic)
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the first attempt to read it is over, well or badly."""

    follower: asyncio.Task[None] | None = None

    def holds(self, contents: Contents) -> None:
        """Take in what it holds now."""
        if contents != self.contents or not self.version:
            self.contents, self.version = contents, self.version + 1
        self.trouble, self.failures = "", 0
        self.settled.set()

    def cannot_be_read(self, trouble: str) -> None:
        """Note a failure."""
        self.trouble, self.failures = trouble, self.failures + 1
        self.settled.set()


@dataclass(slots=True)
class Made:
    """Credentials, and the versions of the objects that they were made of."""

    credentials: Credentials
    versions: tuple[int, ...]
    used_at: float


class CredentialStore:
    """The credentials of every endpoint in use, made anew when a Secret or ConfigMap of theirs has changed."""

    def __init__(self, follow: Follow) -> None:
        self._follow = follow
        self._followed: dict[Referent, Followed] = {}
        """Exactly what endpoints in use refer to; each entry has a follower, or waits in `_new` for one."""

        self._new: asyncio.Queue[Followed] = asyncio.Queue()
        self._made: dict[Endpoint, Made] = {}
        """An endpoint's credentials stay the same object while nothing changes: pools of connections go by that."""

    async def run(self) -> None:
        """Follow what is referred to, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                followed = await self._new.get()
                followed.follower = tasks.create_task(self._keep_current(followed))

    async def credentials_of(self, endpoint: Endpoint) -> Credentials:
        """The endpoint's credentials as of now; raises CredentialsUnavailable or CredentialsInvalid, which name the object."""
        if endpoint.connection is PLAIN and not endpoint.confidential:
            return NO_CREDENTIALS
        followed = [await self._read(referent) for referent in endpoint.connection.referents()]
        made = self._made.get(endpoint)
        if made is None or made.versions != tuple(each.version for each in followed):
            made = self._made[endpoint] = _made(endpoint, followed)
        made.used_at = monotonic()
        return made.credentials

    def forget_unused_since(self, moment: float) -> None:
        """Follow no longer what no call has needed since then, and drop what was made of it."""
        for followed in [followed for followed in self._followed.values() if followed.used_at < moment]:
            del self._followed[followed.referent]
            if followed.follower is not None:
                followed.follower.cancel()
        self._made = {endpoint: made for endpoint, made in self._made.items() if made.used_at >= moment}

    async def _read(self, referent: Referent) -> Followed:
        """The object, read at least once; raises CredentialsUnavailable."""
        followed = self._followed.get(referent)
        if followed is None:
            followed = self._followed[referent] = Followed(referent)
            self._new.put_nowait(followed)
        followed.used_at = monotonic()
        if not followed.version:
            await _first_read(followed)
        return followed

    async def _keep_current(self, followed: Followed) -> None:
        """Keep an object's contents equal to the cluster's, until cancelled."""
        while True:
            try:
                await self._take_in(followed)
            except MetaloopError as problem:
                followed.cannot_be_read(_explained(problem))
                log.warning("credentials.unreadable", **{fields.NAME: str(followed.referent), fields.ERROR: followed.trouble})
            await asyncio.sleep(RETRY_SECONDS[min(followed.failures, len(RETRY_SECONDS) - 1)])

    async def _take_in(self, followed: Followed) -> None:
        async with aclosing(self._follow(followed.referent)) as states:
            async for contents in states:
                followed.holds(contents)


def _made(endpoint: Endpoint, followed: list[Followed]) -> Made:
    contents = {each.referent: each.contents for each in followed if each.contents is not None}
    return Made(credentials_from(endpoint, contents), tuple(each.version for each in followed), used_at=monotonic())


async def _first_read(followed: Followed) -> None:
    try:
        async with asyncio.timeout(FIRST_READ_SECONDS):
            await followed.settled.wait()
    except TimeoutError as error:
        raise CredentialsUnavailable(f"{followed.referent} was not read within {FIRST_READ_SECONDS:g} s") from error
    if not followed.version:
        raise CredentialsUnavailable(f"{followed.referent} can't be read: {followed.trouble}")


def _explained(problem: MetaloopError) -> str:
    if isinstance(problem, Forbidden):
        return f"the gateway lacks the permission to list and watch it. {problem}"
    return str(problem)
