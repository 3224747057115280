"""No-op writes are not repeated."""

from functools import partial

from builders import CONFIG_MAPS, config_map, stored

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import UpdateChild
from metaloop.reconciler.noop_writes import NoopWrites, child_digest

OBSERVED = stored(config_map("a", data={"image": "rewritten"}))


def update(value: str = "wanted", *, observed: JsonObject = OBSERVED) -> UpdateChild:
    """An update of the observed object."""
    return UpdateChild(info=CONFIG_MAPS, obj={**observed, "data": {"image": value}}, reason="", observed=observed)


def with_version(obj: JsonObject, version: str, **parts: JsonObject) -> JsonObject:
    """`obj` at another version."""
    return {**obj, **parts, "metadata": {**unstructured.metadata(obj), "resourceVersion": version}}


class ChildNoops:
    """The memory of no-op writes to children."""

    def __init__(self) -> None:
        self.noops = NoopWrites()

    def has(self, write: UpdateChild) -> bool:
        """Whether it is known to change nothing."""
        return self.noops.has(write.observed, partial(child_digest, write))

    def learn(self, write: UpdateChild, written: JsonObject) -> None:
        """Tells it the result of a write."""
        self.noops.learn(write.observed, partial(child_digest, write), written=written)


def test_write_that_changed_nothing_is_known():
    noops = ChildNoops()
    assert not noops.has(update())

    noops.learn(update(), OBSERVED)

    assert noops.has(update())


def test_write_that_changed_something_is_not():
    noops = ChildNoops()

    noops.learn(update(), with_version(OBSERVED, "21"))

    assert not noops.has(update())


def test_a_change_of_the_status_alone_gives_no_new_hope():
    noops = ChildNoops()
    noops.learn(update(), OBSERVED)

    assert noops.has(update(observed=with_version(OBSERVED, "30", status={"ready": 1})))


def test_another_wish_or_another_drift_is_tried():
    noops = ChildNoops()
    noops.learn(update(), OBSERVED)

    assert not noops.has(update("other"))
    assert not noops.has(update(observed=with_version(OBSERVED, "30", data={"image": "drifted"})))


def test_write_of_which_nobody_knows_what_it_was_made_of_is_always_tried():
    noops = ChildNoops()
    blind = UpdateChild(info=CONFIG_MAPS, obj=OBSERVED, reason="")

    noops.learn(blind, OBSERVED)

    assert not noops.has(blind)


def test_no_digest_is_made_where_no_noop_write_is_known():
    """It is expensive: a sorted dump of the whole object."""
    noops = NoopWrites()
    noops.learn(OBSERVED, lambda: b"known", written=OBSERVED)
    other = stored(config_map("b"))

    assert not noops.has(other, _never_made)
    noops.learn(other, _never_made, written=with_version(other, "21"))


def test_one_write_is_remembered_of_each_object():
    noops = NoopWrites()
    noops.learn(OBSERVED, lambda: b"first", written=OBSERVED)
    noops.learn(OBSERVED, lambda: b"second", written=OBSERVED)

    assert not noops.has(OBSERVED, lambda: b"first")
    assert noops.has(OBSERVED, lambda: b"second")


def _never_made() -> bytes:
    raise AssertionError("nobody needs a digest of this write")
