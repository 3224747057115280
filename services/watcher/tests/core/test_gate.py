from metaloop.common.objects.resource import ResourceId
from metaloop.common.report import Write
from metaloop.common.testing.builders import CHILDREN, write
from metaloop.watcher.core.gate import Gate


class Cache:
    """What a cache has seen: the version of each object."""

    def __init__(self) -> None:
        self.versions: dict[str, int] = {}

    def has_seen(self, write: Write) -> bool:
        return self.versions.get(write.name, 0) >= int(write.resource_version)

    def is_silent(self, resource: ResourceId, *, since: float) -> bool:
        del resource, since
        return False


def closed_for(cache: Cache, *writes: Write) -> Gate[str]:
    gate = Gate[str](cache)
    gate.close("key", writes, now=0.0)
    return gate


def test_it_stays_open_for_writes_that_the_cache_has_seen():
    cache = Cache()
    cache.versions["child"] = 5

    assert not Gate[str](cache).close("key", [write("child", version=5)], now=0.0)


def test_it_opens_with_the_last_write_that_the_cache_sees():
    cache = Cache()
    gate = closed_for(cache, write("a"), write("b"))

    cache.versions["a"] = 1
    after_first = gate.progress((CHILDREN, "default", "a"))
    cache.versions["b"] = 1
    after_second = gate.progress((CHILDREN, "default", "b"))

    assert (after_first, after_second) == ([], ["key"])
    assert "key" not in gate


def test_news_of_an_older_version_does_not_open_it():
    cache = Cache()
    gate = closed_for(cache, write("a", version=7))

    cache.versions["a"] = 6

    assert gate.progress((CHILDREN, "default", "a")) == []
    assert "key" in gate


def test_of_two_writes_to_one_object_the_last_counts():
    cache = Cache()
    gate = closed_for(cache, write("a", version=1), write("a", version=2))

    cache.versions["a"] = 1

    assert gate.progress((CHILDREN, "default", "a")) == []


def test_news_of_an_object_that_nobody_awaits_opens_nothing():
    assert closed_for(Cache(), write("a")).progress((CHILDREN, "default", "other")) == []


def test_two_keys_may_await_the_same_object():
    cache = Cache()
    gate = closed_for(cache, write("a", version=2))
    gate.close("sibling", [write("a", version=1)], now=0.0)

    cache.versions["a"] = 1

    assert gate.progress((CHILDREN, "default", "a")) == ["sibling"]
    assert "key" in gate


def test_closing_again_adds_to_what_was_awaited_before():
    cache = Cache()
    gate = closed_for(cache, write("a"))
    gate.close("key", [write("b")], now=0.0)

    cache.versions["b"] = 1
    after_first = gate.progress((CHILDREN, "default", "b"))
    cache.versions["a"] = 1
    after_second = gate.progress((CHILDREN, "default", "a"))

    assert (after_first, after_second) == ([], ["key"])
    assert len(gate) == 0


def test_it_tells_since_when_somebody_waits():
    gate = closed_for(Cache(), write("a"))

    assert gate.is_closed_since("key", 0.0)
    assert not gate.is_closed_since("key", -1.0)


def test_it_tells_who_awaits_what():
    gate = closed_for(Cache(), write("a"), write("b"))

    assert dict(gate.awaited()) == {"key": [write("a"), write("b")]}
