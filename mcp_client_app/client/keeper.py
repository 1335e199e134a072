"""Keeps the catalogue of one connection fresh: reads it, and reads it again when it changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import Context

from mcp_client_app.client.background import spawn
from mcp_client_app.client.backoff import Backoff
from mcp_client_app.client.catalogue import METHOD_NOT_FOUND, Catalogue, load
from mcp_client_app.client.link import Link
from mcp_client_app.client.pace import Pace
from mcp_client_app.datatypes import ManagerOptions, ServerSpec
from mcp_client_app.exceptions import MCPClientError, ProtocolError, ServerConnectionError

logger = logging.getLogger(__name__)

__all__ = ["CatalogueKeeper"]

SOUND = 60.0
"""Seconds after which a subscription that ended counts as having worked."""


class CatalogueKeeper:
    """Holds the last known catalogue, also while the server is away."""

    def __init__(
        self,
        spec: ServerSpec,
        options: ManagerOptions,
        ready: Callable[[], Awaitable[Link]],
        live: Callable[[], Link | None],
        changed: Callable[[], None],
        learned: Callable[[], None] = lambda: None,
    ) -> None:
        """``ready`` connects if need be, and counts as use; ``live`` does neither.

        A new catalogue is told to ``changed`` while the link is in use, and to ``learned`` always.
        """
        self.spec = spec
        self._learned = learned
        self._catalogue: Catalogue | None = None
        self.reading = 0
        """Readings under way that somebody waits for."""
        self._options = options
        self._ready = ready
        self._live = live
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._news: asyncio.Task[None] | None = None
        self._wanted = False
        self._pace = Pace()

    @property
    def catalogue(self) -> Catalogue | None:
        """What was read last."""
        return self._catalogue

    @catalogue.setter
    def catalogue(self, catalogue: Catalogue | None) -> None:
        self._catalogue = catalogue
        self._learned()

    async def load(self, link: Link) -> None:
        """Read all lists over a link that is not yet in use."""
        self.catalogue = await load(link, self.spec, self._options)

    async def refresh(self) -> Catalogue:
        """Read the lists now; the old catalogue stays if that fails."""
        self.reading += 1
        try:
            link = await self._ready()
            try:
                return await self._read(link)
            except ServerConnectionError:
                if not link.is_down:
                    raise
            # It was found to be lost by this very reading: a new link reads the lists as it connects.
            await self._ready()
            assert self.catalogue is not None
            return self.catalogue
        finally:
            self.reading -= 1

    async def _read(self, link: Link) -> Catalogue:
        catalogue = await load(link, self.spec, self._options)
        self.catalogue = catalogue
        self._changed()
        return catalogue

    def refresh_soon(self) -> None:
        """Read the lists after a moment; many wishes in that moment cost one reading.

        What the server says by itself is no use of it: this neither connects nor keeps it from idling.
        """
        self._wanted = True
        if self._task is None or self._task.done():
            # News come with whatever call was being answered, whose record must not live on with the task.
            self._task = Context().run(spawn, self._refresh_wanted(), "Reading changed lists")

    async def _refresh_wanted(self) -> None:
        loop = asyncio.get_running_loop()
        while self._wanted:
            await asyncio.sleep(self._pace.next_pause(loop.time()))
            if self._wanted:
                await self._read_news()

    @property
    def is_behind(self) -> bool:
        """Whether the server has announced lists that have not been read yet."""
        return self._wanted or (self._news is not None and not self._news.done())

    async def catch_up(self) -> None:
        """Have announced lists read at once; all who wait share a reading."""
        # One that is under way may have begun before the latest announcement.
        for _ in range(2):
            if self.is_behind:
                await self._read_news()

    async def _read_news(self) -> None:
        if self._news is None or self._news.done():
            self._wanted = False  # a change from here on needs a further reading
            self._news = Context().run(spawn, self._read_live(), "Reading announced lists")
        # Neither does a waiter that is gone end it, nor its own end those who wait.
        await asyncio.wait([self._news])

    async def _read_live(self) -> None:
        link = self._live()
        if link is None:
            return  # connecting reads them anyway
        try:
            await self._read(link)
        except MCPClientError as error:
            logger.warning("The changed lists of %r could not be read: %s", self.spec.name, error)

    async def listen(self, link: Link) -> None:
        """Keep a subscription open where the era needs one; after a gap the lists are read anew."""
        loop = asyncio.get_running_loop()
        backoff = Backoff()
        while not link.closed.done():
            started = loop.time()
            try:
                await link.listen()
                return  # none is needed
            except MCPClientError as error:
                if isinstance(error, ProtocolError) and error.rpc_code == METHOD_NOT_FOUND:
                    return  # it will not know it the next time either
                logger.debug("The subscription to %r ended: %s", self.spec.name, error)
            if loop.time() - started > SOUND:
                backoff.reset()
            await asyncio.sleep(backoff.failed(loop.time()))
            self.refresh_soon()

    def cancel(self) -> None:
        """Forget about readings that are planned or under way; the link is going."""
        self._wanted = False
        for task in (self._task, self._news):
            if task is not None:
                task.cancel()
        # A task that was cancelled keeps the frames it was in, and with them the link.
        self._task = self._news = None
