"""Writes that changed nothing are not done again."""

from functools import partial

from worlds import CONFIG_MAPS, config_map, stored

from metaloop.common.json import JsonObject
from metaloop.common.objects import unstructured
from metaloop.reconciler.core.model import UpdateChild
from metaloop.reconciler.noop_writes import NoopWrites, child_digest

OBSERVED = stored(config_map("a", data={"image": "rewritten"}))


def update(value: str = "wanted", *, observed: JsonObject = OBSERVED) -> UpdateChild:
    """An update of what was observed."""
    return UpdateChild(info=CONFIG_MAPS, obj={**observed, "data": {"image": value}}, reason="", observed=observed)


def with_version(obj: JsonObject, version: str, **parts: JsonObject) -> JsonObject:
    """`obj` at another version."""
    return {**obj, **parts, "metadata": {**unstructured.metadata(obj), "resourceVersion": version}}


class Memory:
    """The memory, of children: each write is known by its digest, and made of what was observed."""

    def __init__(self) -> None:
        self.futile = NoopWrites()

    def has(self, write: UpdateChild) -> bool:
        """Whether it is known to be futile."""
        return self.futile.has(write.observed, partial(child_digest, write))

    def learn(self, write: UpdateChild, written: JsonObject) -> None:
        """Tells it what came of a write."""
        self.futile.learn(write.observed, partial(child_digest, write), written=written)


def test_write_that_changed_nothing_is_known():
    futile = Memory()
    assert not futile.has(update())

    futile.learn(update(), OBSERVED)

    assert futile.has(update())


def test_write_that_changed_something_is_not():
    futile = Memory()

    futile.learn(update(), with_version(OBSERVED, "21"))

    assert not futile.has(update())


def test_a_change_of_the_status_alone_gives_no_new_hope():
    futile = Memory()
    futile.learn(update(), OBSERVED)

    assert futile.has(update(observed=with_version(OBSERVED, "30", status={"ready": 1})))


def test_another_wish_or_another_drift_is_tried():
    futile = Memory()
    futile.learn(update(), OBSERVED)

    assert not futile.has(update("other"))
    assert not futile.has(update(observed=with_version(OBSERVED, "30", data={"image": "drifted"})))


def test_write_of_which_nobody_knows_what_it_was_made_of_is_always_tried():
    futile = Memory()
    blind = UpdateChild(info=CONFIG_MAPS, obj=OBSERVED, reason="")

    futile.learn(blind, OBSERVED)

    assert not futile.has(blind)


def test_no_digest_is_made_of_what_no_futile_write_is_known_of():
    """It is dear: a sorted dump of the whole object."""
    futile = NoopWrites()
    futile.learn(OBSERVED, lambda: b"known", written=OBSERVED)
    other = stored(config_map("b"))

    assert not futile.has(other, _never_made)
    futile.learn(other, _never_made, written=with_version(other, "21"))


def test_one_write_is_remembered_of_each_object():
    futile = NoopWrites()
    futile.learn(OBSERVED, lambda: b"first", written=OBSERVED)
    futile.learn(OBSERVED, lambda: b"second", written=OBSERVED)

    assert not futile.has(OBSERVED, lambda: b"first")
    assert futile.has(OBSERVED, lambda: b"second")


def _never_made() -> bytes:
    raise AssertionError("nobody needs a digest of this write")
