"""Writes to the parent itself: our finalizer, what a decorator wants of its metadata, and its status."""

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeAlias

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject, dumps_sorted
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.report import Write
from metaloop.reconciler.core.model import Observed
from metaloop.reconciler.ports import Api, LeaseGuard

_RETRIES: Final = 4
_CAPACITY: Final = 50_000

Edit: TypeAlias = Callable[[JsonObject], JsonObject | None]
"""The parent as it ought to be, made of the parent as it is; None where it is as it ought to be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What an edit came to: the `parent` as it now is, None where there is no such parent any more; and the write, if there was one to do."""

    parent: JsonObject | None
    write: Write | None = None


class ParentWriter:
    """Writes any parent."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._futile: dict[str, bytes] = {}
        """By UID, the last write that changed nothing: a status with fields that its schema drops differs from the stored one for ever."""

    async def edit(self, observed: Observed, edit: Edit, *, lease: LeaseGuard, subresource: str = "") -> Edited:
        """Makes of the parent, or of its subresource, what `edit` does.

        The parent is read live only after a conflict, and the edit is made anew of what it is then. Raises Conflict where it doesn't come to rest.
        """
        parent = observed.parent
        for retries_left in reversed(range(_RETRIES + 1)):
            wanted = edit(parent)
            if wanted is None or self._futile.get(observed.uid) == _digest(wanted, subresource):
                return Edited(parent=parent)
            lease.check()
            try:
                written = await self._api.replace(observed.info, wanted, subresource=subresource)
            except (Conflict, NotFound):
                if not retries_left:
                    raise
            else:
                self._learn(observed.uid, wanted, written, subresource)
                return _edited(observed, written)
            live = await self._live(observed)
            if live is None:
                return Edited(parent=None)
            parent = live
        return Edited(parent=parent)

    def _learn(self, uid: str, wanted: JsonObject, written: JsonObject, subresource: str) -> None:
        if unstructured.resource_version(written) != unstructured.resource_version(wanted):
            self._futile.pop(uid, None)
            return
        if len(self._futile) >= _CAPACITY:
            self._futile.clear()
        self._futile[uid] = _digest(wanted, subresource)

    async def _live(self, observed: Observed) -> JsonObject | None:
        try:
            live = await self._api.get(observed.info, observed.namespace, observed.name)
        except NotFound:
            return None
        return live if unstructured.uid(live) == observed.uid else None


def _digest(wanted: JsonObject, subresource: str) -> bytes:
    """Tells a write from another: the resourceVersion in it says to what it was done."""
    return blake2b(dumps_sorted(wanted), digest_size=16, key=subresource.encode()).digest()


def _edited(observed: Observed, written: JsonObject) -> Edited:
    # The last finalizer of an object that is being deleted takes the object with it.
    is_gone = unstructured.is_deleting(written) and not unstructured.finalizers(written)
    write = Write(
        resource=observed.info.id,
        namespace=observed.namespace,
        name=observed.name,
        uid=observed.uid,
        resource_version="" if is_gone else unstructured.resource_version(written),
    )
    return Edited(parent=None if is_gone else written, write=write)
