"""Writes the parent itself: our finalizer, its status, and the metadata that a decorator changes."""

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
from metaloop.reconciler.ports import Api

_RETRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class EditResult:
    """The `parent` as it is now, None if it no longer exists, and the write, if there was anything to write."""

    parent: JsonObject | None
    write: Write | None = None


class ParentWriter:
    """Writes any parent."""

    def __init__(self) -> None:
        self._noops = NoopWrites()

    async def edit(self, observed: Observed, edit: ParentEdit, *, api: Api) -> EditResult:
        """Edits the parent or a subresource of it.

        After a conflict, the parent is read live and edited again. Raises Conflict if that does not succeed either.
        """
        parent, subresource = observed.parent, edit.subresource
        for retries_left in reversed(range(_RETRIES + 1)):
            desired = edit.mutate(parent)
            if desired is None or self._noops.has(desired, partial(parent_digest, desired, subresource)):
                return EditResult(parent=parent)
            try:
                written = await api.replace(observed.info, desired, subresource=subresource)
            except (Conflict, NotFound):
                if not retries_left:
                    raise
            else:
                self._noops.learn(desired, partial(parent_digest, desired, subresource), written=written)
                return _result(observed, written)
            live = await self._live(observed, api)
            if live is None:
                return EditResult(parent=None)
            parent = live
        return EditResult(parent=parent)

    @staticmethod
    async def _live(observed: Observed, api: Api) -> JsonObject | None:
        try:
            live = await api.get(observed.info, observed.namespace, observed.name)
        except NotFound:
            return None
        return live if unstructured.uid(live) == observed.uid else None


def _result(observed: Observed, written: JsonObject) -> EditResult:
    # Removing the last finalizer of an object that is being deleted deletes it.
    is_gone = unstructured.is_deleting(written) and not unstructured.finalizers(written)
    return EditResult(parent=None if is_gone else written, write=write_of(observed.info, written, is_deletion=is_gone))
