"""Reads the observation that a claim was granted with."""

from functools import partial

from metaloop.common.api.controller import Controller
from metaloop.common.api.kinds import Kinds, parse_controller
from metaloop.common.api.rules import UpdateMethod
from metaloop.common.errors import Unavailable
from metaloop.common.job import ControllerId, JobKey
from metaloop.common.objects import unstructured
from metaloop.common.observation import Observation, ObservedGroup
from metaloop.reconciler.core.model import ChildGroup, Observed
from metaloop.reconciler.version_cache import VersionCache


class Observer:
    """Reads observations. Each version of a controller is parsed once."""

    def __init__(self, kinds: Kinds) -> None:
        self._controllers = VersionCache(partial(parse_controller, kinds=kinds))

    def observed(self, observation: Observation) -> Observed:
        """The observed parent. Raises InvalidSpec for its controller, or Unavailable if a resource is not observed."""
        controller = self._controllers.of(observation.controller)
        return Observed(
            controller=controller,
            info=observation.parent_resource,
            parent=observation.parent,
            groups=_groups(controller, observation),
            revisions=tuple(observation.revisions),
            related=observation.related,
            managed_fields={uid: entry for group in observation.children for uid, entry in group.managed.items()},
            part=observation.part,
            inputs=tuple(observation.inputs),
            summary=observation.summary,
        )


def key_of(observation: Observation) -> JobKey:
    """The key of the job that an observation belongs to. It is known even if the controller can't be served."""
    controller = ControllerId(unstructured.kind(observation.controller), unstructured.name(observation.controller))
    parent = observation.parent
    return JobKey(controller, observation.parent_resource.id, unstructured.namespace(parent), unstructured.name(parent), observation.part)


def _groups(controller: Controller, observation: Observation) -> tuple[ChildGroup, ...]:
    candidates = {group.info.id: group for group in observation.children}
    missing = [str(rule.resource) for rule in controller.children if rule.resource not in candidates]
    if missing:
        # Without its group, a resource's children would look deleted, or undeclared.
        raise Unavailable(f"the watcher doesn't see {', '.join(missing)} yet")
    return tuple([_group(candidates[rule.resource], rule.method) for rule in controller.children])


def _group(candidates: ObservedGroup, method: UpdateMethod) -> ChildGroup:
    return ChildGroup(info=candidates.info, method=method, objects=tuple(candidates.objects))
