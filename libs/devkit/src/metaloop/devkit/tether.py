"""Becomes the program it is given, tied to the life of the parent that started it: `tether.py PARENT_PID PROGRAM ARGS...`.

Run as a script by a bare interpreter, so it imports the standard library only. A wrapper rather than a hook between fork
and exec, because Python code there is unsafe in a parent that has threads.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def tie_to(parent: int) -> bool:
    """Have the kernel kill us when the thread that forked us ends; False where the parent was gone before we asked.

    Only Linux has this. Elsewhere a child outlives a parent killed by SIGKILL, and no other way of ending.
    """
    if sys.platform != "linux":
        return True
    if ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError("prctl(PR_SET_PDEATHSIG) failed")
    return os.getppid() == parent


if __name__ == "__main__":
    parent_pid, program, *arguments = sys.argv[1:]
    if not tie_to(int(parent_pid)):
        sys.exit(1)
    # Ctrl-C reaches the whole process group, but in which order its programs end is for whoever runs them to say, with SIGTERM.
    # Programs written in Go hear it all the same.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    os.execvp(program, [program, *arguments])  # noqa: S606 - the caller's own program, no shell
