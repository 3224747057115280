"""Runs a program that dies with the process which started it: `pdeathsig.py PARENT_PID PROGRAM ARGS...`.

Neither asyncio nor psutil can set the kernel's parent-death signal. A bare interpreter runs this file as a script, so
it imports the standard library only. It is a wrapper and not a hook between fork and exec, because Python code there
is unsafe in a parent that has threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with_parent(parent: int) -> bool:
    """Have the kernel kill this process when the thread that forked it ends; False if that parent has already ended.

    Only Linux can do this. Elsewhere a child outlives a parent that ends by SIGKILL, and by nothing else.
    """
    if sys.platform != "linux":
        return True
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_PDEATHSIG) failed")
    return os.getppid() == parent


if __name__ == "__main__":
    parent_pid, program, *arguments = sys.argv[1:]
    if not die_with_parent(int(parent_pid)):
        sys.exit(1)
    # Ctrl-C reaches the whole process group, but the process that runs these programs ends them in its own order, by
    # SIGTERM. Programs written in Go receive SIGINT all the same: their runtime unblocks it.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.execvp(program, [program, *arguments])  # noqa: S606 - the caller's own program, no shell
