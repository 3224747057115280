"""The orders of objects that need one another must fit together."""

import pytest
from components import api_service, crd, manifest, targets, widget
from counting import CountingInventory

from metaloop.common.errors import InvalidAnswer
from metaloop.common.json import JsonObject
from metaloop.reconciler.core.component.inventory import scheduled
from metaloop.reconciler.core.component.validation import require_consistent

METRIC = manifest("Metric", "m", api_version="metrics.example.com/v1", namespace="n")


def namespace(**settings: str) -> JsonObject:
    """The namespace that `inside` is in."""
    return manifest("Namespace", "n", **settings)


def inside(**settings: str) -> JsonObject:
    """An object in the `namespace`."""
    return manifest(namespace="n", **settings)


FITTING: dict[str, tuple[JsonObject, ...]] = {
    "no orders": (namespace(), inside(), crd(), widget()),
    "the same orders": (namespace(apply_order="1", delete_order="1"), inside(apply_order="1", delete_order="1")),
    "the content later, and gone before": (namespace(apply_order="-1", delete_order="1"), inside(apply_order="0", delete_order="0")),
    "the instance later, and gone before": (crd(apply_order="-1", delete_order="1"), widget(apply_order="0", delete_order="-1")),
    "another namespace": (namespace(apply_order="5", delete_order="-5"), manifest(namespace="other")),
    "another type": (crd(apply_order="5", delete_order="-5"), manifest()),
    "a namespace that is not ours": (inside(apply_order="-5"),),
}


@pytest.mark.parametrize("objects", FITTING.values(), ids=FITTING.keys())
def test_orders_fit(objects: tuple[JsonObject, ...]):
    require_consistent(scheduled({}, targets(*objects)))


CONTRADICTING: dict[str, tuple[tuple[JsonObject, ...], str]] = {
    "content before its namespace": ((namespace(apply_order="1"), inside()), "ConfigMap n/a has apply order 0, before Namespace n with 1"),
    "content outlives its namespace": ((namespace(), inside(delete_order="1")), "ConfigMap n/a has delete order 1, after Namespace n"),
    "instance before its type": ((crd(apply_order="1"), widget()), "Widget default/w has apply order 0, before CustomResourceDefinition"),
    "instance outlives its type": ((crd(), widget(delete_order="1")), "Widget default/w has delete order 1, after Custom"),
    "instance before its API service": ((api_service(apply_order="2"), METRIC), "Metric n/m has apply order 0, before APIService"),
    "instance outlives its API service": ((api_service(delete_order="-1"), METRIC), "Metric n/m has delete order 0, after APIService"),
}


@pytest.mark.parametrize(("objects", "problem"), CONTRADICTING.values(), ids=CONTRADICTING.keys())
def test_orders_contradict_each_other(objects: tuple[JsonObject, ...], problem: str):
    with pytest.raises(InvalidAnswer, match=problem):
        require_consistent(scheduled({}, targets(*objects)))


@pytest.mark.parametrize(("holder", "content"), [(namespace(), inside()), (crd(), widget())])
def test_holder_does_not_go_while_its_content_stays(holder: JsonObject, content: JsonObject):
    before = scheduled({}, targets(holder, content))
    after = {key: item for key, item in scheduled(before, []).items() if item.key.kind in {"Namespace", "CustomResourceDefinition"}}
    kept = {key: item for key, item in before.items() if key not in after}

    with pytest.raises(InvalidAnswer, match=r"is no longer among the objects, but .* needs it"):
        require_consistent({**kept, **after})


@pytest.mark.parametrize(("holder", "content"), [(namespace(), inside()), (crd(), widget())])
def test_content_may_go_before_its_holder(holder: JsonObject, content: JsonObject):
    before = scheduled({}, targets(holder, content))

    require_consistent(scheduled(before, targets(holder)))
    require_consistent(scheduled(before, []))


def test_time_grows_with_the_number_of_items_and_no_faster():
    spaces = [manifest("Namespace", f"n{index}") for index in range(100)]
    types = [crd(kind=f"Kind{index}") for index in range(100)]
    contents = [manifest(name="a", namespace=f"n{index}") for index in range(100)]
    items = CountingInventory(scheduled({}, targets(*spaces, *types, *contents)))

    require_consistent(items)

    assert items.looked_at <= 2 * len(items)
