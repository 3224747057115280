"""Customize hooks that misbehave: a Warning names what is wrong, the sync hook isn't asked, nothing is deleted, and
others go on.
"""

import asyncio
from dataclasses import dataclass

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.devkit.testbed.cluster import CONFIG_MAPS, NAMESPACES
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.related import RelatedObjects, rule
from metaloop.devkit.testbed.story import Story
from metaloop.devkit.testbed.webhook import Behaviour, Reply

_SOON_SECONDS = 40.0
"""Much sooner than a hook times out that takes too long."""


async def _too_late(_: JsonObject) -> JsonObject:
    await asyncio.sleep(60)
    return {"relatedResources": []}


def _rules(*rules: JsonValue) -> Behaviour:
    return lambda _: {"relatedResources": [*rules]}


def _maps(**fields: object) -> Behaviour:
    return _rules(rule(CONFIG_MAPS, **fields))


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """How a customize hook of a version misbehaves, and a word that the Warning has to have in it."""

    behaviour: Behaviour
    word: str
    version: str = "v2"


_SELECTOR: JsonObject = {"matchLabels": {"a": "b"}}
_NEAR: JsonObject = {"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}

MISBEHAVIOURS = {
    "error 500": Misbehaviour(behaviour=lambda _: Reply(body=b"sorry", status=500), word="500"),
    "too late": Misbehaviour(behaviour=_too_late, word="within 1 s"),
    "no JSON": Misbehaviour(behaviour=lambda _: Reply(body=b"<html>"), word="JSON"),
    "null": Misbehaviour(behaviour=lambda _: Reply(body=b"null"), word="object"),
    "rules are no list": Misbehaviour(behaviour=lambda _: {"relatedResources": {}}, word="relatedResources"),
    "a null rule": Misbehaviour(behaviour=_rules(None), word="relatedResources[0]"),
    "misspelt, read strictly": Misbehaviour(behaviour=lambda _: {"related": []}, word="related"),
    "no resource": Misbehaviour(behaviour=_rules({"apiVersion": "v1"}), word="resource"),
    "names and labels": Misbehaviour(behaviour=_maps(names=["a"], labelSelector=_SELECTOR), word="names"),
    "names and namespaces by label": Misbehaviour(behaviour=_maps(names=["a"], namespaceSelector=_SELECTOR), word="names"),
    "a namespace and namespaces by label": Misbehaviour(behaviour=_maps(namespace="a", namespaceSelector=_SELECTOR), word="namespace"),
    "selector does not parse": Misbehaviour(behaviour=_maps(labelSelector=_NEAR), word="labelSelector"),
    "namespaces' selector does not parse": Misbehaviour(behaviour=_maps(namespaceSelector=_NEAR), word="namespaceSelector"),
    "namespaces by label of what is in none": Misbehaviour(
        behaviour=_rules(rule(NAMESPACES, namespaceSelector=_SELECTOR)), word="namespaceSelector"
    ),
    "v1: another namespace": Misbehaviour(behaviour=_maps(namespace="default"), word="namespace", version="v1"),
    "v1: another namespace, by name": Misbehaviour(behaviour=_maps(namespace="default", names=["a"]), word="namespace", version="v1"),
    "v1: namespaces by label": Misbehaviour(behaviour=_maps(namespaceSelector=_SELECTOR), word="namespaceSelector", version="v1"),
}


@pytest.mark.parametrize("case", MISBEHAVIOURS)
async def test_misbehaving_customize_hook_is_reported_and_deletes_nothing(story: Story, case: str) -> None:
    bad = MISBEHAVIOURS[case]
    related = RelatedObjects(story)
    hooks = related.hooks(lambda _: [], version=bad.version)
    await story.controller(hooks=_with_little_patience(hooks))
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))

    story.now_answers(bad.behaviour, "customize")
    await story.change("p", text="after")

    await eventually(lambda: story.warning(of="p", containing=bad.word))
    await story.never_shown(text="after")
    assert await story.texts(of="p") == {"p-0": "before", "p-1": "before", "p-2": "before"}
    related.set_rules(lambda _: [])
    await eventually(lambda: story.shows("p", text="after"), within_seconds=30)


async def test_slow_customize_hook_delays_nobody_else(story: Story) -> None:
    related = RelatedObjects(story)
    await related.controller(lambda _: [])
    story.now_answers(_too_late, "customize")
    for number in range(40):
        await story.parent(f"p-{number}")
    await eventually(lambda: story.called(1, "customize"))
    neighbour = Story(lab=story.lab, name=f"{story.name}-neighbour")
    await neighbour.begin()
    await neighbour.controller()

    await neighbour.parent("n")

    await eventually(lambda: neighbour.settled("n"), within_seconds=_SOON_SECONDS)
    await neighbour.end()


def _with_little_patience(hooks: JsonObject) -> JsonObject:
    customize = hooks["customize"]
    if not isinstance(customize, dict) or not isinstance(customize["webhook"], dict):
        raise TypeError(f"no customize hook: {hooks}")
    return {**hooks, "customize": {**customize, "webhook": {**customize["webhook"], "timeout": "1s"}}}
