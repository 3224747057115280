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
_TICK_SECONDS = 0.5
_TEMPORARY = "tmp"
"""Where the compiler works: in the folder that is removed with all else, so that an interrupted build leaves nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoModules:
    """Builds what no release could give; needs a Go toolchain and a module proxy, and some minutes."""

    name: str = "a build of the pinned Go modules"
    offers: Sequence[str] = programs.PROGRAMS

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Build in a folder beside the results, and move what was built into place."""
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
    """The runs of the compiler: Kubernetes' programs in one, since they share most packages; etcd's has a name of its own."""
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
        while process.returncode is None:
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), _TICK_SECONDS)
            progress.update(f"{_steps(log)} packages")
    finally:
        await kill_tree(process)
    if process.returncode != 0:
        raise SourceFailed(f"go build failed: {_complaint(log)}")


def _linker_flags() -> str:
    """No symbol tables, and the version that the programs report as theirs."""
    version = programs.kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return " ".join(["-s", "-w", *(f"-X k8s.io/component-base/version.{key}={value}" for key, value in values.items())])


def _steps(log: Path) -> int:
    """How many packages were downloaded or compiled so far: `go build -v` names each on a line."""
    return log.read_bytes().count(b"\n")


def _complaint(log: Path) -> str:
    """What the compiler said last: the line that tells why it stopped."""
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
