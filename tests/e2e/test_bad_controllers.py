"""Controllers that can't be served: a Warning names what is wrong, nothing crashes, and a mended one starts."""

import pytest

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.manifests import child_rule
from metaloop.devkit.testbed.story import Story

_ABSENT: JsonObject = {"apiVersion": "absent.example.com/v1", "resource": "absents"}

# What is wrong with a spec, and the word that the Warning has to have in it.
BAD_SPECS: dict[str, tuple[JsonObject, str]] = {
    "parents do not exist": ({"parentResource": _ABSENT}, "absents"),
    "children do not exist": ({"childResources": [{**_ABSENT, "updateStrategy": {"method": "InPlace"}}]}, "absents"),
    "no hooks": ({"hooks": None}, "hooks"),
    "webhook nowhere": ({"hooks": {"sync": {"webhook": {}}}}, "webhook"),
    "selector operator unknown": (
        {"parentResource": {"labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}}},
        "labelSelector",
    ),
}


@pytest.mark.parametrize("case", BAD_SPECS)
async def test_bad_controller_is_reported_and_starts_once_it_is_mended(story: Story, case: str) -> None:
    bad, word = BAD_SPECS[case]
    good = story.controller_manifest()
    spec = unstructured.child_object(good, "spec")
    await story.cluster.create(COMPOSITES, {**good, "spec": _merged(spec, bad)})

    await eventually(lambda: story.warning(of=story.name, containing=word, reason=""))
    await story.edit(**spec)

    await story.parent("p")
    await eventually(lambda: story.settled("p"))


async def test_bad_controller_harms_no_other(story: Story) -> None:
    await story.controller(children=[child_rule(), {**_ABSENT, "updateStrategy": {"method": "InPlace"}}])
    await eventually(lambda: story.warning(of=story.name, containing="absents", reason=""))
    neighbour = Story(lab=story.lab, name=f"{story.name}-neighbour")
    await neighbour.begin()
    await neighbour.controller()

    await neighbour.parent("n")

    await eventually(lambda: neighbour.settled("n"))
    await neighbour.end()


def _merged(spec: JsonObject, change: JsonObject) -> JsonObject:
    """The spec with a change to fields of it, or to fields of its parentResource."""
    parent = {**unstructured.child_object(spec, "parentResource"), **unstructured.child_object(change, "parentResource")}
    merged = {**spec, **change, "parentResource": parent}
    return {key: value for key, value in merged.items() if value is not None}
