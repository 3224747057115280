"""The story of a MapController: what its hooks answer, and which defects its end shows."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.simulation.faultplan import FaultPlan
from metaloop.simulation.map_story import copy_input, keep_outputs
from metaloop.simulation.run import Result, run
from metaloop.simulation.stories import STORIES
from metaloop.simulation.webhooks import HookCall
from metaloop.watcher.core.part_counts import PartCounts

OUTPUT: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one-copy"}}


def told() -> Result:
    """The story where nothing goes wrong but the crash that is part of it."""
    return run(STORIES["map"], FaultPlan(), seed="1")


def test_output_has_the_text_of_its_input():
    answered = copy_input({"input": {"metadata": {"name": "one"}, "data": {"text": "first"}}})

    [output] = answered["outputs"]  # type: ignore[misc]
    assert isinstance(output, dict)
    assert (output["metadata"], output["data"]) == ({"name": "one-copy", "namespace": "default"}, {"text": "first"})


@pytest.mark.parametrize(("tombstones", "kept"), [("keep", [OUTPUT]), ("let go", [])])
def test_outputs_of_a_former_input_are_kept_until_the_parent_lets_them_go(tombstones: str, kept: list[JsonObject]):
    request: JsonObject = {"parent": {"spec": {"tombstones": tombstones}}, "outputs": {"ConfigMap.v1": {"one-copy": OUTPUT}}}

    assert keep_outputs(request) == {"outputs": kept}


def test_calls_about_two_inputs_are_of_two_units():
    parent: JsonObject = {"metadata": {"name": "a", "uid": "u"}}
    calls = [HookCall(path="/m/map", parent=parent, request={"mapKey": key}, caller="r", began=0.0) for key in ("k1", "k2", "")]

    assert [call.unit for call in calls] == [("/m", "u#k1"), ("/m", "u#k2"), ("/m", "u")]


def test_outputs_that_nobody_asks_about_are_found(monkeypatch: pytest.MonkeyPatch):
    """A part counts as over once its input is gone, although it has outputs."""
    monkeypatch.setattr(PartCounts, "has", lambda counts, part: part in counts.inputs)

    result = told()

    assert any("the outputs are" in problem for problem in result.problems)
