"""Writes to the parent itself: our finalizer, what a decorator wants of its metadata, and its status."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from metaloop.common.errors import Conflict
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import NotFound
from metaloop.common.objects import unstructured
from metaloop.common.report import Write
from metaloop.reconciler.core.effects import write_of
from metaloop.reconciler.core.model import Observed, ParentEdit
from metaloop.reconciler.noop_writes import NoopWrites, parent_digest
from metaloop.reconciler.ports import Api, LeaseGuard

_RETRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """What an edit came to: the `parent` as it now is, None where there is no such parent any more; and the write, if there was one to do."""

    parent: JsonObject | None
    write: Write | None = None


class ParentWriter:
    """Writes any parent."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._noops = NoopWrites()

    async def edit(self, observed: Observed, edit: ParentEdit, *, lease: LeaseGuard) -> EditResult:
        """Makes of the parent, or of a subresource of it, what `edit` does.

        The parent is read live only after a conflict, and the edit is made anew of what it is then. Raises Conflict where it doesn't come to rest.
        """
        parent, subresource = observed.parent, edit.subresource
        for retries_left in reversed(range(_RETRIES + 1)):
            wanted = edit.make(parent)
            if wanted is None or self._noops.has(wanted, partial(parent_digest, wanted, subresource)):
                return EditResult(parent=parent)
            lease.check()
            try:
                written = await self._api.replace(observed.info, wanted, subresource=subresource)
            except (Conflict, NotFound):
                if not retries_left:
                    raise
            else:
                self._noops.learn(wanted, partial(parent_digest, wanted, subresource), written=written)
                return _edited(observed, written)
            live = await self._live(observed)
            if live is None:
                return EditResult(parent=None)
            parent = live
        return EditResult(parent=parent)

    async def _live(self, observed: Observed) -> JsonObject | None:
        try:
            live = await self._api.get(observed.info, observed.namespace, observed.name)
        except NotFound:
            return None
        return live if unstructured.uid(live) == observed.uid else None


def _edited(observed: Observed, written: JsonObject) -> EditResult:
    # The last finalizer of an object that is being deleted takes the object with it.
    is_gone = unstructured.is_deleting(written) and not unstructured.finalizers(written)
    return EditResult(parent=None if is_gone else written, write=write_of(observed.info, written, is_deletion=is_gone))
