"""A build of the control-plane programs from the pinned Go modules, checked by their go.sum."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from metaloop.devkit import console
from metaloop.devkit.assets import programs
from metaloop.devkit.assets.source import SourceFailed
from metaloop.devkit.spawn import kill_tree, spawn

_ETCD = "go.etcd.io/etcd/server/v3"
_POLL_SECONDS = 0.5
_TEMPORARY = "tmp"
"""The compiler's temporary folder: inside the module's folder, so that an interrupted build leaves nothing behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModules:
    """Builds programs that no release provided; needs a Go toolchain, a module proxy, and some minutes."""

    name: str = "a build of the pinned Go modules"
    offers: Sequence[str] = programs.PROGRAMS

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Build in a folder beside the results, and move the programs into place."""
        if shutil.which("go") is None:
            raise SourceFailed("no `go` on the PATH")
        module = into / ".module"
        shutil.copytree(programs.GO_MODULE, module)
        (module / _TEMPORARY).mkdir()
        for packages in _builds(wanted):
            await _build(packages, module=module)
        for program in wanted:
            (module / "bin" / program).replace(into / program)
        shutil.rmtree(module)


def _builds(wanted: Sequence[str]) -> list[dict[str, str]]:
    """The packages of each compiler run: one for Kubernetes' programs, which share most packages, and one for etcd."""
    kubernetes = {program: f"k8s.io/kubernetes/cmd/{program}" for program in wanted if program != "etcd"}
    etcd = {"etcd": _ETCD} if "etcd" in wanted else {}
    return [build for build in (kubernetes, etcd) if build]


async def _build(packages: dict[str, str], *, module: Path) -> None:
    log = module / f"{next(iter(packages))}.log"
    output = "bin/etcd" if "etcd" in packages else "bin/"
    flags = ("-v", "-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", _linker_flags(), "-o", output)
    with console.progress(f"building {', '.join(packages)} from source") as progress:
        process = await spawn(
            ["go", "build", *flags, *packages.values()],
            folder=module,
            log=log,
            env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "", "GOTMPDIR": str(module / _TEMPORARY)},
        )
        await _ended(process, log=log, progress=progress)
        progress.done(f"built {', '.join(packages)}")


async def _ended(process: asyncio.subprocess.Process, *, log: Path, progress: console.Progress) -> None:
    try:
        while not await _has_ended(process):
            progress.update(f"{_packages_done(log)} packages")
    finally:
        await kill_tree(process)
    if process.returncode != 0:
        raise SourceFailed(f"go build failed: {_error_in(log)}")


async def _has_ended(process: asyncio.subprocess.Process) -> bool:
    """Whether a process has ended after a moment."""
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), _POLL_SECONDS)
    return process.returncode is not None


def _linker_flags() -> str:
    """No symbol tables, and the version that the programs report."""
    version = programs.kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())])


def _packages_done(log: Path) -> int:
    """How many packages were downloaded or compiled so far: `go build -v` prints a line for each."""
    return log.read_bytes().count(b"\n")


def _error_in(log: Path) -> str:
    """The last line of the compiler's output, which says why it stopped."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "no output"
