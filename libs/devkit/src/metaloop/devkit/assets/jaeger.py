"""A build of Jaeger, which stores and shows traces, from its published Go module."""

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from metaloop.devkit import console
from metaloop.devkit.assets.source import SourceFailed
from metaloop.devkit.errors import tail_of
from metaloop.devkit.spawn import kill_tree, spawn

JAEGER: Final = "jaeger-all-in-one"
JAEGER_VERSION: Final = "v1.76.0"
_MODULE: Final = f"github.com/jaegertracing/jaeger@{JAEGER_VERSION}"
_HASH: Final = "h1:sWCOOF1dr+NL0PLil7mFo3BqqQL8k4WiM7aguFbc14g="
"""The hash of that version in Go's checksum database; the go.sum of the module covers its dependencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JaegerModule:
    """Builds Jaeger in the unpacked module; needs a Go toolchain, a module proxy, and some minutes."""

    name: str = "a build of its Go module"
    offers: Sequence[str] = (JAEGER,)

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Build the one program."""
        if shutil.which("go") is None:
            raise SourceFailed("no `go` on the PATH")
        with console.progress(f"building {', '.join(wanted)} from source") as progress:
            log = into / "jaeger.log"
            await _go("mod", "download", "-json", _MODULE, folder=into, log=log)
            source = _verified(log)
            output = into / JAEGER
            flags = ("-trimpath", "-buildvcs=false", "-mod=readonly", "-ldflags", "-s -w", "-o", str(output))
            await _go("build", *flags, "./cmd/all-in-one", folder=source, log=log)
            log.unlink()
            progress.done(f"built {JAEGER}")


def _verified(answer: Path) -> Path:
    """The folder of the unpacked module; raises SourceFailed if its hash is wrong."""
    text = answer.read_text()
    module = json.loads(text[text.index("{") :])  # messages about the download come first
    if module["Sum"] != _HASH:
        raise SourceFailed(f"{_MODULE} has the hash {module['Sum']} instead of {_HASH}")
    return Path(module["Dir"])


async def _go(*arguments: str, folder: Path, log: Path) -> None:
    process = await spawn(["go", *arguments], folder=folder, log=log, env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""})
    try:
        code = await process.wait()
    finally:
        await kill_tree(process)
    if code != 0:
        *_, error = tail_of(log).splitlines() or ["no output"]
        raise SourceFailed(f"go {arguments[0]} failed: {error}")
