"""The customize hook in syncs: when it is called, which subscriptions follow, and what the other hooks are shown."""

from dataclasses import replace

from builders import CONFIG_MAPS, a_controller, config_map, stored
from syncing import Sync

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.common.objects.resource import ResourceId
from metaloop.common.observation import ObservedGroup, Related
from metaloop.common.related_query import InNamespace, RelatedQuery

SECRETS = ResourceId("v1", "secrets")
RULES: JsonObject = {"relatedResources": [{"apiVersion": "v1", "resource": "configmaps", "names": ["shared"]}]}
SHARED = stored(config_map("shared"))
FOUND = Related(fingerprint="", groups=[ObservedGroup(info=CONFIG_MAPS, objects=[SHARED])])


def customized() -> Sync:
    """A cluster whose controller has a customize hook that names one existing ConfigMap."""
    controller = a_controller()
    hooks = unstructured.child_object(unstructured.child_object(controller, "spec"), "hooks")
    hooks["customize"] = {"webhook": {"url": "http://hook.example/customize"}}
    sync = Sync(lambda _: {}, controller=controller)
    sync.hooks.rules = lambda _: RULES
    sync.subscriptions.selected = FOUND
    return sync


async def test_related_objects_are_followed_and_shown():
    sync = customized()

    await sync.run()

    [request] = sync.subscriptions.told
    assert request.queries == (RelatedQuery(resource=CONFIG_MAPS.id, where=InNamespace("default"), names=frozenset({"shared"})),)
    assert sync.hooks.requests[0]["related"] == {"ConfigMap.v1": {"shared": SHARED}}


async def test_customize_is_not_asked_again_while_it_would_be_shown_the_same():
    sync = customized()
    await sync.run()
    sync.related = replace(FOUND, fingerprint=sync.subscriptions.told[0].fingerprint)
    await sync.run()
    asked = len(sync.hooks.customized)
    sync.related = replace(FOUND, fingerprint=sync.subscriptions.told[-1].fingerprint)

    await sync.run()

    assert len(sync.hooks.customized) == asked
    assert sync.hooks.requests[-1]["related"] == {"ConfigMap.v1": {"shared": SHARED}}


async def test_changed_label_of_the_parent_has_customize_asked_again():
    sync = customized()
    await sync.run()
    await sync.run()
    sync.related = replace(FOUND, fingerprint=sync.subscriptions.told[-1].fingerprint)
    parent = sync.parent
    unstructured.metadata(parent)["labels"] = {"new": "label"}
    await sync.api.replace(sync.observe().observation.parent_resource, parent)
    before = len(sync.hooks.customized)

    await sync.run()

    assert len(sync.hooks.customized) == before + 1


async def test_resource_that_nobody_serves_is_told_and_nothing_is_deleted():
    sync = customized()
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=sync.parent))
    sync.subscriptions.selected = Related(fingerprint="", unknown=[SECRETS])

    report = await sync.run()

    assert (report.result, report.reason) == ("retry", "RelatedUnknown")
    assert "v1/secrets" in sync.recorder.told[0][2]
    assert (list(sync.children), sync.hooks.requests) == (["a"], [])


async def test_watch_that_has_not_synced_is_waited_for_quietly():
    sync = customized()
    sync.subscriptions.selected = Related(fingerprint="", waiting=[replace(CONFIG_MAPS, resource="secrets", kind="Secret")])

    report = await sync.run()

    assert (report.result, report.reason, sync.recorder.told) == ("retry", "Unavailable", [])


async def test_rule_out_of_reach_is_refused_again_and_again():
    """The subscriptions of invalid rules must not be used by the next sync."""
    sync = customized()
    rule: JsonObject = {"apiVersion": "v1", "resource": "configmaps", "namespace": "elsewhere"}
    sync.hooks.rules = lambda _: {"relatedResources": [rule]}

    first = await sync.run()
    sync.related = _as_remembered(sync)
    second = await sync.run()

    assert (first.reason, second.reason, sync.hooks.requests) == ("InvalidAnswer", "InvalidAnswer", [])


async def test_rule_for_what_nobody_serves_is_judged_once_somebody_does():
    sync = customized()
    sync.subscriptions.selected = Related(fingerprint="", unknown=[SECRETS])
    await sync.run()
    asked = len(sync.hooks.customized)

    sync.subscriptions.selected = FOUND
    sync.related = _as_remembered(sync)
    await sync.run()

    assert len(sync.hooks.customized) == asked + 1


async def test_garbage_from_customize_deletes_nothing():
    sync = customized()
    sync.api.put(CONFIG_MAPS, stored(config_map("a"), owner=sync.parent))
    sync.hooks.rules = lambda _: {"relatedResources": [{"apiVersion": "v1"}]}

    report = await sync.run()

    assert (report.result, report.reason) == ("retry", "InvalidAnswer")
    assert (list(sync.children), sync.subscriptions.told) == (["a"], [])


def _as_remembered(sync: Sync) -> Related:
    """The related objects that the watcher shows from now on, with the fingerprint of the last subscription."""
    return replace(FOUND, fingerprint=sync.subscriptions.told[-1].fingerprint)
