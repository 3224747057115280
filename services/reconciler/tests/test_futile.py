"""Writes that changed nothing are not done again."""

from worlds import CONFIG_MAPS, config_map, stored

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import UpdateChild
from metaloop.reconciler.futile import FutileWrites

OBSERVED = stored(config_map("a", data={"image": "rewritten"}))


def update(value: str = "wanted", *, observed: JsonObject = OBSERVED) -> UpdateChild:
    """An update of what was observed."""
    return UpdateChild(info=CONFIG_MAPS, obj={**observed, "data": {"image": value}}, reason="", observed=observed)


def with_version(obj: JsonObject, version: str, **parts: JsonObject) -> JsonObject:
    """`obj` at another version."""
    return {**obj, **parts, "metadata": {**unstructured.metadata(obj), "resourceVersion": version}}


def test_write_that_changed_nothing_is_known():
    futile = FutileWrites()
    assert not futile.has(update())

    futile.learn(update(), OBSERVED)

    assert futile.has(update())


def test_write_that_changed_something_is_not():
    futile = FutileWrites()

    futile.learn(update(), with_version(OBSERVED, "21"))

    assert not futile.has(update())


def test_a_change_of_the_status_alone_gives_no_new_hope():
    futile = FutileWrites()
    futile.learn(update(), OBSERVED)

    assert futile.has(update(observed=with_version(OBSERVED, "30", status={"ready": 1})))


def test_another_wish_or_another_drift_is_tried():
    futile = FutileWrites()
    futile.learn(update(), OBSERVED)

    assert not futile.has(update("other"))
    assert not futile.has(update(observed=with_version(OBSERVED, "30", data={"image": "drifted"})))


def test_write_of_which_nobody_knows_what_it_was_made_of_is_always_tried():
    futile = FutileWrites()
    blind = UpdateChild(info=CONFIG_MAPS, obj=OBSERVED, reason="")

    futile.learn(blind, OBSERVED)

    assert not futile.has(blind)
