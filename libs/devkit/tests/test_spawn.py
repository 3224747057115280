"""Child processes that never outlive us."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import psutil

from metaloop.devkit import spawn as spawn_module
from metaloop.devkit.spawn import kill_tree, spawn
from metaloop.devkit.testbed.eventually import eventually, expect

WRAPPER = Path(spawn_module.__file__).with_name("pdeathsig.py")
FOREVER = (sys.executable, "-c", "import time; time.sleep(600)")

PARENT = """
import asyncio, sys, time
from pathlib import Path
from metaloop.devkit.spawn import spawn

async def main():
    child = await spawn(sys.argv[1:], folder=Path.cwd(), log=Path("child.log"))
    print(child.pid, flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def gone(*pids: int) -> None:
    async def check() -> None:
        for pid in pids:
            expect(not is_alive(pid), f"{pid} is still alive")

    await eventually(check)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_a_child_dies_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = await asyncio.create_subprocess_exec(*(sys.executable, "-c", PARENT, *FOREVER), cwd=tmp_path, stdout=asyncio.subprocess.PIPE)
    assert parent.stdout
    child = int(await parent.stdout.readline())
    assert is_alive(child)

    parent.kill()
    await parent.wait()

    await gone(child)


def test_a_child_whose_parent_has_already_ended_never_starts_its_program() -> None:
    nobody = 2**22 + 1

    result = subprocess.run([sys.executable, str(WRAPPER), str(nobody), "echo", "started"], capture_output=True, check=False)

    assert (result.returncode, result.stdout) == (1, b"")


async def test_a_child_stays_in_our_process_group(tmp_path: Path) -> None:
    child = await spawn(FOREVER, folder=tmp_path, log=tmp_path / "log")

    assert os.getpgid(child.pid) == os.getpgid(0)

    await kill_tree(child)


async def test_killing_a_tree_kills_grandchildren(tmp_path: Path) -> None:
    tree = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); time.sleep(600)"
    child = await spawn((sys.executable, "-c", tree), folder=tmp_path, log=tmp_path / "log")

    async def grandchild() -> list[int]:
        found = psutil.Process(child.pid).children(recursive=True)
        expect(found, "no grandchild yet")
        return [each.pid for each in found]

    grandchildren = await eventually(grandchild)

    await kill_tree(child)

    await gone(child.pid, *grandchildren)


async def test_output_is_appended_to_the_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("before\n")

    child = await spawn((sys.executable, "-c", "print('after')"), folder=tmp_path, log=log)
    await child.wait()

    assert log.read_text() == "before\nafter\n"


async def test_ctrl_c_does_not_reach_a_child_so_that_we_end_all_in_order(tmp_path: Path) -> None:
    blocked = "import signal; print(signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, []))"

    child = await spawn((sys.executable, "-c", blocked), folder=tmp_path, log=tmp_path / "log")
    await child.wait()

    assert (tmp_path / "log").read_text() == "True\n"
