"""The hooks of a controller: where each webhook is, in which wire version it is asked, and how its answers are read."""

import pytest

from metaloop.common.api.hook import HookKeys, Hooks, parse_hooks
from metaloop.common.errors import InvalidSpec
from metaloop.common.json import JsonObject, JsonValue

URL: JsonObject = {"url": "http://hook.example/sync"}
SERVICE: JsonObject = {"service": {"name": "hook", "namespace": "default"}, "path": "/sync"}


def hooks(named: dict[str, JsonValue], *, controller: str = "web") -> Hooks:
    """The hooks in a spec."""
    return parse_hooks({"hooks": named}, controller=controller)


@pytest.mark.parametrize("webhook", [URL, SERVICE], ids=["by url", "by service and path"])
def test_webhook_is_kept_for_the_gateway_as_it_was_written(webhook: JsonObject):
    hook = hooks({"sync": {"webhook": webhook}}).sync

    assert hook is not None
    assert (hook.name, hook.webhook) == ("sync", webhook)


def test_hook_that_is_not_declared_is_none_and_one_without_webhook_is_one():
    declared = hooks({"sync": {"webhook": URL}, "finalize": {}})

    assert declared.customize is None
    assert declared.finalize is not None
    assert declared.finalize.webhook is None


@pytest.mark.parametrize(
    ("version", "mode", "strict"),
    [
        (None, None, False),
        ("v1", None, False),
        ("v2", None, True),
        ("v1", "strict", True),
        ("v2", "loose", False),
        ("", "", False),
    ],
)
def test_mode_wins_over_the_default_of_the_version(version: JsonValue, mode: JsonValue, *, strict: bool):
    hook = hooks({"sync": {"version": version, "webhook": {**URL, "responseUnMarshallMode": mode}}}).sync

    assert hook is not None
    assert hook.strict is strict
    assert hook.version == (version or "v1")


BAD: dict[str, tuple[dict[str, JsonValue], str]] = {
    # what it shows: (the hooks, the path of what is wrong)
    "no hooks": ({}, "spec.hooks"),
    "a hook that is no object": ({"sync": "http://hook.example"}, "spec.hooks.sync"),
    "a webhook that is no object": ({"sync": {"webhook": "http://hook.example"}}, "spec.hooks.sync.webhook"),
    "a webhook without address": ({"sync": {"webhook": {}}}, "spec.hooks.sync.webhook"),
    "a service without path": ({"sync": {"webhook": {"service": {"name": "a", "namespace": "b"}}}}, "spec.hooks.sync.webhook"),
    "a path without service": ({"sync": {"webhook": {"path": "/sync"}}}, "spec.hooks.sync.webhook"),
    "a service without name": (
        {"sync": {"webhook": {"service": {"namespace": "b"}, "path": "/sync"}}},
        "spec.hooks.sync.webhook.service.name",
    ),
    "a service without namespace": (
        {"sync": {"webhook": {"service": {"name": "a"}, "path": "/sync"}}},
        "spec.hooks.sync.webhook.service.namespace",
    ),
    "a version that there isn't": ({"sync": {"version": "v3", "webhook": URL}}, "spec.hooks.sync.version"),
    "a mode that there isn't": (
        {"customize": {"webhook": {**URL, "responseUnMarshallMode": "sloppy"}}},
        "spec.hooks.customize.webhook.responseUnMarshallMode",
    ),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_what_is_wrong_with_a_hook_is_named_by_its_path(case: tuple[dict[str, JsonValue], str]):
    named, path = case

    with pytest.raises(InvalidSpec) as raised:
        hooks(named)

    assert raised.value.field == path


@pytest.mark.parametrize(("length", "finalize", "is_served"), [(43, True, True), (44, True, False), (44, False, True)])
def test_name_is_short_enough_for_a_finalizer_where_one_is_made_of_it(length: int, *, finalize: bool, is_served: bool):
    named: dict[str, JsonValue] = {"sync": {"webhook": URL}, **({"finalize": {}} if finalize else {})}

    if is_served:
        assert hooks(named, controller="x" * length).sync is not None
    else:
        with pytest.raises(InvalidSpec, match=r"metadata\.name: has more than 43 characters"):
            hooks(named, controller="x" * length)


def test_answers_have_labels_and_annotations_where_the_kind_edits_them():
    plain = HookKeys(parent="parent", children="children", edits_metadata=False)
    editing = HookKeys(parent="object", children="attachments", edits_metadata=True)

    assert plain.answer_fields == {"status", "children", "resyncAfterSeconds", "finalized"}
    assert editing.answer_fields == {"status", "attachments", "resyncAfterSeconds", "finalized", "labels", "annotations"}
