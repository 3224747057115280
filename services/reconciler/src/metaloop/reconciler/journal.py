"""Records what a sync did so far, for its report. The record is true however the sync ends."""

from collections import Counter
from dataclasses import dataclass, field, replace

from metaloop.common.report import Write
from metaloop.reconciler.core.effects import Effects


@dataclass(slots=True, kw_only=True)
class Journal:
    """The writes of one sync, and what its hook asked for."""

    writes: list[Write] = field(default_factory=list)
    actions: Counter[str] = field(default_factory=Counter)
    resync_after_seconds: float | None = None
    unknown_keys: tuple[str, ...] = ()
    rivals: tuple[str, ...] = ()
    hook_after_seconds: float | None = None
    """How long after the sync began it called a hook first; None before it did."""
    hook_seconds: dict[str, float] = field(default_factory=dict[str, float])
    """How long the calls of each hook took, together."""
    trace_id: str = ""
    """The trace of the sync; empty where none is recorded."""

    def begin_hook(self, *, after_seconds: float) -> None:
        """Record that a hook is called now, so long after the sync began."""
        if self.hook_after_seconds is None:
            self.hook_after_seconds = after_seconds

    def end_hook(self, hook: str, *, seconds: float) -> None:
        """Record that a hook was called for so long, whatever it answered."""
        self.hook_seconds[hook] = self.hook_seconds.get(hook, 0.0) + seconds

    def resync_within(self, seconds: float) -> None:
        """Ask for a resync after this time. The shortest time that is asked for counts."""
        before = self.resync_after_seconds
        self.resync_after_seconds = seconds if before is None else min(before, seconds)

    def record(self, effects: Effects, *, watched: str = "") -> None:
        """Record the effects of actions on children, which are watched within this label selector, if there is one."""
        self.writes += [replace(write, watched=watched) for write in effects.writes] if watched else effects.writes
        self.actions.update(type(done.action).__name__ for done in effects.done)

    def record_write(self, name: str, write: Write) -> None:
        """Record one write under the name of its action."""
        self.writes.append(write)
        self.actions[name] += 1
