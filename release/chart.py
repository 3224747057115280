"""The Helm chart as an archive, as `helm package` makes it: with the files that its links lead to, in one folder."""

import tarfile
from pathlib import Path, PurePath

_IGNORE = ".helmignore"


def package_chart(chart: Path, into: Path) -> None:
    """Write the archive of a chart. What its `.helmignore` names is left out: files by name, folders by path."""
    ignored = [line.strip() for line in (chart / _IGNORE).read_text().splitlines() if line.strip() and not line.startswith("#")]

    def kept(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        path = PurePath(*PurePath(entry.name).parts[1:])
        if path.name in {*ignored, _IGNORE} or f"{path}/" in ignored:
            return None
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with tarfile.open(into, "w:gz", dereference=True) as archive:
        archive.add(chart, arcname="metaloop", filter=kept)
