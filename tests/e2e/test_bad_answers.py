"""Webhooks that misbehave: a Warning says so, no child is deleted, nobody else notices, and all is well once they
behave again.
"""

import asyncio
from dataclasses import dataclass

import pytest

from metaloop.common.json import JsonObject, JsonValue
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.eventually import eventually
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import Story, answer_with, config_maps_of, three_config_maps
from metaloop.devkit.testbed.webhook import Behaviour, Reply


async def _too_late(request: JsonObject) -> JsonObject:
    await asyncio.sleep(60)
    return three_config_maps(request)


def _body(body: bytes, *, status: int = 200, content_type: str = "application/json") -> Behaviour:
    return lambda _: Reply(body=body, status=status, headers={"Content-Type": content_type})


def _children(*children: JsonValue) -> Behaviour:
    return lambda _: {"status": {}, "children": list(children)}


def _without(obj: JsonObject, field: str) -> JsonObject:
    return {key: value for key, value in obj.items() if key != field}


@dataclass(frozen=True, slots=True, kw_only=True)
class Misbehaviour:
    """How a webhook misbehaves, and a word that the Warning has to have in it."""

    behaviour: Behaviour
    word: str


CHILD = config_map("c", labels={"parent": "p"})

MISBEHAVIOURS = {
    "error 500": Misbehaviour(behaviour=_body(b"sorry", status=500), word="500"),
    "error 404": Misbehaviour(behaviour=_body(b"", status=404), word="404"),
    "too late": Misbehaviour(behaviour=_too_late, word="within 1 s"),
    "HTML with 200": Misbehaviour(behaviour=_body(b"<html>welcome</html>", content_type="text/html"), word="JSON"),
    "empty body": Misbehaviour(behaviour=_body(b""), word="empty"),
    "half an answer": Misbehaviour(behaviour=_body(b'{"children": ['), word="JSON"),
    "an array": Misbehaviour(behaviour=_body(b"[]"), word="object"),
    "null": Misbehaviour(behaviour=_body(b"null"), word="object"),
    "children no list": Misbehaviour(behaviour=lambda _: {"children": {"a": 1}}, word="children"),
    "a null child": Misbehaviour(behaviour=_children(None), word="children[0]"),
    "a child that is text": Misbehaviour(behaviour=_children(CHILD, "x"), word="children[1]"),
    "child without kind": Misbehaviour(behaviour=_children(_without(CHILD, "kind")), word="kind"),
    "child without apiVersion": Misbehaviour(behaviour=_children(_without(CHILD, "apiVersion")), word="apiVersion"),
    "child without name": Misbehaviour(behaviour=_children({**CHILD, "metadata": {"labels": {"parent": "p"}}}), word="name"),
    "child of an unknown kind": Misbehaviour(behaviour=_children({**CHILD, "kind": "Nonesuch"}), word="Nonesuch"),
    "child with labels of another": Misbehaviour(behaviour=_children(config_map("c", labels={"parent": "q"})), word="label"),
    "status no object": Misbehaviour(behaviour=lambda request: {**three_config_maps(request), "status": "good"}, word="status"),
}


@pytest.mark.parametrize("case", MISBEHAVIOURS)
async def test_no_child_is_deleted_and_the_parent_converges_once_the_webhook_behaves(story: Story, case: str) -> None:
    misbehaviour = MISBEHAVIOURS[case]
    await story.controller(hooks=_impatient(story))
    await story.parent("p", text="before")
    await eventually(lambda: story.settled("p"))
    before = await _identities(story)

    story.now_answers(misbehaviour.behaviour)
    calls = len(story.calls())
    await story.change("p", text="after")

    await eventually(lambda: story.warning(of="p", containing=misbehaviour.word))
    await eventually(lambda: story.called(calls + 3))
    assert await _identities(story) == before
    story.now_answers(three_config_maps)
    await eventually(lambda: story.settled("p"), within_seconds=40)
    await eventually(lambda: story.shows("p", text="after"))


async def test_webhook_that_is_down_harms_no_child_and_no_other_controller(story: Story) -> None:
    neighbour = Story(lab=story.lab, name=f"{story.name[:50]}-neighbour")
    await neighbour.begin()
    await neighbour.controller()
    await neighbour.parent("n", text="before")
    await eventually(lambda: neighbour.settled("n"))
    await story.controller(hooks={"sync": {"webhook": {"url": "http://127.0.0.1:9/nobody"}}})

    await story.parent("p")
    await eventually(lambda: story.warning(of="p", containing="127.0.0.1:9"))

    await neighbour.change("n", text="after")
    await eventually(lambda: neighbour.shows("n", text="after"))
    await neighbour.end()


async def test_throttling_webhook_is_asked_again_when_it_said(story: Story) -> None:
    answers = iter([Reply(body=b"", status=429, headers={"Retry-After": "1"})])
    await story.controller(lambda request: next(answers, None) or three_config_maps(request))

    await story.parent("p")

    await eventually(lambda: story.settled("p"))
    first, second = story.calls()[:2]
    assert 0.9 <= second.started_at - first.started_at < 15


async def test_unknown_field_is_an_error_in_strict_mode_alone(story: Story) -> None:
    def with_typo(request: JsonObject) -> JsonObject:
        return {**answer_with(request, config_maps_of(request)), "childs": []}

    await story.controller(with_typo)
    await story.parent("loose")
    await eventually(lambda: story.settled("loose"))

    hook: JsonObject = {"sync": {"webhook": {"url": story.lab.webhook.url(story.name), "responseUnMarshallMode": "strict"}}}
    await story.edit(hooks=hook)
    await story.parent("strict")

    await eventually(lambda: story.warning(of="strict", containing="childs"))


def _impatient(story: Story) -> JsonObject:
    return {"sync": {"webhook": {"url": story.lab.webhook.url(story.name), "timeout": "1s"}}}


async def _identities(story: Story) -> dict[str, tuple[str, str]]:
    found = await story.config_maps()
    return {name: (unstructured.uid(item), unstructured.resource_version(item)) for name, item in found.items()}
