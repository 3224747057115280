"""A webhook that does not answer: its controller's status says that the circuit is open, others notice nothing, and it
heals by itself.
"""

import asyncio

import pytest

from metaloop.common.json import JsonObject, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.cluster import COMPOSITES
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.story import Story, three_config_maps
from metaloop.devkit.testbed.webhook import Reply


async def test_an_open_circuit_shows_in_the_controllers_status_and_heals(story: Story) -> None:
    await story.controller(lambda _: Reply(body=b"no such service", status=503))
    for number in range(5):
        await story.parent(f"p-{number}")

    ready = await eventually(lambda: _ready(story, reason="HookThrottled"), within_seconds=30)
    assert ready["status"] == "False"
    assert "circuit open: 127.0.0.1:" in str(ready["message"])
    assert "did not answer the last calls (status 503)" in str(ready["message"])

    story.now_answers(three_config_maps)
    await eventually(story.all_settled, within_seconds=45)
    ready = await eventually(lambda: _ready(story, reason="Synced"), within_seconds=60)
    assert ready["status"] == "True"


@pytest.mark.timeout(300)
async def test_a_hanging_webhook_takes_nothing_from_its_neighbours(story: Story) -> None:
    """More parents wait for it than all workers have places for, and longer than anybody would wait for a neighbour."""
    neighbour = Story(lab=story.lab, name=f"{story.name[:50]}-neighbour")
    await neighbour.begin()
    await neighbour.controller()
    await neighbour.parent("n", text="before")
    await eventually(lambda: neighbour.settled("n"))

    behaves = asyncio.Event()

    async def hangs(request: JsonObject) -> JsonObject:
        await behaves.wait()
        return three_config_maps(request)

    await story.controller(hangs, hooks={"sync": {"webhook": {"url": story.lab.webhook.url(story.name), "timeout": "200s"}}})
    await asyncio.gather(*(story.parent(f"p-{number}") for number in range(600)))
    await eventually(lambda: _live(story, 380), within_seconds=100)
    for text in ("one", "two", "three"):
        await neighbour.change("n", text=text)
        await eventually(lambda text=text: neighbour.shows("n", text=text))

    await story.end()
    behaves.set()
    await neighbour.end()


async def _live(story: Story, calls: int) -> None:
    """Raises AssertionError until so many calls wait for the hook at once."""
    live = sum(call.ended_at is None for call in story.calls())
    expect(live >= calls, f"{live} calls wait, not yet {calls}")


async def _ready(story: Story, *, reason: str) -> JsonObject:
    """The condition Ready of the story's controller, once it has that reason."""
    status = unstructured.child_object(await story.cluster.get(COMPOSITES, "", story.name), "status")
    conditions = status.get("conditions")
    found = [each for each in conditions if is_object(each) and each["type"] == "Ready"] if isinstance(conditions, list) else []
    expect(found and found[0]["reason"] == reason, f"its status is {status}")
    return found[0]
