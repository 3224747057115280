"""Official release binaries, downloaded and checked against their published SHA-256."""

import asyncio
import hashlib
import shutil
import tarfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import httpx

from metaloop.devkit import console
from metaloop.devkit.assets import programs
from metaloop.devkit.assets.source import SourceFailed

# The checksum, a few bytes, is requested first and must arrive in this time: so a closed network is noticed within
# seconds.
_CHECKSUM_SECONDS = 5.0
_TIMEOUT = httpx.Timeout(20.0, connect=3.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesReleases:
    """The binaries of the pinned Kubernetes release."""

    base_url: str = "https://dl.k8s.io/release"
    name: str = "the official Kubernetes release"
    offers: Sequence[str] = ("kube-apiserver", "kube-controller-manager", "kubectl")

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Download each program from its own URL, and its checksum from the URL beside it."""
        platform = f"{programs.operating_system()}/{programs.architecture()}"
        async with _client() as client:
            for program in wanted:
                url = f"{self.base_url}/{programs.kubernetes_version()}/bin/{platform}/{program}"
                checksum = await _text(client, f"{url}.sha256")
                part = into / f"{program}.part"
                await _download(client, url, to=part, sha256=_first_word(checksum))
                _put_in_place(part, into / program)


@dataclass(frozen=True, slots=True, kw_only=True)
class EtcdReleases:
    """The archive of the pinned etcd release."""

    base_url: str = "https://github.com/etcd-io/etcd/releases/download"
    name: str = "the official etcd release"
    offers: Sequence[str] = ("etcd",)

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        """Download the archive and extract the program; one file has the checksums of all archives."""
        version = programs.etcd_version()
        folder = f"etcd-{version}-{programs.operating_system()}-{programs.architecture()}"
        archive = into / f"{folder}.tar.gz"
        async with _client() as client:
            sums = await _text(client, f"{self.base_url}/{version}/SHA256SUMS")
            await _download(client, f"{self.base_url}/{version}/{archive.name}", to=archive, sha256=_listed(sums, archive.name))
        for program in wanted:
            part = into / f"{program}.part"
            _extract(archive, f"{folder}/{program}", to=part)
            _put_in_place(part, into / program)
        archive.unlink()


@asynccontextmanager
async def _client() -> AsyncIterator[httpx.AsyncClient]:
    """An HTTP client whose errors become SourceFailed."""
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT, follow_redirects=True) as client:
            yield client
    except httpx.HTTPStatusError as failure:
        raise SourceFailed(f"{failure.request.url} answered {failure.response.status_code}") from failure
    except httpx.RequestError as failure:
        raise SourceFailed(f"{failure.request.url.host} can't be reached ({_reason(failure)})") from failure


async def _text(client: httpx.AsyncClient, url: str) -> str:
    try:
        async with asyncio.timeout(_CHECKSUM_SECONDS):
            response = await client.get(url)
    except TimeoutError as timeout:
        raise SourceFailed(f"{url} did not answer within {_CHECKSUM_SECONDS:g} s") from timeout
    return response.raise_for_status().text


async def _download(client: httpx.AsyncClient, url: str, *, to: Path, sha256: str) -> None:
    """Download `url` to a file; raises SourceFailed if the checksum is another."""
    name = url.rpartition("/")[2]
    with console.progress(f"downloading {name}") as progress:
        async with client.stream("GET", url) as response:
            found = await _written(response.raise_for_status(), to=to, progress=progress)
        if found != sha256:
            raise SourceFailed(f"{url} does not have its published checksum: {found} instead of {sha256}")
        progress.done(f"{name} has its published checksum")


async def _written(response: httpx.Response, *, to: Path, progress: console.Progress) -> str:
    """Write the body of a response to a file, and return its SHA-256."""
    digest = hashlib.sha256()
    total = int(response.headers.get("content-length", 0))
    with to.open("wb") as file:
        async for chunk in response.aiter_bytes():
            file.write(chunk)
            digest.update(chunk)
            progress.update(f"{response.num_bytes_downloaded >> 20} of {total >> 20} MiB")
    return digest.hexdigest()


def _extract(archive: Path, member: str, *, to: Path) -> None:
    try:
        with tarfile.open(archive) as content, _opened(content, member) as source, to.open("wb") as file:
            shutil.copyfileobj(source, file)
    except (tarfile.TarError, KeyError) as failure:
        raise SourceFailed(f"{archive.name} does not hold {member}") from failure


def _opened(content: tarfile.TarFile, member: str) -> IO[bytes]:
    file = content.extractfile(member)
    if file is None:
        raise KeyError(member)
    return file


def _put_in_place(part: Path, program: Path) -> None:
    part.chmod(0o755)
    part.replace(program)


def _first_word(text: str) -> str:
    return text.split(maxsplit=1)[0] if text.strip() else ""


def _listed(sums: str, name: str) -> str:
    """The checksum of a file in the output of `sha256sum`."""
    for line in sums.splitlines():
        words = line.split()
        if len(words) == 2 and words[1].lstrip("*") == name:
            return words[0]
    raise SourceFailed(f"no checksum is published for {name}")


def _reason(failure: httpx.RequestError) -> str:
    return str(failure) or type(failure).__name__
