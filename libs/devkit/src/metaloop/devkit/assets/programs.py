"""The programs of a control plane, their pinned versions, and the names of this platform."""

import os
import platform
import re
from collections.abc import Iterable
from pathlib import Path

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")

GO_MODULE = Path(__file__).with_name("gomodule")
"""The Go module that pins the versions, with the checksums of all dependencies."""

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def kubernetes_version() -> str:
    """The pinned release of Kubernetes, as `v1.36.3`."""
    return _pinned("k8s.io/kubernetes")


def etcd_version() -> str:
    """The pinned release of etcd, as `v3.6.8`."""
    return _pinned("go.etcd.io/etcd/server/v3")


def operating_system() -> str:
    """The operating system as releases spell it."""
    return platform.system().lower()


def architecture() -> str:
    """The processor architecture as releases spell it."""
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def missing_from(folder: Path, wanted: Iterable[str] = PROGRAMS) -> list[str]:
    """The wanted programs that a folder does not hold as executables."""
    return [program for program in wanted if not _is_program(folder / program)]


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _pinned(module: str) -> str:
    requirement = re.search(rf"^(?:require|\t)\s*{re.escape(module)} (v\S+)", (GO_MODULE / "go.mod").read_text(), re.MULTILINE)
    if requirement is None:
        raise LookupError(f"{module} is not pinned in go.mod")
    return requirement[1]
