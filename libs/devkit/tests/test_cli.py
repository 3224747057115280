"""The `metaloop` command as a user runs it: its options, its output and its exit codes."""

import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from metaloop.devkit.cli.app import app

METALOOP = Path(sys.executable).with_name("metaloop")

UP_OPTIONS = (
    "--kubeconfig",
    "--reconcilers",
    "--watchers",
    "--target-label-selector",
    "--discovery-interval",
    "--apply-strategy",
    "--install-crds",
    "--no-install-crds",
    "--ready-file",
    "--metrics-port-base",
    "--log-level",
    "--jaeger",
)

WORK = """
import asyncio, sys
from metaloop.devkit.cli.run import forever, run
from metaloop.devkit.errors import DevkitError

async def work():
    try:
        print("working", flush=True)
        if sys.argv[1] == "fail":
            raise DevkitError("it broke")
        await forever()
    finally:
        await asyncio.sleep(0)
        print("clean", flush=True)

run(work())
"""


def metaloop(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "200"}
    return subprocess.run([METALOOP, *arguments], capture_output=True, text=True, check=False, env=environment)


def in_this_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    """How the command ends without a process of its own: for what is decided before anything is started."""
    ended = CliRunner(env={"COLUMNS": "200"}).invoke(app, arguments)
    return subprocess.CompletedProcess(arguments, ended.exit_code, ended.stdout, ended.stderr)


def test_version_is_that_of_the_packages() -> None:
    shown = metaloop("--version")

    assert (shown.returncode, shown.stdout.strip()) == (0, metadata.version("metaloop-devkit"))


def test_up_has_every_documented_option() -> None:
    text = in_this_process("up", "--help").stdout

    assert [option for option in UP_OPTIONS if option not in text] == []


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("plan", ("--namespace", "--controller", "--gateway-url", "--gateway-token", "--output", "--apply-strategy", "--kubeconfig")),
        ("release-finalizers", ("--dry-run", "--resource", "--kubeconfig")),
    ],
)
def test_command_has_every_documented_option(command: str, options: tuple[str, ...]) -> None:
    text = in_this_process(command, "--help").stdout

    assert [option for option in options if option not in text] == []


def test_crds_are_a_yaml_stream_of_custom_resource_definitions() -> None:
    result = in_this_process("crds")

    manifests = list(yaml.safe_load_all(result.stdout))
    assert result.returncode == 0
    assert {manifest["kind"] for manifest in manifests} == {"CustomResourceDefinition"}
    assert "compositecontrollers.metacontroller.k8s.io" in {manifest["metadata"]["name"] for manifest in manifests}


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--discovery-interval", "5", "is not a duration such as 500ms"),
        ("--discovery-interval", "0s", "is not a duration such as 500ms"),
        ("--reconcilers", "0", "Invalid value for '--reconcilers'"),
        ("--watchers", "0", "Invalid value for '--watchers'"),
        ("--target-label-selector", "team in (blue", "can't read 'team in (blue'"),
        ("--kubeconfig", "/there/is/no/such/file", "does not exist"),
    ],
)
def test_an_invalid_value_is_a_usage_error(option: str, value: str, complaint: str) -> None:
    result = in_this_process("up", option, value)

    assert result.returncode == 2
    assert complaint in result.stderr


def test_an_invalid_kubeconfig_is_a_clear_failure(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("nonsense")

    result = metaloop("up", "--kubeconfig", str(tmp_path / "kubeconfig"))

    assert result.returncode == 1
    assert "can't be used" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unknown_apply_strategy_is_a_usage_error() -> None:
    result = in_this_process("up", "--apply-strategy", "magic")

    assert result.returncode == 2
    assert "server-side-apply" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_ends_with_exit_code_0_after_the_cleanup(number: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", WORK, "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "working\n"

        process.send_signal(number)
        output, errors = process.communicate()

    assert (process.returncode, output) == (0, "clean\n")
    assert errors == f"metaloop: {number.name}: stopping\n"


def test_a_second_signal_does_not_interrupt_the_cleanup() -> None:
    with subprocess.Popen([sys.executable, "-c", WORK, "wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "working\n"

        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate()

    assert (process.returncode, output) == (0, "clean\n")


def test_a_failure_is_one_message_and_exit_code_1() -> None:
    result = subprocess.run([sys.executable, "-c", WORK, "fail"], capture_output=True, text=True, check=False)

    assert result.stdout == "working\nclean\n"
    assert result.stderr == "metaloop: error: it broke\n"
    assert result.returncode == 1


def test_rbac_prints_the_roles_for_the_controllers_of_a_manifest() -> None:
    example = Path(__file__).parents[3] / "examples" / "hello" / "controller.yaml"

    printed = in_this_process("rbac", "--controller", str(example))

    roles = {role["metadata"]["name"]: role["rules"] for role in yaml.safe_load_all(printed.stdout)}
    assert printed.returncode == 0
    assert roles.keys() == {"metaloop-watcher", "metaloop-reconciler"}
    assert {"apiGroups": ["example.com"], "resources": ["hellos"], "verbs": ["get", "list", "watch"]} in roles["metaloop-watcher"]


def test_rbac_tells_that_related_resources_have_to_be_named() -> None:
    example = Path(__file__).parents[3] / "examples" / "secret-propagation" / "controller.yaml"

    assert "name what it selects by --related" in in_this_process("rbac", "--controller", str(example)).stderr
    assert "--related" not in in_this_process("rbac", "--controller", str(example), "--related", "v1/secrets").stderr


def test_rbac_refuses_what_is_no_resource() -> None:
    refused = in_this_process("rbac", "--related", "secrets")

    assert refused.returncode == 2
    assert "is not a resource such as v1/secrets" in " ".join(refused.stderr.split())
