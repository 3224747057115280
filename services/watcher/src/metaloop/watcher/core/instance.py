"""A controller that can be served: its spec, with the rules by which its kind serves it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import assert_never

from metaloop.common.api.controller import Controller
from metaloop.common.job import JobKey
from metaloop.common.objects.resource import ResourceId
from metaloop.watcher.core.caches import Caches
from metaloop.watcher.core.change import Change
from metaloop.watcher.core.rules.parents import Parents
from metaloop.watcher.core.rules.rule import Concern, Ended, EndedParts, Group, Later, Rule, Swept, Tally, Touched
from metaloop.watcher.core.watch import Watch, WatchId


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Instance:
    """A controller with the resources that its spec names, as the API server serves them."""

    controller: Controller
    parents: tuple[Parents, ...]
    """One for each parent resource."""
    rules: tuple[Rule, ...]
    """How objects concern its units of work; `parents` are among them."""
    children: tuple[Group, ...]
    """What a claim shows as children, in the order of the spec."""
    revisions: tuple[Group, ...] = ()
    """What a claim shows as revisions."""
    inputs: tuple[Group, ...] = ()
    """What a claim shows as inputs."""
    tally: Tally | None = None
    """What is counted of the parts of its parents; None where these have no parts, or nothing is counted."""

    @property
    def groups(self) -> tuple[Group, ...]:
        """Everything that a claim shows beside the parent."""
        return (*self.children, *self.revisions, *self.inputs)

    @property
    def watches(self) -> tuple[Watch, ...]:
        """Everything that has to be watched for it, each watch once, parents first."""
        watches = (*(each.watch for each in self.parents), *(watch for rule in self.rules for watch in rule.watches))
        return tuple({watch.id: watch for watch in watches}.values())

    @property
    def may_subscribe(self) -> bool:
        """Whether its parents may subscribe to related objects."""
        customize = self.controller.hooks.customize
        return self.controller.subscribes or (customize is not None and customize.webhook is not None)

    def parents_of(self, resource: ResourceId) -> Parents | None:
        """The parents of a resource; None where its objects are no parents."""
        return next((parents for parents in self.parents if parents.watch.resource.id == resource), None)

    def shown_watches(self) -> dict[ResourceId, tuple[WatchId, ...]]:
        """What observations are made from, by parent resource: the watch of the parents, and those of what is shown."""
        groups = tuple(dict.fromkeys(group.watch.id for group in self.groups))
        return {parents.watch.resource.id: (parents.watch.id, *groups) for parents in self.parents}

    def units(self, caches: Caches) -> list[JobKey]:
        """All units of work: of every parent, and of the parts of each. Its rules index the parents on the way."""
        return list(dict.fromkeys(key for parents in self.parents for key in self._units_of(parents, caches)))

    def _units_of(self, parents: Parents, caches: Caches) -> Iterator[JobKey]:
        """What every object of a parent resource would concern if it had just appeared."""
        rules = [rule for rule in self.rules if any(watch.id == parents.watch.id for watch in rule.watches)]
        for key, record in caches[parents.watch.id].objects.items():
            change = Change(parents.watch, key, None, record)
            for rule in rules:
                for concern in rule.concerned(change, caches):
                    yield from _keys_in(concern)


def _keys_in(concern: Concern) -> Iterable[JobKey]:
    match concern:
        case Touched(key=key):
            return (key,)
        case Swept(parts=parts):
            return parts.keys()
        case Later() | Ended() | EndedParts():
            return ()
        case _:
            assert_never(concern)
