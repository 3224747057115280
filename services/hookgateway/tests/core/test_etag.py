"""Which answers are cached, for how long, and in how much memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from metaloop.hookgateway.core.etag import MAX_TAG_LENGTH, OVERHEAD_BYTES, CacheKey, EtagCache, EtagPolicy

KEY = CacheKey("controller", "sync", "http://hook/sync", "parent-1", "")
FOR_EVER = EtagPolicy()


def cache_with(*, etag: str = '"v1"', policy: EtagPolicy = FOR_EVER, capacity_bytes: int = 10_000) -> EtagCache:
    cache = EtagCache(capacity_bytes)
    cache.put(KEY, etag=etag, body=b"{}", policy=policy, now=0.0)
    return cache


def test_answer_without_timeout_is_cached_for_ever():
    cached = cache_with().get(KEY, now=1e9)

    assert cached is not None
    assert (cached.etag, cached.body) == ('"v1"', b"{}")


@pytest.mark.parametrize(
    "other",
    [
        KEY._replace(controller="another"),
        KEY._replace(hook="finalize"),
        KEY._replace(url="http://elsewhere/sync"),
        KEY._replace(parent_uid="parent-2"),
        KEY._replace(revision="revision-2"),
    ],
)
def test_answer_is_used_for_its_own_key_only(other: CacheKey):
    assert cache_with().get(other, now=0.0) is None


def test_expired_answer_is_not_used_though_not_evicted_yet():
    cache = cache_with(policy=EtagPolicy(timeout_seconds=10, cleanup_seconds=60))

    assert cache.get(KEY, now=9.9) is not None
    assert cache.get(KEY, now=10.0) is None
    assert len(cache) == 1


def test_answer_is_evicted_one_cleanup_interval_after_its_timeout():
    cache = cache_with(policy=EtagPolicy(timeout_seconds=10, cleanup_seconds=60))

    cache.evict_expired(now=69.9)
    assert len(cache) == 1

    cache.evict_expired(now=70.0)
    assert len(cache) == 0
    assert cache.size_bytes == 0


def test_timeout_without_cleanup_interval_is_valid():
    """Metacontroller fails on it."""
    cache = cache_with(policy=EtagPolicy(timeout_seconds=10))

    cache.evict_expired(now=10.0)

    assert len(cache) == 0


def test_cleanup_interval_without_timeout_evicts_nothing():
    cache = cache_with(policy=EtagPolicy(cleanup_seconds=1))

    cache.evict_expired(now=1e9)

    assert len(cache) == 1


def test_newer_answer_is_not_evicted_when_the_replaced_one_expires():
    policy = EtagPolicy(timeout_seconds=10)
    cache = cache_with(policy=policy)
    cache.put(KEY, etag='"v2"', body=b"{}", policy=policy, now=9.0)

    cache.evict_expired(now=10.0)

    assert cache.get(KEY, now=10.0) is not None


@pytest.mark.parametrize("etag", ["", "x" * (MAX_TAG_LENGTH + 1)])
def test_answer_without_usable_tag_evicts_the_former_one(etag: str):
    cache = cache_with()

    cache.put(KEY, etag=etag, body=b"{}", policy=FOR_EVER, now=1.0)

    assert cache.get(KEY, now=1.0) is None


def test_least_recently_used_answer_is_evicted_first():
    entry = OVERHEAD_BYTES + 100
    cache = EtagCache(3 * entry)
    keys = [KEY._replace(parent_uid=f"parent-{number}") for number in range(4)]
    for key in keys[:3]:
        cache.put(key, etag='"v"', body=b"x", policy=FOR_EVER, now=0.0)
    cache.get(keys[0], now=1.0)

    cache.put(keys[3], etag='"v"', body=b"x" * 50, policy=FOR_EVER, now=2.0)

    assert [cache.get(key, now=3.0) is not None for key in keys] == [True, False, True, True]


def test_answer_larger_than_the_cache_is_not_cached_and_evicts_nothing():
    cache = cache_with(capacity_bytes=1000)

    cache.put(KEY._replace(parent_uid="large"), etag='"v"', body=b"x" * 1000, policy=FOR_EVER, now=0.0)

    assert len(cache) == 1


class AnyUse(RuleBasedStateMachine):
    """Whatever is done with a cache, it holds no more than its capacity."""

    def __init__(self) -> None:
        super().__init__()
        self.cache = EtagCache(3000)
        self.now = 0.0

    @rule(
        parent=st.sampled_from("abcdef"),
        size=st.integers(0, 2000),
        timeout=st.none() | st.integers(1, 5),
        etag=st.sampled_from(["", '"v"']),
    )
    def put(self, parent: str, size: int, timeout: int | None, etag: str):
        policy = EtagPolicy(timeout_seconds=timeout, cleanup_seconds=1)
        self.cache.put(KEY._replace(parent_uid=parent), etag=etag, body=b"x" * size, policy=policy, now=self.now)

    @rule(parent=st.sampled_from("abcdef"))
    def evict(self, parent: str):
        self.cache.evict(KEY._replace(parent_uid=parent))

    @rule(seconds=st.integers(0, 4))
    def wait_and_evict_expired(self, seconds: int):
        self.now += seconds
        self.cache.evict_expired(now=self.now)

    @precondition(lambda self: not len(self.cache))
    @rule()
    def has_no_size_when_empty(self):
        assert self.cache.size_bytes == 0

    @invariant()
    def stays_within_its_capacity(self):
        assert 0 <= self.cache.size_bytes <= 3000


TestAnyUse = AnyUse.TestCase


@given(st.lists(st.integers(1, 20), min_size=1, max_size=20))
def test_whatever_expires_leaves_nothing_behind(timeouts: list[int]):
    cache = EtagCache(10**6)
    for number, timeout in enumerate(timeouts):
        policy = EtagPolicy(timeout_seconds=timeout, cleanup_seconds=timeout)
        cache.put(KEY._replace(parent_uid=str(number)), etag='"v"', body=b"x", policy=policy, now=0.0)

    cache.evict_expired(now=40.0)

    assert (len(cache), cache.size_bytes) == (0, 0)
