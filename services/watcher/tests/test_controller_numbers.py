"""The numbers of each controller that metrics and debug views show."""

import pytest

from metaloop.common.api.kinds import KINDS
from metaloop.common.api.map import KIND
from metaloop.common.faults import Fault
from metaloop.common.json import JsonObject
from metaloop.common.telemetry import metrics
from metaloop.watcher.controller_numbers import ControllerNumbers
from metaloop.watcher.core.health import ControllerHealth, summary_of
from metaloop.watcher.explain import Explainer
from metaloop.watcher.views import Views

from .mapping import PODS, Mapped, map_spec
from .objects import CONFIGMAPS, HELLOS, record
from .objects import instance as instance_of_hellos
from .routing_in_hand import RoutingInHand

WEB = {"app": "web"}


@pytest.fixture
def world() -> Mapped:
    """A MapController of one parent with two inputs; of a third, an output is left."""
    world = Mapped()
    world.start()
    world.see_parent(match=WEB)
    for name in ("a", "b"):
        world.see(PODS, name, labels=WEB)
    world.see_output("one", of="uid-n-a")
    world.see_output("detached", of="gone")
    return world


def numbers_of(routing: RoutingInHand) -> ControllerNumbers:
    return ControllerNumbers(router=routing.router, queue=routing.queue)


def exported(numbers: ControllerNumbers) -> dict[str, float]:
    """The metrics of controllers, by name and label, without their common prefix."""
    numbers.export()
    lines = [line.rpartition(" ") for line in metrics.exposition().decode().splitlines() if line.startswith("metaloop_controller_")]
    return {name.removeprefix("metaloop_controller_"): float(value) for name, _, value in lines}


def test_parts_are_counted_beside_parents(world: Mapped):
    found = exported(numbers_of(world.routing))

    label = '{controller="MapController/m"}'
    assert found[f"parents{label}"] == 1
    assert found[f"parts{label}"] == 3
    assert found[f"waiting_keys{label}"] == 4
    assert found[f"in_flight_keys{label}"] == 0


def test_failing_parts_are_counted_and_their_parent_once(world: Mapped):
    for part in ("uid-n-a", "uid-n-b"):
        world.report(part, Fault.TIMED_OUT)

    found = exported(numbers_of(world.routing))

    label = '{controller="MapController/m"}'
    assert (found[f"failing_parts{label}"], found[f"failing_parents{label}"]) == (2, 1)


def test_input_is_no_label_of_a_metric(world: Mapped):
    before = set(exported(numbers_of(world.routing)))

    for number in range(20):
        world.see(PODS, f"more{number}", labels=WEB)
        world.report(f"uid-n-more{number}", Fault.TIMED_OUT)

    assert set(exported(numbers_of(world.routing))) == before


def test_controller_without_parts_has_no_number_of_them():
    routing = RoutingInHand(HELLOS, CONFIGMAPS)
    routing.see(HELLOS, record("p"))
    routing.start(instance_of_hellos())

    found = exported(numbers_of(routing))

    assert [name for name in found if name.startswith(("parts", "failing_parts"))] == []
    assert [value for name, value in found.items() if name.startswith("parents{")] == [1]


def test_controller_that_is_gone_has_no_numbers(world: Mapped):
    world.routing.router.stop(world.controller.id)

    assert [name for name, value in exported(numbers_of(world.routing)).items() if value] == []


def test_view_of_controllers_shows_their_parts_and_keys(world: Mapped):
    world.report("uid-n-b", Fault.TIMED_OUT)

    [shown] = views_of(world).show_controllers()

    assert isinstance(shown, dict)
    assert {key: shown[key] for key in ("controller", "parents", "parts", "failingParts", "waiting", "inFlight")} == {
        "controller": "MapController m",
        "parents": 1,
        "parts": 3,
        "failingParts": 1,
        "waiting": 4,
        "inFlight": 0,
    }


def views_of(world: Mapped) -> Views:
    raw: JsonObject = map_spec()
    health = ControllerHealth(resource=KINDS[KIND].resource, raw=raw, summary=summary_of(1, problem=None, stats=world.stats))
    routing = world.routing
    return Views(
        queue=routing.queue,
        caches=routing.caches,
        subscriptions=routing.subscriptions,
        health=lambda: [health],
        numbers=numbers_of(routing),
        explainer=Explainer(running=routing.running, caches=routing.caches, queue=routing.queue),
    )
