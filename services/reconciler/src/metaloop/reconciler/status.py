"""Writes the parent's status, where it differs from the one that is stored."""

from typing import Final

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.report import Write
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.core.status import is_stored, next_status, with_status
from metaloop.reconciler.ports import Api, LeaseGuard

_RETRIES: Final = 4


class StatusWriter:
    """Writes the status of any parent."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def write(self, observed: Observed, answered: JsonObject | None, *, lease: LeaseGuard) -> Write | None:
        """Makes the stored status the one that the hook `answered`, and returns the write; None where there was none to do.

        The parent is read live only after a conflict, when its metadata or spec have changed since it was observed: the status says by its
        `observedGeneration` what it is true of, so it may still be written. A parent that is gone needs none.
        """
        status = next_status(observed.parent, answered)
        target = observed.parent
        for retries_left in reversed(range(_RETRIES + 1)):
            if not observed.info.has_status or is_stored(target, status):
                return None
            lease.check()
            try:
                return _write(observed, await self._api.replace(observed.info, with_status(target, status), subresource="status"))
            except (Conflict, NotFound):
                if not retries_left:
                    raise
            live = await self._live(observed)
            if live is None:
                return None
            target = live
        return None

    async def _live(self, observed: Observed) -> JsonObject | None:
        try:
            live = await self._api.get(observed.info, observed.namespace, observed.name)
        except NotFound:
            return None
        return live if unstructured.uid(live) == observed.uid else None


def _write(observed: Observed, written: JsonObject) -> Write:
    return Write(
        resource=observed.info.id,
        namespace=observed.namespace,
        name=observed.name,
        uid=observed.uid,
        resource_version=unstructured.resource_version(written),
    )
