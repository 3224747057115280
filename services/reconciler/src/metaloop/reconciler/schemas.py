"""Fetches the schemas of the kinds that children have from the API server's OpenAPI, in the background.

Each kind's is fetched when it is first asked for. The first sync of a kind waits for that a moment; later ones don't wait, and none ever fails for it: where the API
server doesn't tell a schema, a guess stands in. The index, which has a hash of each document, is looked at again when children differ from what is desired, and from
time to time.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Final, Protocol

from metaloop.common.errors import MetaloopError
from metaloop.common.json import JSONDecodeError, JsonObject, is_object, loads
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.reconciler.core.apply.openapi import schema_of
from metaloop.reconciler.core.apply.schema import Schema, guessed_schema

log = get_logger()

INDEX: Final = "/openapi/v3"
_GOOD_FOR_SECONDS: Final = 600.0
_RETRY_SECONDS: Final = 30.0
_PATIENCE_SECONDS: Final = 2.0


class Source(Protocol):
    """Where OpenAPI documents come from."""

    async def request(self, method: str, path: str) -> bytes:
        """The body of an answer. Raises what `metaloop.common.kube.errors` draws."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """A schema, None where the document has none, and the address of that document, which has its hash in it."""

    schema: Schema | None
    address: str


class Schemas:
    """What is known of each kind; `run` keeps it so."""

    def __init__(self, source: Source, *, clock: Callable[[], float] = monotonic) -> None:
        self._source = source
        self._clock = clock
        self._known: dict[ResourceInfo, _Known] = {}
        self._asked: set[ResourceInfo] = set()
        """Kinds that were asked for, and whose document wasn't looked at yet."""
        self._good_until = 0.0
        """When the index is looked at again, if a schema is asked for then."""
        self._suspicious_from = 0.0
        """When it is looked at again, if something differs then."""
        self._wake = asyncio.Event()
        self._tried: set[ResourceInfo] = set()
        """Kinds of which it is known what can be known now."""
        self._news = asyncio.Event()
        """Replaced by another, after it was set, whenever kinds were tried."""

    def of(self, info: ResourceInfo) -> Schema:
        """What is known of a kind now."""
        known = self._known.get(info)
        if known is None and info not in self._asked:
            self._asked.add(info)
            self._wake.set()
        elif self._clock() >= self._good_until:
            self._wake.set()
        schema = known.schema if known is not None else None
        return schema if schema is not None else guessed_schema(info)

    def recheck(self) -> None:
        """Something differs from what is desired: schemas that are not quite new are looked at again, they may have changed."""
        if self._clock() >= self._suspicious_from:
            self._wake.set()

    async def wait_for(self, infos: Iterable[ResourceInfo]) -> None:
        """Returns when each kind's schema was fetched, or at least asked for; or when that takes long."""
        if self._tried.issuperset(infos):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_SECONDS):
                for info in infos:
                    self.of(info)
                while not self._tried.issuperset(infos):
                    await self._news.wait()
        # Whoever waited once doesn't wait again.
        self._tried.update(infos)

    async def run(self) -> None:
        """Fetches what is asked for, for ever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            asked = {*self._known, *self._asked}
            try:
                self._good_until = self._clock() + await self._refresh()
            except Exception:  # the top of this loop: a document that makes no sense leaves its kinds to be guessed
                log.exception("schemas.crashed")
                self._good_until = self._clock() + _RETRY_SECONDS
            self._suspicious_from = self._clock() + _RETRY_SECONDS
            self._tried |= asked
            self._news.set()
            self._news = asyncio.Event()

    async def _refresh(self) -> float:
        """Brings all schemas up to date; for how long that is good."""
        try:
            addresses = _addresses(loads(await self._source.request("GET", INDEX)))
            for group_version in {info.api_version for info in (*self._known, *self._asked)}:
                await self._refresh_version(group_version, addresses.get(group_version, ""))
        except (MetaloopError, JSONDecodeError) as error:
            log.warning("schemas.unknown", **{fields.ERROR: str(error)})
            return _RETRY_SECONDS
        return _GOOD_FOR_SECONDS

    async def _refresh_version(self, api_version: str, address: str) -> None:
        infos = [info for info in (*self._known, *self._asked) if info.api_version == api_version]
        stale = [info for info in infos if info not in self._known or self._known[info].address != address]
        if not stale:
            return
        document = loads(await self._source.request("GET", address)) if address else {}
        self._take(stale, document if is_object(document) else {}, address)

    def _take(self, infos: Iterable[ResourceInfo], document: JsonObject, address: str) -> None:
        for info in infos:
            self._known[info] = _Known(schema_of(document, info), address)
            self._asked.discard(info)


def _addresses(index: object) -> dict[str, str]:
    """Where the document of each apiVersion is."""
    paths = unstructured.child_object(index, "paths") if is_object(index) else {}
    return {
        path.removeprefix("apis/").removeprefix("api/"): unstructured.text(entry, "serverRelativeURL")
        for path, entry in paths.items()
        if is_object(entry)
    }
