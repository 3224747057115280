"""`python -m release`: show or set the version, and make what is published."""

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from release.dist import Tools, write_dist
from release.version import mentions, set_version, version_of

ROOT = Path(__file__).parents[1]
app = typer.Typer(help="Makes releases of Metaloop.", no_args_is_help=True, add_completion=False, rich_markup_mode=None)


@app.command()
def version(new: Annotated[str, typer.Argument(help="The version to set everywhere. Default: print the current one.")] = "") -> None:
    """Print or set the one version of all packages, manifests and images."""
    if new:
        set_version(ROOT, new)
    typer.echo(version_of(ROOT))
    for mention in mentions(ROOT):
        if mention.version != version_of(ROOT):
            raise typer.BadParameter(f"{mention.file}:{mention.line} has {mention.version}")


@app.command()
def dist(into: Annotated[Path, typer.Option(help="The folder to write, anew.", file_okay=False)] = ROOT / "dist") -> None:
    """Write packages, manifests, bill of materials, licences and checksums."""
    tools = Tools(uv=os.environ.get("UV") or "uv", kubectl=_kubectl())
    for file in write_dist(ROOT, into.absolute(), tools):
        typer.echo(f"{file.stat().st_size:>10}  {file.name}")


def _kubectl() -> str:
    """That of the control plane's programs, else that of the PATH."""
    return shutil.which("kubectl", path=os.environ.get("KUBEBUILDER_ASSETS")) or "kubectl"


if __name__ == "__main__":
    app()
