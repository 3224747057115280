"""A parent of a kind that Kubernetes itself serves: its spec and status are of Kubernetes' own form."""

from metaloop.common.json import JsonObject, is_array, is_object
from metaloop.common.objects import unstructured
from metaloop.devkit.testbed.builtin import SERVICES, service
from metaloop.devkit.testbed.eventually import eventually, expect
from metaloop.devkit.testbed.manifests import config_map
from metaloop.devkit.testbed.story import STORY_LABEL, Story


async def test_service_as_a_parent_has_children_and_conditions_and_comes_to_rest(story: Story) -> None:
    """A Service's selector is no label selector, and its status has fields of the API server's own and drops what it
    doesn't know.
    """
    story.parents = SERVICES
    await story.controller(_port_and_condition, generateSelector=True, resyncPeriodSeconds=1)

    await story.cluster.create(SERVICES, service("p", labels={STORY_LABEL: story.name}), namespace=story.name)
    await eventually(lambda: _announces(story, port=80))
    await story.change("p", ports=[{"port": 81}])
    await eventually(lambda: _announces(story, port=81))
    await eventually(lambda: story.last_call_shows("p"))

    calls, mark = len(story.calls()), story.lab.audit.mark()
    await eventually(lambda: story.called(calls + 6))
    # Each of the two reconcilers finds out for itself that it can't have the status as the hook wants it.
    assert await story.writes_since(mark) in ([], ["update services/status/p"], 2 * ["update services/status/p"])


def _port_and_condition(request: JsonObject) -> JsonObject:
    """The hook: a ConfigMap that says the Service's port, and a condition that says so too."""
    port = _port(unstructured.child_object(request, "parent"))
    condition: JsonObject = {
        "type": "Announced",
        "status": "True",
        "reason": "Said",
        "message": port,
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }
    return {"status": {"conditions": [condition]}, "children": [config_map("port", labels={"parent": "p"}, data={"text": port})]}


def _port(found: JsonObject) -> str:
    ports = unstructured.child_object(found, "spec").get("ports")
    return str(ports[0]["port"]) if is_array(ports) and is_object(ports[0]) else ""


async def _announces(story: Story, *, port: int) -> None:
    """Raises AssertionError until child and status say the port."""
    expect(await story.texts(of="p") == {"port": str(port)}, "the child says another port")
    conditions = (await story.status("p")).get("conditions")
    told = [each.get("message") for each in conditions if is_object(each)] if is_array(conditions) else []
    expect(told == [str(port)], f"the conditions say {told}")
