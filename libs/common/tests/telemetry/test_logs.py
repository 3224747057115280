import logging
import subprocess
import sys
import warnings
from collections.abc import Iterator

import pytest
import structlog

from metaloop.common.json import JsonObject, loads
from metaloop.common.telemetry.logs import Format, Level, bound, configure_logging, get_logger


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Logging is configured per process: a test must not affect the next."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(capture=False)


def lines(capsys: pytest.CaptureFixture[str]) -> list[JsonObject]:
    return [loads(line) for line in capsys.readouterr().err.splitlines()]


def test_line_is_an_event_with_keys(capsys: pytest.CaptureFixture[str]):
    configure_logging("watcher")
    get_logger().info("sync.done", parent="default/a", seconds=0.5)

    [line] = lines(capsys)
    assert line.pop("timestamp")
    assert line == {"event": "sync.done", "level": "info", "service": "watcher", "parent": "default/a", "seconds": 0.5}


@pytest.mark.parametrize(("level", "expected"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_events_below_the_level_are_left_out(capsys: pytest.CaptureFixture[str], level: Level, expected: int):
    configure_logging("watcher", level=level)
    log = get_logger()
    for say in (log.debug, log.info, log.warning, log.error):
        say("x")

    assert len(lines(capsys)) == expected


def test_bound_keys_are_on_every_line_of_their_block(capsys: pytest.CaptureFixture[str]):
    configure_logging("watcher")
    with bound(controller="c"):
        get_logger().info("inside")
    get_logger().info("outside")

    assert [line.get("controller") for line in lines(capsys)] == ["c", None]


@pytest.mark.parametrize("key", ["token", "gateway_token", "authorization", "password", "client_secret"])
def test_values_of_secret_sounding_keys_are_masked(capsys: pytest.CaptureFixture[str], key: str):
    configure_logging("watcher")
    get_logger().info("x", **{key: "hunter2"})

    [line] = lines(capsys)
    assert line[key] == "***"


def test_exception_is_logged_with_its_traceback(capsys: pytest.CaptureFixture[str]):
    configure_logging("watcher")
    get_logger().error("x", exc_info=ValueError("no"))

    [line] = lines(capsys)
    assert "ValueError: no" in str(line["exception"])


def test_values_that_are_not_json_are_logged_as_text(capsys: pytest.CaptureFixture[str]):
    configure_logging("watcher")
    get_logger().info("x", odd=ValueError("odd"), keys={1: 2})

    [line] = lines(capsys)
    assert (line["odd"], line["keys"]) == ("odd", {"1": 2})


def test_warnings_of_libraries_are_logged_in_the_same_format(capsys: pytest.CaptureFixture[str]):
    configure_logging("watcher", level="debug")
    logging.getLogger("aiohttp").warning("closed %s", "early")
    logging.getLogger("aiohttp").info("too much to know")

    [line] = lines(capsys)
    assert (line["event"], line["logger"], line["level"]) == ("closed early", "aiohttp", "warning")


@pytest.mark.filterwarnings("default")
def test_warnings_of_python_are_logged_in_the_same_format(capsys: pytest.CaptureFixture[str]):
    configure_logging("watcher")
    warnings.warn("soon gone", DeprecationWarning, stacklevel=1)

    [line] = lines(capsys)
    assert "soon gone" in str(line["event"])


@pytest.mark.parametrize("form", ["json", "console"])
def test_both_forms_write_event_and_keys_to_stderr_only(form: Format):
    program = (
        "from metaloop.common.telemetry import configure_logging, get_logger;"
        f"configure_logging('watcher', form={form!r}); get_logger().info('sync.done', parent='p')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout == ""
    assert "sync.done" in done.stderr
    assert "parent" in done.stderr
