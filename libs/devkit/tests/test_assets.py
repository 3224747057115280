"""Where control-plane programs come from, with real folders and executables, and sources that succeed or fail."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from metaloop.devkit.assets import PROGRAMS, ensure, ensure_helm, ensure_jaeger
from metaloop.devkit.assets import programs as pinned
from metaloop.devkit.assets.published import HELM, JAEGER, PublishedModule
from metaloop.devkit.assets.source import SourceFailed
from metaloop.devkit.errors import AssetsMissing


@dataclass
class Working:
    """A source that has its programs. Each contains the name of the source."""

    name: str
    offers: Sequence[str] = PROGRAMS
    asked: list[tuple[str, ...]] = field(default_factory=list)

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        self.asked.append(tuple(wanted))
        for program in wanted:
            executable(into / program, content=self.name)


@dataclass
class Failing:
    """A source that has some programs, then fails."""

    name: str
    has: Sequence[str] = ()
    offers: Sequence[str] = PROGRAMS

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        for program in self.has:
            executable(into / program, content=self.name)
        raise SourceFailed(f"out of {wanted[-1]}")


@dataclass
class Stuck:
    """A source that has one program, then never returns."""

    reached: asyncio.Event = field(default_factory=asyncio.Event)
    name: str = "stuck"
    offers: Sequence[str] = PROGRAMS

    async def fetch(self, wanted: Sequence[str], *, into: Path) -> None:
        executable(into / wanted[0], content=self.name)
        self.reached.set()
        await asyncio.Event().wait()


def executable(path: Path, *, content: str = "") -> None:
    path.write_text(content)
    path.chmod(0o755)


def folder_with(folder: Path, *programs: str) -> Path:
    folder.mkdir()
    for program in programs:
        executable(folder / program, content="given")
    return folder


def environ(tmp_path: Path, given: Path | None = None) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "KUBEBUILDER_ASSETS": str(given) if given else ""}


def origins(folder: Path) -> dict[str, str]:
    return {program: (folder / program).read_text() for program in PROGRAMS}


def from_(origin: str) -> dict[str, str]:
    return dict.fromkeys(PROGRAMS, origin)


async def test_a_complete_folder_of_the_user_is_used_as_it_is(tmp_path: Path) -> None:
    given = folder_with(tmp_path / "given", *PROGRAMS)
    source = Working("source")

    assert await ensure(sources=[source], environ=environ(tmp_path, given)) == given
    assert source.asked == []


async def test_the_first_source_fills_the_cache_and_later_runs_use_it(tmp_path: Path) -> None:
    first, second = Working("first"), Working("second")

    folder = await ensure(sources=[first, second], environ=environ(tmp_path))
    again = await ensure(sources=[first, second], environ=environ(tmp_path))

    assert origins(folder) == from_("first")
    assert again == folder
    assert (len(first.asked), second.asked) == (1, [])


async def test_a_failure_is_reported_in_one_line_and_the_next_source_tried(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = await ensure(sources=[Failing("the moon"), Working("second")], environ=environ(tmp_path))

    assert origins(folder) == from_("second")
    assert capsys.readouterr().err == f"metaloop: no {', '.join(PROGRAMS)} from the moon: out of kubectl\n"


async def test_programs_of_a_source_that_then_failed_are_kept(tmp_path: Path) -> None:
    second = Working("second")

    folder = await ensure(sources=[Failing("first", has=["etcd"]), second], environ=environ(tmp_path))

    assert origins(folder) == {**from_("second"), "etcd": "first"}
    assert second.asked == [("kube-apiserver", "kube-controller-manager", "kubectl")]


async def test_a_source_is_asked_only_for_programs_that_it_offers(tmp_path: Path) -> None:
    etcd_only, rest = Working("etcd only", offers=["etcd"]), Working("rest")

    folder = await ensure(sources=[etcd_only, rest], environ=environ(tmp_path))

    assert origins(folder) == {**from_("rest"), "etcd": "etcd only"}


async def test_a_program_missing_from_the_users_folder_comes_from_a_source(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = folder_with(tmp_path / "given", "etcd", "kube-apiserver", "kubectl")
    source = Working("source")

    folder = await ensure(sources=[source], environ=environ(tmp_path, given))

    assert origins(folder) == {**from_("given"), "kube-controller-manager": "source"}
    assert source.asked == [("kube-controller-manager",)]
    assert "lacks kube-controller-manager" in capsys.readouterr().err


async def test_a_program_missing_from_the_users_folder_comes_from_the_cache_first(tmp_path: Path) -> None:
    given = folder_with(tmp_path / "given", "etcd", "kube-apiserver", "kubectl")
    await ensure(sources=[Working("cached")], environ=environ(tmp_path))

    folder = await ensure(sources=[], environ=environ(tmp_path, given))

    assert origins(folder) == {**from_("given"), "kube-controller-manager": "cached"}


async def test_a_file_that_is_not_executable_is_ignored(tmp_path: Path) -> None:
    given = folder_with(tmp_path / "given", *PROGRAMS)
    (given / "etcd").chmod(0o644)
    source = Working("source")

    await ensure(sources=[source], environ=environ(tmp_path, given))

    assert source.asked == [("etcd",)]


async def test_programs_that_no_source_has_are_named(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing, match="kube-controller-manager, kubectl; "):
        await ensure(sources=[Failing("only", has=["etcd", "kube-apiserver"])], environ=environ(tmp_path))


async def test_an_incomplete_folder_is_never_used(tmp_path: Path) -> None:
    with pytest.raises(AssetsMissing):
        await ensure(sources=[Failing("only", has=["etcd"])], environ=environ(tmp_path))
    source = Working("source")

    await ensure(sources=[source], environ=environ(tmp_path))

    assert source.asked == [PROGRAMS]


async def test_an_interrupted_fetch_leaves_nothing_behind(tmp_path: Path) -> None:
    stuck = Stuck()
    fetching = asyncio.create_task(ensure(sources=[stuck], environ=environ(tmp_path)))
    await stuck.reached.wait()

    fetching.cancel()
    await asyncio.wait([fetching])

    assert [path.name for path in (tmp_path / "cache/metaloop/assets").iterdir()] == [".lock"]


async def test_two_concurrent_calls_fetch_once(tmp_path: Path) -> None:
    source = Working("source")

    folders = await asyncio.gather(*(ensure(sources=[source], environ=environ(tmp_path)) for _ in range(2)))

    assert folders[0] == folders[1]
    assert len(source.asked) == 1


def test_versions_are_those_pinned_in_go_mod() -> None:
    pins = (pinned.GO_MODULE / "go.mod").read_text()

    assert f"k8s.io/kubernetes {pinned.kubernetes_version()}\n" in pins
    assert f"go.etcd.io/etcd/server/v3 {pinned.etcd_version()}\n" in pins


@pytest.mark.parametrize(("ensured", "module"), [(ensure_jaeger, JAEGER), (ensure_helm, HELM)], ids=["jaeger", "helm"])
async def test_another_program_is_built_once_in_a_folder_of_its_own(
    tmp_path: Path, ensured: Callable[..., Awaitable[Path]], module: PublishedModule
) -> None:
    source = Working("built", offers=module.offers)

    first, second = [await ensured(sources=[source], environ={**environ(tmp_path), "PATH": ""}) for _ in range(2)]

    assert (first, first.read_text()) == (second, "built")
    assert source.asked == [tuple(module.offers)]
    assert module.version in first.parent.name
