import pytest

from metaloop.common.errors import Unavailable
from metaloop.common.kube.errors import Expired
from metaloop.common.kube.stream import WatchEvent, watch_event


@pytest.mark.parametrize("event_type", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_line_is_an_event_of_its_type(event_type: str):
    event = watch_event(b'{"type":"%s","object":{"kind":"Pod"}}' % event_type.encode())

    assert event == WatchEvent(event_type, {"kind": "Pod"})  # pyright: ignore[reportArgumentType]


def test_resource_version_that_is_too_old_is_expired():
    line = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'

    with pytest.raises(Expired, match="too old"):
        watch_event(line)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"NEW","object":{}}',
        b'{"type":["ADDED"],"object":{}}',
        b'{"type":"ERROR","object":{}}',
    ],
)
def test_line_that_is_not_an_event_makes_the_watch_unavailable(line: bytes):
    with pytest.raises(Unavailable):
        watch_event(line)
