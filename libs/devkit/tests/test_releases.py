"""Release binaries from a real HTTP server: checked before they are used, and given up soon if there is no server."""

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from metaloop.devkit.assets import programs
from metaloop.devkit.assets.releases import EtcdReleases, KubernetesReleases
from metaloop.devkit.assets.source import SourceFailed
from metaloop.devkit.ports import LOOPBACK, free_port

CONTENT = b"\x7fELF and so on"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        pass


class Site:
    """A web server for the files of a folder."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://{LOOPBACK}:{port}"

    def publish(self, path: str, content: bytes) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    with ThreadingHTTPServer((LOOPBACK, 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Site(folder, server.server_address[1])
        server.shutdown()
        thread.join()


@pytest.fixture
def into(tmp_path: Path) -> Path:
    folder = tmp_path / "into"
    folder.mkdir()
    return folder


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def kubectl_path() -> str:
    return f"{programs.kubernetes_version()}/bin/{programs.operating_system()}/{programs.architecture()}/kubectl"


def publish_kubectl(site: Site, *, checksum: str) -> None:
    site.publish(kubectl_path(), CONTENT)
    site.publish(f"{kubectl_path()}.sha256", checksum.encode())


def publish_etcd(site: Site, *, member: str = "etcd", checksum: str = "") -> None:
    folder = f"etcd-{programs.etcd_version()}-{programs.operating_system()}-{programs.architecture()}"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        entry = tarfile.TarInfo(f"{folder}/{member}")
        entry.size = len(CONTENT)
        archive.addfile(entry, io.BytesIO(CONTENT))
    sums = f"{'0' * 64}  etcd-of-another-machine.zip\n{checksum or sha256(buffer.getvalue())}  {folder}.tar.gz\n"
    site.publish(f"{programs.etcd_version()}/{folder}.tar.gz", buffer.getvalue())
    site.publish(f"{programs.etcd_version()}/SHA256SUMS", sums.encode())


async def test_a_binary_with_its_published_checksum_is_kept_as_an_executable(site: Site, into: Path) -> None:
    publish_kubectl(site, checksum=sha256(CONTENT))

    await KubernetesReleases(base_url=site.url).fetch(["kubectl"], into=into)

    assert (into / "kubectl").read_bytes() == CONTENT
    assert programs.missing_from(into, ["kubectl"]) == []


async def test_a_binary_with_a_wrong_checksum_is_refused(site: Site, into: Path) -> None:
    publish_kubectl(site, checksum=sha256(b"what was published"))

    with pytest.raises(SourceFailed, match="does not have its published checksum"):
        await KubernetesReleases(base_url=site.url).fetch(["kubectl"], into=into)

    assert programs.missing_from(into, ["kubectl"]) == ["kubectl"]


async def test_a_binary_without_a_checksum_is_refused(site: Site, into: Path) -> None:
    publish_kubectl(site, checksum="")

    with pytest.raises(SourceFailed, match="does not have its published checksum"):
        await KubernetesReleases(base_url=site.url).fetch(["kubectl"], into=into)


async def test_a_release_that_does_not_exist_fails_with_its_url_and_status(site: Site, into: Path) -> None:
    with pytest.raises(SourceFailed, match=r"kubectl\.sha256 answered 404"):
        await KubernetesReleases(base_url=site.url).fetch(["kubectl"], into=into)


async def test_an_unreachable_host_is_named(into: Path) -> None:
    with pytest.raises(SourceFailed, match=f"{LOOPBACK} can't be reached"):
        await KubernetesReleases(base_url=f"http://{LOOPBACK}:{free_port()}").fetch(["kubectl"], into=into)


async def test_etcd_is_extracted_from_its_archive(site: Site, into: Path) -> None:
    publish_etcd(site)

    await EtcdReleases(base_url=site.url).fetch(["etcd"], into=into)

    assert (into / "etcd").read_bytes() == CONTENT
    assert os.listdir(into) == ["etcd"]  # noqa: PTH208 - not a blocking call worth a thread


async def test_an_archive_with_a_wrong_checksum_is_refused(site: Site, into: Path) -> None:
    publish_etcd(site, checksum="f" * 64)

    with pytest.raises(SourceFailed, match="does not have its published checksum"):
        await EtcdReleases(base_url=site.url).fetch(["etcd"], into=into)

    assert programs.missing_from(into, ["etcd"]) == ["etcd"]


async def test_an_archive_without_the_program_fails_the_source(site: Site, into: Path) -> None:
    publish_etcd(site, member="etcdctl")

    with pytest.raises(SourceFailed, match="does not hold"):
        await EtcdReleases(base_url=site.url).fetch(["etcd"], into=into)


async def test_a_platform_without_a_release_fails_the_source(site: Site, into: Path) -> None:
    site.publish(f"{programs.etcd_version()}/SHA256SUMS", b"")

    with pytest.raises(SourceFailed, match="no checksum is published for etcd-"):
        await EtcdReleases(base_url=site.url).fetch(["etcd"], into=into)
