"""Settings that services share, read from the command line and the environment.

They are validated at start and never change.

`--ack-wait-seconds 10` means the same as METALOOP_ACK_WAIT_SECONDS=10, and takes precedence. What neither says may
stand in a file: METALOOP_SECRETS_FOLDER=/run/secrets names a folder, METALOOP_NATS_URL a file in it.
"""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    CliApp,
    CliSettingsSource,
    PydanticBaseSettingsSource,
    SecretsSettingsSource,
    SettingsConfigDict,
)

from metaloop.common.telemetry.logs import Format, Level
from metaloop.common.version import version

PREFIX = "METALOOP_"
SECRETS_FOLDER = "METALOOP_SECRETS_FOLDER"
"""A variable that names a folder of files. A file named like a variable holds the value of that setting."""
EXIT_INVALID_SETTINGS = 2


class EnvironmentSettings(BaseSettings):
    """The base of all settings. The variable of a field is the prefix and the name of the field in capitals."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, frozen=True, extra="ignore", hide_input_in_errors=True, cli_kebab_case=True, cli_implicit_flags=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Options before variables, and these before the files of $METALOOP_SECRETS_FOLDER."""
        del dotenv_settings, file_secret_settings
        folder = os.environ.get(SECRETS_FOLDER)
        files = (SecretsSettingsSource(settings_cls, secrets_dir=folder),) if folder else ()
        return init_settings, env_settings, *files


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The address of an HTTP server, and its TLS."""

    host: str
    port: int
    reuse_port: bool = False
    """Whether several processes share the port."""
    certificate_file: str = ""
    """The certificate chain (PEM); empty for plain HTTP."""
    key_file: str = ""
    client_ca_file: str = ""
    """The CA of client certificates, which are required then; empty to require none."""


class ServiceSettings(EnvironmentSettings):
    """The settings of every service."""

    log_level: Level = Field(default="info", description="The lowest level that is logged: debug, info, warning or error.")
    log_format: Format = Field(default="json", description="The form of log lines: json for machines, console for people.")
    host: str = Field(default="127.0.0.1", description="The address to serve probes and metrics on; loopback unless others must reach it.")
    port: int = Field(default=8080, ge=0, le=65535, description="The port to serve probes and metrics on; 0 takes a free one.")
    drain_seconds: float = Field(
        default=6.0,
        gt=0,
        le=3600,
        description="How long work in progress may take after SIGTERM: as long as the longest hook call. A pod's "
        "terminationGracePeriodSeconds has to be two seconds longer.",
    )
    targets_folder: str = Field(
        default="", description="A folder for a file with the service's address, which Prometheus finds by file_sd_configs; empty: none."
    )
    loop_beat_seconds: float = Field(
        default=0.1, ge=0.01, le=60, description="How often a timer measures how long the event loop was held up."
    )
    otlp_endpoint: str = Field(
        default="",
        description="The OTLP/HTTP collector that gets the spans, such as http://jaeger:4318; empty: the one of OTEL_EXPORTER_OTLP_ENDPOINT, if any.",
    )

    @property
    def listener(self) -> Listener:
        """Where the service listens. A service that serves more than probes overrides this."""
        return Listener(host=self.host, port=self.port)


class NatsSettings(EnvironmentSettings):
    """The NATS settings, which watcher and reconciler must agree on."""

    nats_url: str = Field(default="nats://127.0.0.1:4222", description="The NATS server, with JetStream; several separated by commas.")
    nats_prefix: str = Field(
        default="",
        pattern=r"^[A-Za-z0-9_-]*$",
        max_length=64,
        description="Begins the names of the job stream and of all subjects on the NATS server. Clusters that share a server need one each.",
    )
    nats_ca_file: str = Field(
        default="", description="The CA of the NATS servers (PEM). With it, or with a URL that begins with tls://, connections have TLS."
    )
    nats_certificate_file: str = Field(
        default="", description="The certificate chain (PEM) that NATS is shown. It is read again when a connection was lost."
    )
    nats_key_file: str = Field(default="", description="The key of that certificate (PEM); empty: it is in the same file.")
    nats_credentials_file: str = Field(default="", description="A NATS credentials file, with a JWT and its NKey; empty: none.")
    nats_nkey_file: str = Field(default="", description="A file with the seed of the NKey to log in with; empty: none.")
    ack_wait_seconds: float = Field(
        default=5.0,
        gt=0.5,
        le=300,
        description="How long a silent worker keeps its jobs and leases. A live worker renews them three times in it.",
    )
    stream_replicas: int = Field(
        default=1, ge=1, le=5, description="How many servers of a NATS cluster store each job; 3 in a cluster of three."
    )


class KubeSettings(EnvironmentSettings):
    """The connection to the cluster."""

    kubeconfig: str = Field(
        default="",
        description="A kubeconfig file; empty: the first that exists of $KUBECONFIG, the service account of the pod, and ~/.kube/config.",
    )


class FieldManagerSettings(EnvironmentSettings):
    """Our name in `managedFields`, which watcher and reconciler must agree on."""

    field_manager: str = Field(
        default="metacontroller",
        min_length=1,
        max_length=128,
        description="The field manager of children. After a change, fields that were applied server-side under the former name stay behind.",
    )


SettingsT = TypeVar("SettingsT", bound=EnvironmentSettings)


def load_settings(kind: type[SettingsT], arguments: Sequence[str] = ()) -> SettingsT:
    """The settings of this process. If they are invalid, prints which variables are wrong and exits with status 2.

    With `--help` among the arguments, prints all settings with their defaults and exits; with `--version`, the version.
    """
    try:
        command_line = CliSettingsSource[ArgumentParser](kind, cli_prog_name=f"python -m {kind.__module__.rpartition('.')[0]}")
        command_line.root_parser.add_argument("--version", action="version", version=version(), help="Print the version and exit.")
        return CliApp.run(kind, cli_args=[*arguments], cli_settings_source=command_line)
    except ValidationError as problem:
        sys.stderr.write(_error_text(problem))
        sys.exit(EXIT_INVALID_SETTINGS)


def _error_text(problem: ValidationError) -> str:
    """One line per invalid setting, by the name of its variable. Values are left out: they may be secrets."""
    return "".join(f"{_variable(error['loc'])}: {error['msg']}\n" for error in problem.errors(include_input=False, include_url=False))


def _variable(location: tuple[int | str, ...]) -> str:
    return PREFIX + "_".join(map(str, location)).upper() if location else "settings"
