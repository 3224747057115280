"""Services of one's own in the cluster that all tests of a session share: no other services serve their controllers."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from metaloop.devkit.testbed.lab import Platform
from metaloop.devkit.workdir import run_folder

_LABEL = "testbed.example.com/apart"

NOT_APART: Mapping[str, str] = {"TARGET_LABEL_SELECTOR": f"!{_LABEL}"}
"""The settings of services that leave such controllers to others."""


@dataclass(frozen=True, slots=True)
class Apart:
    """What sets services apart: the label of their controllers, and a job stream of their own."""

    name: str

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the controllers that they serve."""
        return {_LABEL: self.name}

    @property
    def selector(self) -> str:
        """What selects these controllers."""
        return f"{_LABEL}={self.name}"

    def settings(self, **others: str) -> Mapping[str, str]:
        """Their settings, and others."""
        return {"TARGET_LABEL_SELECTOR": self.selector, "NATS_PREFIX": self.name, **others}


@asynccontextmanager
async def folder_apart(platform: Platform) -> AsyncIterator[Platform]:
    """The shared cluster and broker, with a folder of its own for what is started there."""
    with run_folder() as folder:
        yield replace(platform, workdir=folder)
