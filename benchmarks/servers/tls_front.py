"""Puts TLS before a server: ``python -m benchmarks.servers.tls_front PEM URL``; says ``READY url``."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
import sys
from urllib.parse import urlsplit

CHUNK = 1 << 16


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Hand on what comes, until one side ends."""
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while chunk := await reader.read(CHUNK):
            writer.write(chunk)
            await writer.drain()
    writer.close()


async def serve(certificate: str, url: str) -> None:
    """Serve until standard input ends."""
    behind = urlsplit(url)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back_reader, back_writer = await asyncio.open_connection(behind.hostname, behind.port)
        await asyncio.gather(pump(reader, back_writer), pump(back_reader, writer))

    over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        if not os.read(0, 4096):
            loop.remove_reader(0)
            over.set()

    loop.add_reader(0, end)
    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls, backlog=512)
    port = server.sockets[0].getsockname()[1]
    sys.stdout.write(f"READY https://127.0.0.1:{port}{behind.path}\n")
    sys.stdout.flush()
    await over.wait()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
