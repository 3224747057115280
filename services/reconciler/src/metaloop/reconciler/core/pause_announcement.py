"""Announces a paused parent once: by a condition in its status, if that is ours to write, and by an event."""

from datetime import datetime
from functools import partial

from metaloop.common.api.instructions import is_paused
from metaloop.common.kube.errors import Forbidden, Invalid
from metaloop.reconciler.core.model import Observed, ParentEdit
from metaloop.reconciler.core.parent.finalizer import is_ours
from metaloop.reconciler.core.parent.pause import PAUSED_MESSAGE, has_paused_condition, supports_conditions, with_paused_condition
from metaloop.reconciler.core.steps import ConditionsUnsupported, Learn, PauseAnnounced, RecordEvent, Steps, edit_parent, recall


def announce_pause(observed: Observed, now: datetime, *, owns_status: bool) -> Steps[None]:
    """Announce once that a parent is paused. A pause of the controller is announced on the controller instead."""
    if not is_paused(observed.parent) or not is_ours(observed) or has_paused_condition(observed.parent):
        return
    is_written = yield from _write_paused_condition(observed, now, owns_status=owns_status)
    if not is_written:
        if (yield from recall(PauseAnnounced(observed.uid))):
            return
        yield Learn(PauseAnnounced(observed.uid))
    yield RecordEvent(observed.parent, "Normal", "Paused", f"Paused: {PAUSED_MESSAGE}")


def _write_paused_condition(observed: Observed, now: datetime, *, owns_status: bool) -> Steps[bool]:
    """Write the condition to the parent's status. Returns whether the status has it now."""
    if not owns_status or not supports_conditions(observed):
        return False
    if (yield from recall(ConditionsUnsupported(observed.info.id))):
        return False
    pause = ParentEdit(name="Paused", mutate=partial(with_paused_condition, at=now.strftime("%Y-%m-%dT%H:%M:%SZ")), subresource="status")
    try:
        written = yield from edit_parent(observed, pause)
    except (Forbidden, Invalid):
        written = observed.parent
    if written is None:
        return False
    if not has_paused_condition(written):
        # The kind's schema has no conditions, or no such ones. It would drop those of other parents, too.
        yield Learn(ConditionsUnsupported(observed.info.id))
    return has_paused_condition(written)
