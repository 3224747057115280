"""Where programs are looked for, and the per-user cache of fetched programs.

A folder of the cache is complete or does not exist: it is filled under another name, then renamed.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from metaloop.devkit import console
from metaloop.devkit.assets import programs
from metaloop.devkit.assets.gobuild import GoModules
from metaloop.devkit.assets.published import HELM, JAEGER, PublishedModule
from metaloop.devkit.assets.releases import EtcdReleases, KubernetesReleases
from metaloop.devkit.assets.source import Source, SourceFailed
from metaloop.devkit.errors import AssetsMissing

VARIABLE = "KUBEBUILDER_ASSETS"
_FILLING = ".filling-"
_LOCK_POLL_SECONDS = 0.5


def default_sources() -> tuple[Source, ...]:
    """The sources, in the order in which they are tried."""
    return (KubernetesReleases(), EtcdReleases(), GoModules())


async def ensure(*, sources: Sequence[Source] | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    """A folder with all programs: $KUBEBUILDER_ASSETS, or a folder of the cache, which is filled first if need be.

    Raises AssetsMissing if no source has a program.
    """
    given = _given(environ)
    if given and not programs.missing_from(given):
        return given
    root = _cache_root(environ)
    usable = _usable_of(given) if given else {}
    if given:
        console.message(f"${VARIABLE} ({given}) lacks {', '.join(programs.missing_from(given))}: looking elsewhere for what is missing")
    folder = root / _folder_name(given if usable else None)
    if programs.missing_from(folder):
        await _fill(folder, links={**_usable_of(root / _folder_name(None)), **usable}, sources=sources or default_sources())
    return folder


async def ensure_jaeger(*, sources: Sequence[Source] = (JAEGER,), environ: Mapping[str, str] = os.environ) -> Path:
    """The program of Jaeger: from the PATH or from the cache, built first if it is missing; raises AssetsMissing."""
    return await _ensure_published(JAEGER, sources, environ)


async def ensure_helm(*, sources: Sequence[Source] = (HELM,), environ: Mapping[str, str] = os.environ) -> Path:
    """The program of Helm: from the PATH or from the cache, built first if it is missing; raises AssetsMissing."""
    return await _ensure_published(HELM, sources, environ)


async def _ensure_published(wanted: PublishedModule, sources: Sequence[Source], environ: Mapping[str, str]) -> Path:
    if found := shutil.which(wanted.program, path=environ.get("PATH")):
        return Path(found)
    family = wanted.program.partition("-")[0]
    folder = _cache_root(environ) / f"{family}-{wanted.version}-{programs.operating_system()}-{programs.architecture()}"
    if programs.missing_from(folder, wanted.offers):
        await _fill(folder, links={}, sources=sources, wanted=wanted.offers)
    return folder / wanted.program


def _given(environ: Mapping[str, str]) -> Path | None:
    return Path(environ[VARIABLE]).absolute() if environ.get(VARIABLE) else None


def _usable_of(folder: Path) -> dict[str, Path]:
    missing = programs.missing_from(folder)
    return {program: folder / program for program in programs.PROGRAMS if program not in missing}


def _cache_root(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "metaloop" / "assets"


def _folder_name(completes: Path | None) -> str:
    """A name for the version, the machine, and the user's folder that the cached one completes, if any."""
    name = f"{programs.kubernetes_version()}-{programs.operating_system()}-{programs.architecture()}"
    return f"{name}-with-{hashlib.sha256(str(completes).encode()).hexdigest()[:8]}" if completes else name


async def _fill(folder: Path, *, links: Mapping[str, Path], sources: Sequence[Source], wanted: Sequence[str] = programs.PROGRAMS) -> None:
    """Fill `folder` with links to existing programs, and with the rest from the first source that has it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    async with _locked(folder.parent):
        if not programs.missing_from(folder, wanted):
            return
        for leftover in folder.parent.glob(f"{_FILLING}*"):
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=_FILLING, ignore_cleanup_errors=True) as temporary:
            staging = Path(temporary) / folder.name
            staging.mkdir()
            _link(links, into=staging)
            await _fetch_from_first(sources, into=staging, wanted=wanted)
            shutil.rmtree(folder, ignore_errors=True)
            staging.replace(folder)


def _link(links: Mapping[str, Path], *, into: Path) -> None:
    for program, target in links.items():
        (into / program).symlink_to(target)


async def _fetch_from_first(sources: Sequence[Source], *, into: Path, wanted: Sequence[str]) -> None:
    for source in sources:
        offered = [program for program in programs.missing_from(into, wanted) if program in source.offers]
        if not offered:
            continue
        try:
            await source.fetch(offered, into=into)
        except SourceFailed as failure:
            console.message(f"no {', '.join(offered)} from {source.name}: {failure}")
    if missing := programs.missing_from(into, wanted):
        raise AssetsMissing(f"no source has {', '.join(missing)}; ${VARIABLE} can name a folder that holds them")


@asynccontextmanager
async def _locked(folder: Path) -> AsyncIterator[None]:
    """No other process fills the cache for as long as the block lasts.

    The kernel frees the lock of a process that ends.
    """
    with (folder / ".lock").open("w") as file:
        if not _try_lock(file.fileno()):
            await _lock(file.fileno())
        yield


async def _lock(descriptor: int) -> None:
    with console.progress("waiting for another process that fetches the control-plane programs") as progress:
        while not _try_lock(descriptor):  # noqa: ASYNC110 - no event tells when another process frees a lock
            await asyncio.sleep(_LOCK_POLL_SECONDS)
        progress.done("the other process has finished")


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
