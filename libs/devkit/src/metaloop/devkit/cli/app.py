"""The commands of `metaloop` and their options; each calls the code that does the work."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from metaloop.common.api.kinds import named
from metaloop.common.duration import seconds_of
from metaloop.common.errors import InvalidSpec
from metaloop.common.objects.resource import ResourceId
from metaloop.common.objects.selector import parse_selector_text
from metaloop.common.version import version
from metaloop.devkit import manifests
from metaloop.devkit.cli import cluster
from metaloop.devkit.cli.debug_views import DebugOptions
from metaloop.devkit.cli.explain import ParentName, explain
from metaloop.devkit.cli.migrate import check_migration
from metaloop.devkit.cli.plan import PlanOptions, plan
from metaloop.devkit.cli.rbac import RbacOptions, rbac
from metaloop.devkit.cli.release import release
from metaloop.devkit.cli.run import run
from metaloop.devkit.cli.top import top
from metaloop.devkit.cli.up import UpOptions, serve
from metaloop.devkit.demo import SCENARIOS, run_demo
from metaloop.devkit.dryrun.gateway import GatewayAddress

app = typer.Typer(
    help="Runs Kubernetes controllers whose business logic is a webhook.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


class ApplyStrategy(StrEnum):
    """How children are written."""

    DYNAMIC_APPLY = "dynamic-apply"
    SERVER_SIDE_APPLY = "server-side-apply"


class LogLevel(StrEnum):
    """The lowest level that the services log."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Output(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - the value of an option
    if wanted:
        typer.echo(version())
        raise typer.Exit


@app.callback()
def options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Runs Kubernetes controllers whose business logic is a webhook."""


def _duration(text: str) -> float:
    seconds = seconds_of(text)
    if seconds is None or seconds <= 0:
        raise typer.BadParameter(f"{text!r} is not a duration such as 500ms, 10s or 1m30s")
    return seconds


def _selector(text: str) -> str:
    try:
        parse_selector_text(text)
    except InvalidSpec as problem:
        raise typer.BadParameter(str(problem)) from problem
    return text


def _resource(text: str) -> ResourceId:
    api_version, _, resource = text.rpartition("/")
    if not api_version or not resource:
        raise typer.BadParameter(f"{text!r} is not a resource such as v1/secrets or apps/v1/deployments")
    return ResourceId(api_version, resource)


@app.command()
def up(  # noqa: PLR0913 - one argument for each option of the command line
    *,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(help="The cluster to serve. Without it, a control plane is started for this run.", exists=True, dir_okay=False),
    ] = None,
    reconcilers: Annotated[int, typer.Option(help="How many reconcilers share the work.", min=1)] = 2,
    watchers: Annotated[int, typer.Option(help="How many watchers run. One leads, by a Lease; the others are standbys.", min=1)] = 1,
    target_label_selector: Annotated[
        str,
        typer.Option(
            help="Serve only the controllers whose labels match this selector; empty for all.", parser=_selector, metavar="SELECTOR"
        ),
    ] = "",
    discovery_interval: Annotated[
        float, typer.Option(help="How often the watchers look for new kinds of resources.", parser=_duration, metavar="DURATION")
    ] = "30s",  # pyright: ignore[reportArgumentType] - parsed like the user's text
    apply_strategy: Annotated[ApplyStrategy, typer.Option(help="How children are written.")] = ApplyStrategy.DYNAMIC_APPLY,
    install_crds: Annotated[bool, typer.Option(help="Create or update the CRDs of Metaloop's kinds.")] = True,
    ready_file: Annotated[
        Path | None,
        typer.Option(
            help="A file to write when everything is ready, and to remove at the end: JSON with KUBECONFIG and the services' URLs."
        ),
    ] = None,
    metrics_port_base: Annotated[
        int | None,
        typer.Option(
            help="First of the services' ports (probes and metrics): watcher, hookgateway, reconcilers, other watchers. Without it, free ports are picked.",
            min=1,
            max=65000,
        ),
    ] = None,
    log_level: Annotated[LogLevel, typer.Option(help="The lowest level that the services log.")] = LogLevel.INFO,
    jaeger: Annotated[
        bool, typer.Option("--jaeger", help="Run a Jaeger as well, which gets the traces; it is built once, in minutes.")
    ] = False,
) -> None:
    """Run NATS and the three services against a cluster, until Ctrl-C.

    Prints the line "metaloop: ready" on stdout when controllers are served; everything else goes to stderr.
    """
    options = UpOptions(
        kubeconfig=kubeconfig,
        reconcilers=reconcilers,
        watchers=watchers,
        target_label_selector=target_label_selector,
        discovery_interval_seconds=discovery_interval,
        apply_strategy=apply_strategy,
        install_crds=install_crds,
        ready_file=ready_file,
        metrics_port_base=metrics_port_base,
        log_level=log_level,
        jaeger=jaeger,
    )
    run(serve(options))


@app.command("cluster")
def cluster_command() -> None:
    """Run a real control plane alone, until Ctrl-C, and print the KUBECONFIG to use."""
    run(cluster.serve())


@app.command()
def assets() -> None:
    """Find or fetch the control-plane programs, and print their folder as the last line.

    They come from $KUBEBUILDER_ASSETS, the cache in your home folder, the official releases, or a build of the pinned
    Go modules.
    """
    run(cluster.print_assets())


@app.command()
def crds() -> None:
    """Print the CRDs of Metaloop's kinds as YAML."""
    typer.echo(manifests.crds_yaml(), nl=False)


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="The example whose scenario is played.")] = "hello",
    *,
    example: Annotated[Path | None, typer.Option(help="The folder of the example. Default: examples/NAME.", file_okay=False)] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the examples and what they show.")] = False,
) -> None:
    """Play the scenario of an example on a real cluster.

    In that of hello, parents converge and a reconciler is killed.
    """
    if list_:
        typer.echo("\n".join(f"{name:<22} {scenario.about}" for name, scenario in SCENARIOS.items()))
        return
    if name not in SCENARIOS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(SCENARIOS)}", param_hint="NAME")
    run(run_demo(SCENARIOS[name], example or Path("examples") / name))


@app.command("plan")
def plan_command(  # noqa: PLR0913 - one argument for each option of the command line
    target: Annotated[str, typer.Argument(help="KIND/NAME of a parent; or KIND/NAME of a controller, followed by the parent.")],
    parent: Annotated[
        str, typer.Argument(help="The parent, if TARGET is a controller: NAMESPACE/NAME, or NAME for a cluster-scoped parent.")
    ] = "",
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The namespace of KIND/NAME.")] = "default",
    controller: Annotated[str, typer.Option(help="Which controller, if KIND/NAME is a parent of several.")] = "",
    kubeconfig: Annotated[str, typer.Option(help="The cluster. Default: $KUBECONFIG or ~/.kube/config.")] = "",
    gateway_url: Annotated[str, typer.Option(help="A running hook gateway that calls the hooks. Without it, one is started.")] = "",
    gateway_token: Annotated[str, typer.Option(help="The token of that gateway.", envvar="METALOOP_GATEWAY_TOKEN", show_envvar=True)] = "",
    apply_strategy: Annotated[ApplyStrategy, typer.Option(help="The same as the reconcilers' setting.")] = ApplyStrategy.DYNAMIC_APPLY,
    field_manager: Annotated[str, typer.Option(help="The same as the reconcilers' setting.")] = "metacontroller",
    part: Annotated[
        str, typer.Option(help="Where a parent's inputs are synced one by one: only the input with this name, NAMESPACE/NAME, or map key.")
    ] = "",
    parts: Annotated[int, typer.Option(help="How many such inputs at most; 0 for all.", min=0)] = 5,
    output: Annotated[Output, typer.Option("--output", "-o", help="The format of the plan.")] = Output.TEXT,
) -> None:
    """Print what a sync of a live parent would write, and why, with a diff of each write.

    The hooks are called; nothing is written.
    """
    options = PlanOptions(
        target=target,
        parent=parent,
        namespace=namespace,
        controller=controller,
        kubeconfig=kubeconfig,
        gateway=GatewayAddress(gateway_url, gateway_token) if gateway_url else None,
        apply_strategy=apply_strategy,
        field_manager=field_manager,
        as_json=output is Output.JSON,
        part=part,
        parts=parts,
    )
    run(plan(options))


@app.command("release-finalizers")
def release_command(
    controller: Annotated[str, typer.Argument(help=f"The deleted controller: {named('NAME')}.")],
    *,
    kubeconfig: Annotated[str, typer.Option(help="The cluster. Default: $KUBECONFIG or ~/.kube/config.")] = "",
    resource: Annotated[
        str, typer.Option(help="Only objects of this resource, as `things` or `things.example.com`. Default: all kinds.")
    ] = "",
    finalizer: Annotated[
        str, typer.Option(help="The finalizer, where it does not follow from the controller's name: PREFIX/finalizer of components.")
    ] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the objects that have the finalizer.")] = False,
) -> None:
    """Remove the finalizer of a deleted controller from all objects that still have it, so that they can be deleted."""
    run(release(controller, kubeconfig=kubeconfig, resource=resource, dry_run=dry_run, finalizer=finalizer))


@app.command("migrate")
def migrate_command(
    *,
    check: Annotated[
        bool, typer.Option("--check", help="Say what differs, and write nothing. There is nothing else: a move needs no conversion.")
    ] = True,
    kubeconfig: Annotated[str, typer.Option(help="The cluster. Default: $KUBECONFIG or ~/.kube/config.")] = "",
) -> None:
    """Say for each controller of Metacontroller what will differ under Metaloop, and what has to be done first."""
    del check
    run(check_migration(kubeconfig=kubeconfig))


@app.command("rbac")
def rbac_command(  # noqa: PLR0913 - one for each option
    *,
    controller: Annotated[
        list[Path] | None,
        typer.Option(help="A manifest with controllers; may be repeated. Default: those that are installed.", exists=True),
    ] = None,
    related: Annotated[
        list[ResourceId] | None,
        typer.Option(help="A resource that customize hooks select, as v1/secrets; may be repeated.", parser=_resource, metavar="RESOURCE"),
    ] = None,
    generated: Annotated[
        list[ResourceId] | None,
        typer.Option(
            help="A resource that generators return, as apps/v1/deployments; may be repeated.", parser=_resource, metavar="RESOURCE"
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare with what the accounts may do: print what is missing or too much, and fail if anything."),
    ] = False,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Where Metaloop is installed.")] = "metaloop",
    kubeconfig: Annotated[str, typer.Option(help="The cluster. Default: $KUBECONFIG or ~/.kube/config.")] = "",
) -> None:
    """Print the roles that watcher and reconcilers need for some controllers, and nothing else."""
    options = RbacOptions(
        files=controller or (),
        related=related or (),
        generated=generated or (),
        kubeconfig=kubeconfig,
        namespace=namespace,
        is_check=check,
    )
    run(rbac(options))


def main() -> None:
    """Run the command that the arguments name."""
    app()


_DebugUrl = Annotated[
    str,
    typer.Option(
        help="A watcher's debug views, such as http://127.0.0.1:8091. Default: those of its pods, through the API server.",
        envvar="METALOOP_DEBUG_URL",
        show_envvar=True,
    ),
]
_DebugToken = Annotated[str, typer.Option(help="METALOOP_DEBUG_TOKEN of the watchers.", envvar="METALOOP_DEBUG_TOKEN", show_envvar=True)]
_DebugPort = Annotated[int, typer.Option(help="METALOOP_DEBUG_PORT of the watchers in the cluster.", min=1, max=65535)]
_SystemNamespace = Annotated[str, typer.Option(help="Where Metaloop is installed.")]
_Kubeconfig = Annotated[str, typer.Option(help="The cluster. Default: $KUBECONFIG or ~/.kube/config.")]


@app.command("explain")
def explain_command(  # noqa: PLR0913 - one argument for each option of the command line
    kind: Annotated[str, typer.Argument(help="The kind of the parent, or its resource.")],
    name: Annotated[str, typer.Argument(help="The name of the parent.")],
    *,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="The namespace of the parent.")] = "default",
    debug_url: _DebugUrl = "",
    debug_token: _DebugToken = "",
    debug_port: _DebugPort = 8091,
    system_namespace: _SystemNamespace = "metaloop",
    kubeconfig: _Kubeconfig = "",
) -> None:
    """Print why a parent was synced last, how that ended, what it waits for, and when it is due.

    The watchers answer. Their debug views must be on.
    """
    options = DebugOptions(url=debug_url, token=debug_token, port=debug_port, namespace=system_namespace, kubeconfig=kubeconfig)
    run(explain(ParentName(kind=kind, namespace=namespace, name=name), options))


@app.command("top")
def top_command(  # noqa: PLR0913 - one argument for each option of the command line
    *,
    every: Annotated[float, typer.Option(help="How often the table is drawn.", parser=_duration, metavar="DURATION")] = "2s",  # pyright: ignore[reportArgumentType] - parsed like the user's text
    once: Annotated[bool, typer.Option("--once", help="Print the table once; durations are then those since the watcher leads.")] = False,
    debug_url: _DebugUrl = "",
    debug_token: _DebugToken = "",
    debug_port: _DebugPort = 8091,
    system_namespace: _SystemNamespace = "metaloop",
    kubeconfig: _Kubeconfig = "",
) -> None:
    """Show the controllers: parents, backlog, rates, and how long syncs take."""
    options = DebugOptions(url=debug_url, token=debug_token, port=debug_port, namespace=system_namespace, kubeconfig=kubeconfig)
    run(top(options, every_seconds=every, is_once=once))
