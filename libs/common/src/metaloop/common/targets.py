"""Where a service can be scraped, as a file that Prometheus finds by `file_sd_configs`: for services on any port."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from metaloop.common.json import JsonObject, dumps
from metaloop.common.server import Address


@asynccontextmanager
async def target_file(folder: str, *, service: str, address: Address) -> AsyncIterator[None]:
    """Have a file in `folder` name the service and its address while the block runs; without a folder, nothing.

    Raises OSError where the file cannot be written. A process that is killed leaves its file behind.
    """
    if not folder:
        yield
        return
    file = Path(folder) / f"{service}-{address.port}.json"
    labels: JsonObject = {"service": service}
    entry: JsonObject = {"targets": [f"{address.host}:{address.port}"], "labels": labels}
    written = file.with_suffix(".new")
    written.write_bytes(dumps([entry]))
    written.replace(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
