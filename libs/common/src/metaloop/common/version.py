"""The version of this installation: all of Metaloop's packages have the same."""

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The version of Metaloop's packages, as `0.1.0`."""
    return metadata.version("metaloop-common")
