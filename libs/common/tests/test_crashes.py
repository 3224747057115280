import asyncio

import pytest
from structlog.testing import capture_logs

from metaloop.common.crashes import crash_logged, restarting


@pytest.mark.parametrize("error", [RuntimeError("x"), ExceptionGroup("both", [KeyError("a"), OSError("b")])])
def test_exception_is_logged_with_what_it_is_about(error: Exception):
    with capture_logs() as lines, crash_logged("writer.crashed", name="one"):
        raise error

    (line,) = lines
    assert (line["event"], line["name"], line["error"], line["log_level"]) == ("writer.crashed", "one", repr(error), "error")


def test_nothing_is_logged_where_nothing_is_raised():
    with capture_logs() as lines, crash_logged("writer.crashed"):
        pass

    assert lines == []


def test_problem_is_what_the_block_raised():
    with capture_logs(), crash_logged("writer.crashed") as crashed:
        raise RuntimeError("x")
    with crash_logged("writer.crashed") as quiet:
        pass

    assert (crashed.problem, quiet.problem) == ("unforeseen: RuntimeError('x')", "")


def test_foreseen_exception_passes_unlogged():
    with pytest.raises(KeyError), capture_logs() as lines, crash_logged("writer.crashed", passing=(LookupError,)):
        raise KeyError("a")

    assert lines == []


async def test_cancellation_passes():
    async def wait() -> None:
        with crash_logged("writer.crashed"):
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


async def test_task_that_crashed_or_returned_runs_again():
    began = asyncio.Queue[int]()
    endings = iter([RuntimeError("x"), None])

    async def main() -> None:
        began.put_nowait(1)
        ending = next(endings, None)
        if ending is not None:
            raise ending

    task = asyncio.create_task(restarting("sample", main))
    with capture_logs() as lines:
        for _ in range(3):
            await began.get()
    task.cancel()

    assert [(line["event"], line["task"]) for line in lines] == [("task.crashed", "sample")]
