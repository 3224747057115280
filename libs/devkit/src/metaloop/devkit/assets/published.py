"""Builds of programs from their published Go modules: Jaeger, which stores and shows traces, and Helm."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from metaloop.devkit import console
from metaloop.devkit.assets import programs
from metaloop.devkit.assets.source import SourceFailed
from metaloop.devkit.errors import tail_of
from metaloop.devkit.spawn import kill_tree, spawn


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedModule:
    """Builds one program in its unpacked module; needs a Go toolchain, a module proxy, and some minutes."""

    program: str
    version: str
    module: str
    """Its path, without the version."""
    package: str
    """That of the program, relative to the module."""
    hash: str
    """The hash of that version in Go's checksum database; the go.sum of the module covers its dependencies."""
    variables: Sequence[str] = ()
    """What the linker sets, as `package.name=value`."""
    name: str = "a build of its Go module"

    @property
    def offers(self) -> Sequence[str]:
        """The one program."""
        return (self.program,)

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Build the one program."""
        if shutil.which("go") is None:
            raise SourceFailed("no `go` on the PATH")
        with console.progress(f"building {', '.join(wanted)} from source") as progress:
            log = into / f"{self.program}.log"
            await _go("mod", "download", "-json", f"{self.module}@{self.version}", folder=into, log=log)
            source = self._verified(log)
            linker = " ".join(["-s", "-w", *(f"-X {variable}" for variable in self.variables)])
            flags = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", linker, "-o", str(into / self.program))
            await _go("build", *flags, self.package, folder=source, log=log)
            log.unlink()
            progress.done(f"built {self.program}")

    def _verified(self, answer: Path) -> Path:
        """The folder of the unpacked module; raises SourceFailed if its hash is wrong."""
        text = answer.read_text()
        module = json.loads(text[text.index("{") :])  # messages about the download come first
        if module["Sum"] != self.hash:
            raise SourceFailed(f"{self.module}@{self.version} has the hash {module['Sum']} instead of {self.hash}")
        return Path(module["Dir"])


JAEGER: Final = PublishedModule(
    program="jaeger-all-in-one",
    version="v1.76.0",
    module="github.com/jaegertracing/jaeger",
    package="./cmd/all-in-one",
    hash="h1:sWCOOF1dr+NL0PLil7mFo3BqqQL8k4WiM7aguFbc14g=",
)
_, _KUBERNETES_MINOR, _ = programs.kubernetes_version().split(".")
HELM: Final = PublishedModule(
    program="helm",
    version="v3.22.0",
    module="helm.sh/helm/v3",
    package="./cmd/helm",
    hash="h1:n1if5iQgHYsujPAcO5oonH/KiSNUmqmUF0iGVjSF3AU=",
    variables=tuple(
        f"helm.sh/helm/v3/pkg/{package}.k8sVersion{part}"
        for package in ("chartutil", "lint/rules")
        for part in ("Major=1", f"Minor={_KUBERNETES_MINOR}")
    ),
)


async def _go(*arguments: str, folder: Path, log: Path) -> None:
    process = await spawn(["go", *arguments], folder=folder, log=log, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""})
    try:
        code = await process.wait()
    finally:
        await kill_tree(process)
    if code != 0:
        *_, error = tail_of(log).splitlines() or ["no output"]
        raise SourceFailed(f"go {arguments[0]} failed: {error}")
