"""What the API server serves, as far as we know: discovery, asked now and then, and what is watched and so ahead of it.

CRD         says itself what is served for it
APIService  says which version another API server serves: what that is, the version is asked itself, whatever discovery lists of it
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from metaloop.common.errors import MetaloopError
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.apiservice import version_passed_on
from metaloop.watcher.core.crd import resources_of
from metaloop.watcher.core.event import Change
from metaloop.watcher.core.record import ObjectKey

log = get_logger()

_PAUSE_SECONDS = 0.1
"""CRDs come in bursts, and discovery tells of what became of them a moment later."""
_RETRY_SECONDS = 1.0


class Served:
    """The resources of the API server."""

    def __init__(self, discovery: Discovery, *, interval_seconds: float, on_change: Callable[[], None]) -> None:
        self._discovery = discovery
        self._interval_seconds = interval_seconds
        self._on_change = on_change
        """Called whenever `resources` may have changed, or what was away is back."""
        self._of_crds: dict[ObjectKey, tuple[ResourceInfo, ...]] = {}
        """What each CRD has the API server serve. They are ahead of discovery, so they prevail."""
        self._passed_on: dict[ObjectKey, str] = {}
        """The version that each APIService has another API server answer for, where that is there."""
        self._resources: Mapping[ResourceId, ResourceInfo] = {}
        self._may_differ = asyncio.Event()

    @property
    def resources(self) -> Mapping[ResourceId, ResourceInfo]:
        """Everything that is served; nothing before discovery worked for the first time."""
        return self._resources

    def take_crd(self, crd: Change) -> None:
        """A CRD came, changed or went."""
        if crd.new is None:
            self._of_crds.pop(crd.key, None)
        else:
            self._of_crds[crd.key] = resources_of(crd.new.parse())
        self._may_differ.set()
        self._combine()

    def take_api_service(self, api_service: Change) -> None:
        """An APIService came, changed or went, or the API server behind it did."""
        before = self._passed_on.pop(api_service.key, "")
        now = version_passed_on(api_service.new.parse()) if api_service.new is not None else ""
        if now:
            self._passed_on[api_service.key] = now
        if now != before:
            self._may_differ.set()
        if now and not before:
            self._on_change()

    async def run(self) -> None:
        """Ask discovery for ever: at once when a CRD or an APIService changes, and now and then for what is served without one."""
        while True:
            self._may_differ.clear()
            pause_seconds = self._interval_seconds
            try:
                await self._discovery.refresh(announced=frozenset(self._passed_on.values()))
            except (MetaloopError, OSError) as error:
                log.warning("discovery.failed", **{fields.ERROR: str(error)})
                pause_seconds = min(pause_seconds, _RETRY_SECONDS)
            self._combine()
            await self._until_it_may_differ(pause_seconds)

    async def _until_it_may_differ(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._may_differ.wait()
                await asyncio.sleep(_PAUSE_SECONDS)

    def _combine(self) -> None:
        discovered = self._discovery.resources()
        if not discovered:
            return
        of_crds = {info.id: info for infos in self._of_crds.values() for info in infos}
        resources = {**discovered, **of_crds}
        if resources != self._resources:
            self._resources = resources
            self._on_change()
