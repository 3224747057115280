"""Rollouts in syncs, with an API server and hooks in memory: what is written, in which order, and what stops them."""

import pytest
from builders import CONFIG_MAPS, THINGS, config_map, stored
from fake_api import refused
from rolling import NAMES, revision, rolling_parent
from rolling_sync import RewritingApi, RollingSync, gadget_hook

from metaloop.common.api.revision import REVISIONS
from metaloop.common.errors import Conflict, MetaloopError
from metaloop.common.json import JsonObject
from metaloop.common.kube.errors import Forbidden
from metaloop.common.objects import unstructured
from metaloop.common.objects.owner import controller_ref
from metaloop.common.observation import ObservedGroup, Related
from metaloop.reconciler.core.rollout.revisions import revision_name


async def rolled_out(**controller: object) -> RollingSync:
    """A parent whose children have the template's text v1."""
    sync = RollingSync(**controller)  # type: ignore[arg-type]
    for _ in range(3):
        await sync.run()
        sync.heal(*NAMES)
    await sync.run()
    return sync


async def test_new_parent_costs_one_write_more_than_without_revisions():
    sync = RollingSync()
    total: dict[str, int] = {}

    for _ in range(3):
        await sync.run()
        for verb, number in sync.api.requests.items():
            total[verb] = total.get(verb, 0) + number

    assert total == {"create": 4, "replace status": 1}
    assert len(sync.hooks.requests) == 3
    assert sync.revisions == {"v1": ["a", "b", "c"]}
    assert sync.condition == ("True", "OnLatestRevision")


async def test_at_rest_one_revision_is_asked_about_and_nothing_is_written():
    sync = await rolled_out()
    asked = len(sync.hooks.requests)

    report = await sync.run()

    assert dict(sync.api.requests) == {}
    assert len(sync.hooks.requests) == asked + 1
    assert report.result == "done"


async def test_move_costs_two_writes_to_revisions_one_to_the_child_and_the_status():
    sync = await rolled_out()
    sync.say("v2")
    await sync.run()
    sync.heal("a")

    await sync.run()

    assert dict(sync.api.requests) == {"replace": 3, "replace status": 1}
    assert sync.texts == {"a": "v2", "b": "v2", "c": "v1"}
    assert sync.revisions == {"v1": ["c"], "v2": ["a", "b"]}
    assert sync.condition == ("False", "RolloutProgressing")


async def test_writes_to_revisions_are_reported_like_others():
    sync = await rolled_out()
    sync.say("v2")

    report = await sync.run()

    assert [write.resource.resource for write in report.writes] == ["controllerrevisions", "controllerrevisions", "gadgets", "things"]


async def test_older_revisions_are_asked_about_with_the_parent_as_it_was():
    sync = await rolled_out()
    sync.say("v2")
    sync.hooks.requests.clear()

    await sync.run()

    parents = [unstructured.child_object(request, "parent") for request in sync.hooks.requests]
    assert [unstructured.child_object(parent, "spec")["template"] for parent in parents] == [{"text": "v2"}, {"text": "v1"}]
    assert sync.hooks.requests[0]["children"] == sync.hooks.requests[1]["children"]


async def test_every_revision_is_shown_what_is_related_to_the_parent_as_it_is():
    sync = await rolled_out(hooks={hook: {"webhook": {"url": f"http://hook.example/{hook}"}} for hook in ("sync", "customize")})
    shared = stored(config_map("shared"))
    sync.subscriptions.selected = Related(fingerprint="", groups=[ObservedGroup(info=CONFIG_MAPS, objects=[shared])])
    sync.say("v2")
    sync.hooks.requests.clear()
    sync.hooks.customized.clear()

    await sync.run()

    assert [unstructured.child_object(request["parent"], "spec")["template"] for request in sync.hooks.customized] == [{"text": "v2"}]  # type: ignore[arg-type]
    assert [request["related"] for request in sync.hooks.requests] == [{"ConfigMap.v1": {"shared": shared}}] * 2


async def test_unusable_answer_of_an_older_revision_leaves_everything_unwritten():
    sync = await rolled_out()
    sync.say("v2")
    sync.hooks.answer = lambda request: {"children": [None]} if _says(request) == "v1" else gadget_hook(request)

    report = await sync.run()

    assert (report.result, report.reason) == ("retry", "InvalidAnswer")
    assert dict(sync.api.requests) == {}


FAILURES: dict[str, tuple[str, str, MetaloopError, str]] = {
    # what it shows: (verb, the revision's text, error, reason)
    "the latest can't be created": ("create", "v2", Forbidden(refused(403, "Forbidden")), "Forbidden"),
    "the older was changed meanwhile": ("replace", "v1", Conflict("another resourceVersion"), "Conflict"),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
async def test_no_child_is_touched_before_all_revisions_are_written(failure: tuple[str, str, MetaloopError, str]):
    verb, text, error, reason = failure
    sync = await rolled_out()
    sync.say("v2")
    sync.api.failing[verb, _revision_of(text)] = error

    report = await sync.run()

    assert (report.result, report.reason) == ("retry", reason)
    assert sync.texts == {"a": "v1", "b": "v1", "c": "v1"}
    assert "ControllerRevision default/things.example.com-" in report.message
    sync.api.failing.clear()
    await sync.run()
    assert sync.texts == {"a": "v2", "b": "v1", "c": "v1"}


async def test_revision_of_our_name_that_nobody_controls_is_taken_over():
    """It lost its parent because the selector did not match its labels. Metacontroller leaves such revisions behind."""
    sync = RollingSync()
    orphan = revision("v1", name=_revision_of("v1"), is_orphan=True, metadata={"labels": {"app": "other"}})
    sync.api.put(REVISIONS, orphan)

    await sync.run(sync.observe(revisions=()))

    [taken] = sync.api.all_of(REVISIONS)
    owner = controller_ref(taken)
    assert owner is not None
    assert unstructured.uid(taken) == unstructured.uid(orphan)
    assert unstructured.labels(taken)["app"] == "mine"
    assert sync.revisions == {"v1": ["a", "b", "c"]}


async def test_revision_that_somebody_changed_is_written_as_it_was():
    sync = await rolled_out()
    [own] = sync.api.all_of(REVISIONS)
    sync.api.put(REVISIONS, {**own, "parentPatch": {"spec": {"template": {"text": "tampered with"}}}})

    await sync.run()

    assert sync.revisions == {"v1": ["a", "b", "c"]}
    assert dict(sync.api.requests) == {"replace": 1}


async def test_revision_that_is_not_yet_in_the_cache_is_waited_for():
    sync = await rolled_out()

    report = await sync.run(sync.observe(revisions=()))

    assert (report.result, report.reason) == ("retry", "Conflict")


async def test_orphaned_revision_that_matches_is_adopted():
    sync = await rolled_out()
    [own] = sync.api.all_of(REVISIONS)
    metadata = {key: value for key, value in unstructured.metadata(own).items() if key != "ownerReferences"}
    sync.api.put(REVISIONS, {**own, "metadata": metadata})

    await sync.run()

    [adopted] = sync.api.all_of(REVISIONS)
    assert controller_ref(adopted) is not None
    assert sync.revisions == {"v1": ["a", "b", "c"]}


async def test_revisions_of_a_parent_that_goes_are_left_to_the_garbage_collector():
    parent = rolling_parent()
    unstructured.metadata(parent)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    unstructured.metadata(parent)["finalizers"] = ["another's"]
    sync = RollingSync(parent=parent)

    await sync.run()

    assert sync.revisions == {}
    assert "conditions" not in unstructured.child_object(sync.parent, "status")


async def test_other_methods_keep_no_revisions():
    sync = RollingSync(method="InPlace")

    await sync.run()

    assert sync.revisions == {}
    assert "conditions" not in unstructured.child_object(sync.parent, "status")


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
@pytest.mark.parametrize("after_requests", range(7))
async def test_rollout_survives_the_death_of_every_worker(method: str, after_requests: int):
    """Every second sync dies after so many writes."""
    sync = await rolled_out(method=method)
    sync.say("v2")

    for _ in range(30):
        await sync.run_until_killed(after_requests=after_requests)
        assert _moved_in_order(sync)
        await sync.run()
        assert _moved_in_order(sync)
        sync.heal(*NAMES)

    assert sync.texts == {"a": "v2", "b": "v2", "c": "v2"}
    assert sync.revisions == {"v2": ["a", "b", "c"]}
    assert sync.condition == ("True", "OnLatestRevision")


@pytest.mark.parametrize("method", ["RollingInPlace", "RollingRecreate"])
async def test_rollout_does_not_wait_for_what_admission_never_lets_be(method: str):
    """Each child always differs from what is desired. Once this is known of one child, the next one may move."""
    sync = await rolled_out(method=method, api=RewritingApi())
    sync.say("v2")

    for _ in range(20):
        await sync.run()
        sync.heal(*NAMES)
        assert _moved_in_order(sync)

    assert sync.texts == {"a": "V2", "b": "V2", "c": "V2"}
    assert sync.revisions == {"v2": ["a", "b", "c"]}
    assert dict(sync.api.requests) == {}


def _moved_in_order(sync: RollingSync) -> bool:
    """Those with v2, or about to have it, come before those with v1."""
    order = [sync.texts.get(name, "v2").lower() for name in NAMES]
    return order == sorted(order, reverse=True)


def _says(request: JsonObject) -> object:
    spec = unstructured.child_object(unstructured.child_object(request, "parent"), "spec")
    return unstructured.child_object(spec, "template")["text"]


def _revision_of(text: str) -> str:
    parent = rolling_parent(text)
    return revision_name(THINGS, unstructured.uid(parent), {"spec": {"template": {"text": text}}})
