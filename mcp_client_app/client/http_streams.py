"""Event streams over HTTP: reading one, and taking it up again after it broke off.

Two kinds exist in the handshake eras: the answer to a POST, which ends with its answer, and
the GET stream on which the server speaks of its own accord for as long as the session lives.
"""

from __future__ import annotations

import asyncio
import enum
import logging
import random
from collections.abc import Awaitable, Callable

from mcp_client_app.client.event_stream import EventStreamParser, ServerEvent
from mcp_client_app.client.http import HttpClient, Response
from mcp_client_app.client.http_faults import BODY_LIMIT, Refusal, parse_retry_after
from mcp_client_app.client.http_session import EVENT_STREAM, HttpSession
from mcp_client_app.exceptions import (
    AuthRequiredError,
    ConfigurationError,
    MCPClientError,
    ResultTooLargeError,
    TransportError,
)

__all__ = ["EventHandler", "ServerStream", "StreamEnd", "read_events", "read_refusal", "retry_delay"]

logger = logging.getLogger(__name__)

LONGEST_DELAY = 60.0
LONGEST_PATIENCE = 3600.0
"""For a server that asks to be left alone for so long."""
SHORTEST_DELAY = 0.05
"""Keeps a server that asks for no delay at all from being hammered."""
ON_TIME = 0.01
"""Added to a delay that the server named: it counts from when it closed, and coming early is an offence."""

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
"""What a server would have said that was away for a while and may be another one now."""

STABLE_SECONDS = 10.0
"""A stream that stayed open so long was no failure, even if the server had nothing to say."""

EventHandler = Callable[[ServerEvent], Awaitable[bool]]
"""Takes an event; says whether it was the last one wanted."""


async def read_events(response: Response, parser: EventStreamParser, handle: EventHandler) -> bool:
    """Handle events as they come; say whether the last one wanted was among them.

    Raises:
        ResultTooLargeError: An event exceeds the parser's limit.
        TransportError: The connection broke.
    """
    while chunk := await response.read_chunk():
        for event in parser.feed(chunk):
            if await handle(event):
                return True
    return False


async def read_refusal(response: Response) -> Refusal:
    """Read what the server says instead of the answer that was asked for."""
    return Refusal(
        response.status,
        response.content_type,
        await response.read_beginning(BODY_LIMIT),
        response.header("www-authenticate"),
        response.header("retry-after"),
    )


def retry_delay(parser: EventStreamParser, default: float) -> float:
    """Return the seconds to wait before the stream is taken up again."""
    if parser.retry is None:
        return default
    return max(SHORTEST_DELAY, parser.retry / 1000 + ON_TIME)


class StreamEnd(enum.Enum):
    """Why the server's own stream is not open any more."""

    BROKEN = "broken"
    """Worth another try."""
    NOT_OFFERED = "not offered"
    SESSION_LOST = "session lost"


class ServerStream:
    """The GET stream of one session: opened again whenever it breaks, however long that takes."""

    def __init__(
        self,
        client: HttpClient,
        session: HttpSession,
        handle: EventHandler,
        parser: EventStreamParser,
        *,
        delay: float,
    ) -> None:
        self._client = client
        self._session = session
        self._handle = handle
        self._parser = parser
        self._delay = delay
        self._was_open = False
        self._was_away = False
        self._patience = 0.0
        """Seconds that the server asked for when it refused the stream."""

    async def run(self) -> StreamEnd:
        """Keep the stream open; returns only if that is of no use any more."""
        barren = 0
        while True:
            position, began = self._parser.last_event_id, asyncio.get_running_loop().time()
            end, got_events = await self._follow()
            if end is not StreamEnd.BROKEN:
                return end
            lasted = asyncio.get_running_loop().time() - began
            fruitful = got_events or self._parser.last_event_id != position or lasted >= STABLE_SECONDS
            barren = 0 if fruitful else barren + 1
            self._parser = self._parser.continued()
            delay = retry_delay(self._parser, self._delay)
            if barren:
                # Many connections lose their server at once: spread their return.
                delay = max(delay, self._delay) * 2 ** min(barren - 1, 16) * random.uniform(0.9, 1.1)  # noqa: S311
            await asyncio.sleep(max(min(delay, LONGEST_DELAY), self._patience))

    async def _follow(self) -> tuple[StreamEnd, bool]:
        """Follow one connection to its end; say why it ended and whether it brought events."""
        got_events = False
        self._patience = 0.0

        async def handle(event: ServerEvent) -> bool:
            nonlocal got_events
            got_events = True
            return await self._handle(event)

        headers = self._session.get_headers(self._parser.last_event_id)
        try:
            async with self._client.request("GET", headers=headers) as response:
                if response.status >= 300 or response.content_type != EVENT_STREAM:
                    return self._judge(await read_refusal(response)), False
                if self._was_away:
                    await self._handle(ServerEvent(CHANGED, "message", None))
                self._was_open, self._was_away = True, False
                await read_events(response, self._parser, handle)
        except (AuthRequiredError, ConfigurationError) as error:
            logger.debug("No stream of server messages from %r: %s", self._client.server, error)
            return (StreamEnd.BROKEN if self._was_open else StreamEnd.NOT_OFFERED), got_events
        except ResultTooLargeError as error:
            logger.warning("A message of %r was left out: %s", self._client.server, error)
            self._parser.skip_event()
        except MCPClientError as error:
            logger.debug("The stream of server messages from %r broke: %s", self._client.server, error)
            self._was_away = self._was_away or (self._was_open and not isinstance(error, TransportError))
            redirected = isinstance(error, TransportError) and error.status is not None
            return (StreamEnd.NOT_OFFERED if redirected else StreamEnd.BROKEN), got_events
        return StreamEnd.BROKEN, got_events

    def _judge(self, refusal: Refusal) -> StreamEnd:
        if self._was_open and self._session.ended_by(refusal):
            return StreamEnd.SESSION_LOST
        self._was_away = self._was_open
        self._patience = min(parse_retry_after(refusal.retry_after) or 0.0, LONGEST_PATIENCE)
        if not refusal.is_final and refusal.status != 501:
            return StreamEnd.BROKEN
        if self._was_open and (refusal.status < 300 or refusal.status in (400, 401, 403)):
            return StreamEnd.BROKEN  # it did work, so these may change again, as credentials do
        return StreamEnd.NOT_OFFERED
