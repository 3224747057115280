"""The table of kinds: which parser reads a controller, and what each kind may say."""

import pytest

from metaloop.common.api.hook import DEFAULT_TIMEOUT_SECONDS, wanted_timeout
from metaloop.common.api.kinds import KINDS, by_name, named, parse_controller
from metaloop.common.api.rules import UPDATE_METHODS, UpdateMethod
from metaloop.common.errors import InvalidSpec
from metaloop.common.job import ControllerId
from metaloop.common.json import JsonObject, JsonValue, dumps, loads

WEBHOOK: JsonObject = {"webhook": {"url": "http://hook.example/hook"}}
THINGS: JsonObject = {"apiVersion": "ex.io/v1", "resource": "things"}
PODS: JsonObject = {"apiVersion": "v1", "resource": "pods"}
SPECS: dict[str, tuple[JsonObject, str]] = {
    # kind: (the smallest spec, the field with the resources of its children)
    "CompositeController": ({"parentResource": THINGS, "hooks": {"sync": WEBHOOK}}, "childResources"),
    "DecoratorController": ({"resources": [THINGS], "hooks": {"sync": WEBHOOK}}, "attachments"),
    "MapController": (
        {"parentResource": THINGS, "inputResources": [THINGS], "outputResources": [PODS], "hooks": {"map": WEBHOOK}},
        "outputResources",
    ),
    "ComponentController": (
        {"prefix": "op.example.com", "parentResource": THINGS, "generator": WEBHOOK},
        "",  # its objects may be of any kinds
    ),
}
WITH_CHILD_RULES = [kind for kind in KINDS if SPECS[kind][1]]
FINALIZERS = {"ComponentController": "op.example.com/finalizer"}
"""The finalizers of kinds that do not name them after the controller."""


def controller(kind: str, **spec: JsonValue) -> JsonObject:
    """A controller of this kind, with its smallest spec and these fields."""
    return {
        "kind": kind,
        "metadata": {"name": "c", "uid": "u", "generation": 3, "resourceVersion": "7"},
        "spec": {**SPECS[kind][0], **spec},
    }


@pytest.mark.parametrize("kind", KINDS)
def test_controller_of_each_kind_is_read_by_its_own_parser(kind: str):
    parsed = parse_controller(controller(kind))

    assert parsed.id == ControllerId(kind, "c")
    assert (parsed.uid, parsed.generation, parsed.resource_version) == ("u", 3, "7")
    assert parsed.finalizer == FINALIZERS.get(kind, f"metacontroller.io/{kind.lower()}-c")


@pytest.mark.parametrize("kind", KINDS)
def test_hooks_are_shown_the_whole_controller(kind: str):
    raw = controller(kind)

    assert loads(dumps(parse_controller(raw).shown)) == raw


@pytest.mark.parametrize("raw", [{}, {"kind": "ConfigMap"}, {"kind": "compositecontroller"}, {"kind": None}], ids=repr)
def test_object_of_another_kind_is_no_controller(raw: JsonObject):
    with pytest.raises(InvalidSpec, match="is not a kind of controller") as caught:
        parse_controller(raw)

    assert caught.value.field == "kind"


def test_kind_that_is_not_in_the_table_is_unknown():
    decorators = by_name(KINDS["DecoratorController"])

    with pytest.raises(InvalidSpec, match="CompositeController is not a kind of controller"):
        parse_controller(controller("CompositeController"), kinds=decorators)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fields", [{}, {"spec": None}], ids=repr)
def test_controller_without_a_spec_is_invalid(kind: str, fields: JsonObject):
    with pytest.raises(InvalidSpec) as caught:
        parse_controller({"kind": kind, "metadata": {"name": "c"}, **fields})

    assert (caught.value.field, str(caught.value)) == ("spec", "spec: is missing")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", ["x", [], 1], ids=repr)
def test_spec_that_is_no_object_is_invalid(kind: str, spec: JsonValue):
    with pytest.raises(InvalidSpec) as caught:
        parse_controller({"kind": kind, "metadata": {"name": "c"}, "spec": spec})

    assert (caught.value.field, str(caught.value)) == ("spec", "spec: must be an object")


@pytest.mark.parametrize("method", UPDATE_METHODS)
@pytest.mark.parametrize("kind", WITH_CHILD_RULES)
def test_kind_accepts_exactly_the_update_methods_of_its_row(kind: str, method: UpdateMethod):
    children: JsonValue = [{**PODS, "updateStrategy": {"method": method}}]
    raw = controller(kind, **{SPECS[kind][1]: children})

    if method in KINDS[kind].update_methods:
        assert parse_controller(raw).children[0].method == method
    else:
        with pytest.raises(InvalidSpec, match="must be one of"):
            parse_controller(raw)


@pytest.mark.parametrize("kind", WITH_CHILD_RULES)
@pytest.mark.parametrize(("seconds", "expected"), [(None, None), (0, None), (0.1, 1.0), (30, 30.0)])
def test_resync_period_means_the_same_for_each_kind(kind: str, seconds: JsonValue, expected: float | None):
    assert parse_controller(controller(kind, resyncPeriodSeconds=seconds)).resync_period_seconds == expected


def test_names_of_kinds_and_short_names_are_unique():
    names = [name for kind in KINDS.values() for name in (kind.resource.resource, *kind.short_names)]

    assert len(set(names)) == len(names)
    assert [kind.name for kind in KINDS.values()] == [*KINDS]


def test_controller_may_be_called_by_any_kind():
    assert named("web") == "CompositeController/web or DecoratorController/web or MapController/web or ComponentController/web"
    assert named("web", kinds=by_name(KINDS["MapController"])) == "MapController/web"


@pytest.mark.parametrize(
    ("timeout", "seconds"),
    [(None, DEFAULT_TIMEOUT_SECONDS), ("", DEFAULT_TIMEOUT_SECONDS), ("500ms", 0.5), ("1m30s", 90.0), ("0", 0.0), ("-1s", -1.0)],
)
def test_timeout_of_a_webhook_is_a_duration_or_the_default(timeout: JsonValue, seconds: float):
    assert wanted_timeout({"timeout": timeout}) == seconds


@pytest.mark.parametrize("timeout", ["10", "soon", "10 s", 10, 1.5, True, ["10s"], {}], ids=repr)
def test_timeout_that_is_no_duration_is_refused(timeout: JsonValue):
    with pytest.raises(InvalidSpec, match="must be a duration") as caught:
        wanted_timeout({"timeout": timeout})

    assert caught.value.field == "webhook.timeout"
