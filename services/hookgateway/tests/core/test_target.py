"""The target header, parsed."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metaloop.common.json import JsonObject
from metaloop.hookgateway.core.etag import EtagPolicy
from metaloop.hookgateway.core.target import Target, parse_target
from metaloop.hookgateway.errors import EndpointInvalid, MalformedCall

CONTROLLER: JsonObject = {"kind": "CompositeController", "name": "sets", "uid": "u-1"}


def header(**changes: object) -> bytes:
    target: dict[str, object] = {"controller": CONTROLLER, "hook": "sync", "webhook": {"url": "http://hooks/sync"}, "endpointConfigs": []}
    return json.dumps(target | changes).encode()


def parsed(**webhook: object) -> Target:
    return parse_target(header(webhook={"url": "http://hooks/sync", **webhook}))


def test_target_names_its_controller_hook_and_endpoint():
    target = parse_target(header())

    assert (str(target.controller), target.controller_uid, target.hook) == ("CompositeController/sets", "u-1", "sync")
    assert target.endpoint.url == "http://hooks/sync"


@pytest.mark.parametrize(
    ("timeout", "seconds", "ignored"),
    [
        (None, 10.0, False),
        ("", 10.0, False),
        ("30s", 30.0, False),
        ("1m30s", 90.0, False),
        ("250ms", 0.25, False),
        ("0s", 10.0, True),
        ("0", 10.0, True),
        ("-5s", 10.0, True),
    ],
)
def test_timeout_is_ten_seconds_unless_a_positive_one_is_given(timeout: str | None, seconds: float, *, ignored: bool):
    target = parsed(timeout=timeout)

    assert (target.timeout_seconds, target.timeout_is_ignored) == (seconds, ignored)


@pytest.mark.parametrize(
    ("etag", "policy"),
    [
        (None, EtagPolicy()),
        ({}, EtagPolicy()),
        ({"enabled": False}, EtagPolicy()),
        ({"enabled": True}, EtagPolicy(enabled=True)),
        ({"enabled": True, "cacheTimeoutSeconds": 5}, EtagPolicy(enabled=True, timeout_seconds=5)),
        ({"enabled": True, "cacheCleanupSeconds": 7}, EtagPolicy(enabled=True, cleanup_seconds=7)),
        (
            {"enabled": True, "cacheTimeoutSeconds": 5, "cacheCleanupSeconds": 7},
            EtagPolicy(enabled=True, timeout_seconds=5, cleanup_seconds=7),
        ),
        ({"enabled": True, "cacheTimeoutSeconds": 0, "cacheCleanupSeconds": None}, EtagPolicy(enabled=True)),
    ],
)
def test_etag_is_off_by_default_and_either_time_may_be_absent(etag: JsonObject | None, policy: EtagPolicy):
    assert parsed(etag=etag).etag == policy


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"sync"',
        header(controller=None),
        header(controller={"kind": "CompositeController"}),
        header(hook="update"),
        header(hook=None),
    ],
)
def test_target_that_violates_the_protocol_is_malformed(broken: bytes):
    with pytest.raises(MalformedCall):
        parse_target(broken)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"webhook": None}, r"hooks\.sync\.webhook: is missing"),
        ({"webhook": {}}, r"hooks\.sync: webhook: needs a url, or a service and a path"),
        ({"webhook": {"url": "http://hooks", "timeout": "soon"}}, r"hooks\.sync: webhook\.timeout"),
        ({"webhook": {"url": "http://hooks", "timeout": 10}}, r"hooks\.sync: webhook\.timeout"),
        ({"webhook": {"url": "http://hooks", "etag": {"enabled": "yes"}}}, r"hooks\.sync: webhook\.etag\.enabled"),
        ({"endpointConfigs": [1]}, r"hooks\.sync: spec\.endpointConfigs\[0\]"),
    ],
)
def test_spec_that_can_not_be_called_is_invalid_and_names_the_field(changes: dict[str, object], message: str):
    with pytest.raises(EndpointInvalid, match=message):
        parse_target(header(**changes))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
FIELDS = st.sampled_from(["url", "service", "path", "timeout", "etag", "caBundle", "clientTLS", "authorization", "basicAuth"])


@given(st.dictionaries(FIELDS, JSON), st.lists(JSON))
def test_any_spec_is_accepted_or_refused(webhook: dict[str, object], endpoint_configs: list[object]):
    try:
        parse_target(header(webhook=webhook, endpointConfigs=endpoint_configs))
    except EndpointInvalid:
        return
