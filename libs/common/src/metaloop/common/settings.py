"""Settings that services share: read from the command line and from the environment, checked at start, frozen from then on.

What METALOOP_ACK_WAIT_SECONDS=10 says, `--ack-wait-seconds 10` says too, and counts for more.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, CliApp, CliSettingsSource, SettingsConfigDict

from metaloop.common.telemetry.logs import Format, Level

PREFIX = "METALOOP_"
EXIT_INVALID_SETTINGS = 2


class EnvironmentSettings(BaseSettings):
    """How all settings are read; the name of a field in capitals, after the prefix, is its variable."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True, cli_kebab_case=True, cli_implicit_flags=True
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """Where and how a service answers HTTP."""

    host: str
    port: int
    reuse_port: bool = False
    """Whether several processes share the port."""
    certificate_file: str = ""
    """PEM, the whole chain; empty: no TLS."""
    key_file: str = ""
    client_ca_file: str = ""
    """Who signs the certificates that clients must show; empty: none is asked for."""


class ServiceSettings(EnvironmentSettings):
    """What every service has."""

    log_level: Level = Field(default="info", description="The least important lines that are logged: debug, info, warning or error.")
    log_format: Format = Field(default="json", description="json for machines, console for people.")
    host: str = Field(default="127.0.0.1", description="The address to serve probes and metrics on; loopback unless others must reach it.")
    port: int = Field(default=8080, ge=0, le=65535, description="The port to serve probes and metrics on; 0 takes a free one.")
    otlp_endpoint: str = Field(
        default="", description="Where spans go, an OTLP/HTTP collector such as http://jaeger:4318; empty: no traces."
    )

    @property
    def listener(self) -> Listener:
        """How the service is served; one that serves more than probes may want more of it."""
        return Listener(host=self.host, port=self.port)


class NatsSettings(EnvironmentSettings):
    """The bus, as watcher and reconciler share it."""

    nats_url: str = Field(default="nats://127.0.0.1:4222", description="The NATS server, with JetStream; several separated by commas.")
    ack_wait_seconds: float = Field(
        default=5.0,
        gt=0.5,
        le=300,
        description="How long a silent worker keeps its jobs and leases; a third of it is the pulse of a live one.",
    )
    stream_replicas: int = Field(
        default=1, ge=1, le=5, description="How many servers of a NATS cluster keep each job; 3 where there are three of them."
    )


class KubeSettings(EnvironmentSettings):
    """The cluster."""

    kubeconfig: str = Field(
        default="",
        description="A kubeconfig file; empty: $KUBECONFIG, the service account of the pod, or ~/.kube/config, whichever is there first.",
    )


class FieldManagerSettings(EnvironmentSettings):
    """Who we are in `managedFields`, as watcher and reconciler have to agree on it."""

    field_manager: str = Field(
        default="metacontroller",
        min_length=1,
        max_length=128,
        description="The name under which children are written. Another name leaves what was applied server-side under the former one behind.",
    )


SettingsT = TypeVar("SettingsT", bound=EnvironmentSettings)


def load_settings(kind: type[SettingsT], arguments: Sequence[str] = ()) -> SettingsT:
    """The settings of this process; where they make no sense, it says which variable is wrong and exits with status 2.

    `--help` among the arguments prints all settings with their defaults.
    """
    try:
        command_line = CliSettingsSource[ArgumentParser](kind, cli_prog_name=f"python -m {kind.__module__.rpartition('.')[0]}")
        return CliApp.run(kind, cli_args=[*arguments], cli_settings_source=command_line)
    except ValidationError as problem:
        sys.stderr.write(complaint(problem))
        sys.exit(EXIT_INVALID_SETTINGS)


def complaint(problem: ValidationError) -> str:
    """One line for each setting that is wrong, by the name of its variable; values stay out of it, they may be secrets."""
    return "".join(f"{_variable(error['loc'])}: {error['msg']}\n" for error in problem.errors(include_input=False, include_url=False))


def _variable(location: tuple[int | str, ...]) -> str:
    return PREFIX + "_".join(map(str, location)).upper() if location else "settings"
