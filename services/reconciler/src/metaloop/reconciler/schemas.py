"""Fetches the schemas of the children's kinds from the API server's OpenAPI, in the background.

The schema of a kind is fetched when it is first needed. The first sync of a kind waits a moment for it; later ones
don't. No sync ever fails for it: while the API server does not provide a schema, a guessed one is used. The OpenAPI
index, which has a hash of each document, is read again from time to time, and when a child differs from what is
desired.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Protocol

from metaloop.common.crashes import crash_logged
from metaloop.common.errors import MetaloopError
from metaloop.common.json import JSONDecodeError, JsonObject, is_object, loads
from metaloop.common.machine import monotonic
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.reconciler.core.apply.openapi import schema_of
from metaloop.reconciler.core.apply.schema import Schema, guessed_schema

log = get_logger()

INDEX: Final = "/openapi/v3"
_VALID_SECONDS: Final = 600.0
_RETRY_SECONDS: Final = 30.0
_WAIT_SECONDS: Final = 2.0


class Source(Protocol):
    """The API server, as the source of OpenAPI documents."""

    async def request(self, method: str, path: str) -> bytes:
        """The body of the response. Raises the errors of `metaloop.common.kube.errors`."""
        ...


@dataclass(frozen=True, slots=True)
class _Known:
    """The schema of a kind, None if its document has none, and the path of that document, which contains its hash."""

    schema: Schema | None
    path: str


class Schemas:
    """The schema of each kind that was asked for. `run` keeps them up to date."""

    def __init__(self, source: Source, *, clock: Callable[[], float] = monotonic) -> None:
        self._source = source
        self._clock = clock
        self._known: dict[ResourceInfo, _Known] = {}
        self._asked: set[ResourceInfo] = set()
        """Kinds that were asked for, and whose document was not fetched yet."""
        self._valid_until = 0.0
        """The first request for a schema after this refreshes all of them."""
        self._recheck_from = 0.0
        """The first drifted child after this refreshes them, too."""
        self._wake = asyncio.Event()
        self._tried: set[ResourceInfo] = set()
        """Kinds for which a fetch was tried. Nobody waits for these."""
        self._refreshed = asyncio.Event()
        """Set after each refresh, and then replaced by another event."""

    def of(self, info: ResourceInfo) -> Schema:
        """The schema of a kind, as far as it is known now."""
        known = self._known.get(info)
        if known is None and info not in self._asked:
            self._asked.add(info)
            self._wake.set()
        elif self._clock() >= self._valid_until:
            self._wake.set()
        schema = known.schema if known is not None else None
        return schema if schema is not None else guessed_schema(info)

    def recheck(self) -> None:
        """Refreshes the schemas, unless they are recent: a child has drifted, perhaps because its schema changed."""
        if self._clock() >= self._recheck_from:
            self._wake.set()

    async def wait_for(self, infos: Iterable[ResourceInfo]) -> None:
        """Returns when a fetch was tried for each of these kinds, or after a short time."""
        if self._tried.issuperset(infos):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                for info in infos:
                    self.of(info)
                while not self._tried.issuperset(infos):
                    await self._refreshed.wait()
        # Nobody waits for the same kind twice.
        self._tried.update(infos)

    async def run(self) -> None:
        """Fetches schemas until it is cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            asked = {*self._known, *self._asked}
            self._valid_until = self._clock() + await self._refresh()
            self._recheck_from = self._clock() + _RETRY_SECONDS
            self._tried |= asked
            self._refreshed.set()
            self._refreshed = asyncio.Event()

    async def _refresh(self) -> float:
        """Brings all schemas up to date. Returns for how long they are valid."""
        try:
            paths = _document_paths(loads(await self._source.request("GET", INDEX)))
        except (MetaloopError, JSONDecodeError) as error:
            log.warning("schemas.unknown", **{fields.ERROR: str(error)})
            return _RETRY_SECONDS
        versions = dict.fromkeys(info.api_version for info in (*self._known, *self._asked))
        are_read = [await self._is_read(version, paths.get(version, "")) for version in versions]
        return _VALID_SECONDS if all(are_read) else _RETRY_SECONDS

    async def _is_read(self, api_version: str, path: str) -> bool:
        """Whether a version's document could be read. If not, its kinds keep their schemas, and all others go on."""
        with crash_logged("schemas.malformed", group_version=api_version):  # what is served may be anything
            try:
                await self._refresh_version(api_version, path)
            except (MetaloopError, JSONDecodeError) as error:
                log.warning("schemas.unknown", **{fields.GROUP_VERSION: api_version, fields.ERROR: str(error)})
            else:
                return True
        return False

    async def _refresh_version(self, api_version: str, path: str) -> None:
        infos = [info for info in (*self._known, *self._asked) if info.api_version == api_version]
        stale = [info for info in infos if info not in self._known or self._known[info].path != path]
        if not stale:
            return
        document = loads(await self._source.request("GET", path)) if path else {}
        self._store(stale, document if is_object(document) else {}, path)

    def _store(self, infos: Iterable[ResourceInfo], document: JsonObject, path: str) -> None:
        for info in infos:
            self._known[info] = _Known(schema_of(document, info), path)
            self._asked.discard(info)


def _document_paths(index: object) -> dict[str, str]:
    """The path of the document of each apiVersion."""
    paths = unstructured.child_object(index, "paths") if is_object(index) else {}
    return {
        path.removeprefix("apis/").removeprefix("api/"): unstructured.text(entry, "serverRelativeURL")
        for path, entry in paths.items()
        if is_object(entry)
    }
