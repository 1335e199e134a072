"""Keeps the catalogue of one connection fresh: reads it, and reads it again when it changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mcp_client_app.client.backoff import Backoff
from mcp_client_app.client.catalogue import Catalogue, load
from mcp_client_app.client.link import Link
from mcp_client_app.datatypes import ManagerOptions, ServerSpec
from mcp_client_app.exceptions import MCPClientError

logger = logging.getLogger(__name__)

__all__ = ["LIST_CHANGED", "CatalogueKeeper"]

DEBOUNCE = 0.2
"""Seconds to wait after a change: many changes in a row cost one reading."""
SOUND = 60.0
"""Seconds after which a subscription that ended counts as having worked."""

LIST_CHANGED = frozenset(
    {
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/prompts/list_changed",
    }
)


class CatalogueKeeper:
    """Holds the last known catalogue, also while the server is away."""

    def __init__(
        self,
        spec: ServerSpec,
        options: ManagerOptions,
        ready: Callable[[], Awaitable[Link]],
        changed: Callable[[], None],
    ) -> None:
        self.spec = spec
        self.catalogue: Catalogue | None = None
        self._options = options
        self._ready = ready
        self._changed = changed
        self._task: asyncio.Task[None] | None = None
        self._wanted = False

    async def load(self, link: Link) -> None:
        """Read all lists over a link that is not yet in use."""
        self.catalogue = await load(link, self.spec, self._options)

    async def refresh(self) -> Catalogue:
        """Read the lists now; the old catalogue stays if that fails."""
        catalogue = await load(await self._ready(), self.spec, self._options)
        self.catalogue = catalogue
        self._changed()
        return catalogue

    def refresh_soon(self) -> None:
        """Read the lists after a moment; many wishes in that moment cost one reading."""
        self._wanted = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._refresh_wanted())

    async def _refresh_wanted(self) -> None:
        while self._wanted:
            await asyncio.sleep(DEBOUNCE)
            self._wanted = False  # a change from here on needs a further reading
            try:
                await self.refresh()
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
                return  # none is needed, or the server ended it in good order
            except MCPClientError as error:
                logger.debug("The subscription to %r ended: %s", self.spec.name, error)
            if loop.time() - started > SOUND:
                backoff.reset()
            await asyncio.sleep(backoff.failed(loop.time()))
            self.refresh_soon()

    def cancel(self) -> None:
        """Forget about readings that are planned or under way; the link is going."""
        self._wanted = False
        if self._task is not None:
            self._task.cancel()
