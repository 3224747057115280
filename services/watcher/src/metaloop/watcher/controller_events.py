"""Kubernetes Events on controllers: that they start, stop, are paused, or have a problem; some on their parents."""

from collections.abc import Callable
from typing import Literal, Protocol, TypeAlias

from metaloop.common.api import PAUSED_ANNOTATION
from metaloop.common.api.instructions import is_paused
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.telemetry import fields, get_logger
from metaloop.watcher.core.health import Problem

log = get_logger()

EventType: TypeAlias = Literal["Normal", "Warning"]


class Recorder(Protocol):
    """Records Kubernetes Events. It never fails and never waits."""

    def record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        """Record an Event on `regarding`."""
        ...


class LeaderRecorder:
    """Records Events only while this watcher leads."""

    def __init__(self, recorder: Recorder, *, leads: Callable[[], bool]) -> None:
        self._recorder = recorder
        self._leads = leads

    def record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        """Record an Event on `regarding` if this watcher leads at this moment."""
        if self._leads():
            self._recorder.record(regarding, event_type, reason, message)


class ControllerEvents:
    """Logs what happens to controllers, and records it as Events during a leader term."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.is_in_term = False
        """Whether this watcher leads. A standby records nothing: the leader does."""

    def started(self, controller: JsonObject) -> None:
        """The controller runs."""
        name = unstructured.name(controller)
        self._record(controller, "Normal", "Starting", f"Starting controller: {name}")
        self._record(controller, "Normal", "Started", f"Started controller: {name}")

    def stopped(self, controller: JsonObject) -> None:
        """The controller no longer runs, or not with that spec."""
        name = unstructured.name(controller)
        self._record(controller, "Normal", "Stopping", f"Stopping controller: {name}")
        self._record(controller, "Normal", "Stopped", f"Stopped controller: {name}")

    def pause_changed(self, controller: JsonObject) -> None:
        """The controller was paused or resumed."""
        if is_paused(controller):
            message = f"Paused: no hook is called and no child is written until the annotation {PAUSED_ANNOTATION} is taken away"
            self._record(controller, "Normal", "Paused", message)
        else:
            self._record(controller, "Normal", "Resumed", "Resumed: all parents are synced")

    def has_problem(self, controller: JsonObject, problem: Problem) -> None:
        """Something prevents the controller from being served as its spec says."""
        self._record(controller, "Normal" if problem.is_wanted else "Warning", problem.reason, problem.message)

    def finalizers_left(self, controller: JsonObject, message: str) -> None:
        """The controller is gone, and parents still hold its finalizer."""
        self._record(controller, "Warning", "FinalizersLeft", message)

    def finalizer_kept(self, parent: JsonObject, finalizer: str, *, controller: ControllerId, problem: str) -> None:
        """Recorded on a parent: the finalizer of a controller that is being deleted cannot be removed from it."""
        message = f"The finalizer {finalizer} cannot be removed, for which the deletion of {controller} waits: {problem}"
        self._record(parent, "Warning", "FinalizerNotReleased", message)

    def release_failed(self, controller: JsonObject, problem: str) -> None:
        """The finalizer with which a controller's own deletion waits can be neither added nor removed."""
        self._record(controller, "Warning", "ReleaseFailed", problem)

    def finalizers_released(self, controller: JsonObject, message: str) -> None:
        """The finalizer of a controller that is being deleted was removed from its parents."""
        self._record(controller, "Normal", "FinalizersReleased", message)

    def _record(self, regarding: JsonObject, event_type: EventType, reason: str, message: str) -> None:
        write = log.warning if event_type == "Warning" else log.info
        write("controller.event", **{fields.CONTROLLER: unstructured.describe(regarding), fields.REASON: reason, "message": message})
        if self.is_in_term:
            self._recorder.record(regarding, event_type, reason, message)
