"""What the API server serves, as far as is known: by discovery, asked now and then, and by two watches ahead of it.

CRD         says itself what is served for it
APIService  says which version another API server serves; discovery then asks for that version itself
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from metaloop.common.errors import MetaloopError
from metaloop.common.kube.discovery import Discovery
from metaloop.common.objects.resource import ResourceId, ResourceInfo
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.apiservice import version_passed_on
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.crd import CrdResources
from metaloop.watcher.core.record import ObjectKey

log = get_logger()

CRDS: Final = ResourceInfo(
    api_version="apiextensions.k8s.io/v1",
    resource="customresourcedefinitions",
    kind="CustomResourceDefinition",
    namespaced=False,
    has_status=True,
)
API_SERVICES: Final = ResourceId("apiregistration.k8s.io/v1", "apiservices")
"""Not served everywhere: not every API server passes requests on to others."""

_PAUSE_SECONDS = 0.1
"""CRDs arrive in bursts, and discovery lists what became of them a moment later."""
_RETRY_SECONDS = 1.0


class Served:
    """The resources of the API server. As an observer, it takes the changes of CRDs and APIServices."""

    def __init__(self, discovery: Discovery, *, interval_seconds: float, changed: asyncio.Event) -> None:
        self._discovery = discovery
        self._interval_seconds = interval_seconds
        self._changed = changed
        self.version = 0
        """How often `resources` may have changed, or a server came back. `changed` is set each time."""
        self._crds = CrdResources()
        self._passed_on: dict[ObjectKey, str] = {}
        """The version for which each APIService passes requests on, where that server is available."""
        self._resources: Mapping[ResourceId, ResourceInfo] = {}
        self._may_differ = asyncio.Event()

    @property
    def resources(self) -> Mapping[ResourceId, ResourceInfo]:
        """Everything that is served; empty before discovery succeeded for the first time."""
        return self._resources

    def take(self, change: Change) -> None:
        """A CRD or an APIService changed."""
        if change.resource.id == API_SERVICES:
            self._take_api_service(change)
        else:
            self._take_crd(change)

    async def run(self) -> None:
        """Ask discovery until cancelled: at once when a CRD or an APIService changes, and now and then."""
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

    def _take_crd(self, crd: Change) -> None:
        self._crds.take(crd.key, crd.new.parse() if crd.new is not None else None)
        self._may_differ.set()
        self._combine()

    def _take_api_service(self, api_service: Change) -> None:
        before = self._passed_on.pop(api_service.key, "")
        now = version_passed_on(api_service.new.parse()) if api_service.new is not None else ""
        if now:
            self._passed_on[api_service.key] = now
            self._crds.pass_on(now)
        if now != before:
            self._may_differ.set()
        if now and not before:
            self._report_change()

    async def _until_it_may_differ(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._may_differ.wait()
                await asyncio.sleep(_PAUSE_SECONDS)

    def _combine(self) -> None:
        discovered = self._discovery.resources()
        if not discovered:
            return
        resources = self._crds.prevail_over(discovered)
        if resources != self._resources:
            self._resources = resources
            self._report_change()

    def _report_change(self) -> None:
        self.version += 1
        self._changed.set()
