"""One connection to one server for one principal.

One owner task opens the link, waits, and closes it again: the SDK's context managers must
be left by the task that entered them. Everybody else asks ``ready()`` for the link and
uses it. Runs on the manager's loop; knows no rows, no settings and no threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mcp_client_app.client.attempt import Attempt
from mcp_client_app.client.background import absorb_cancellation
from mcp_client_app.client.backoff import Backoff
from mcp_client_app.client.catalogue import Catalogue
from mcp_client_app.client.connection_host import ConnectionHost
from mcp_client_app.client.convert import log_message
from mcp_client_app.client.failures import from_foreign, untraced
from mcp_client_app.client.keeper import CatalogueKeeper
from mcp_client_app.client.link import Diagnostics, Link, LinkContext
from mcp_client_app.client.redaction import Redactor
from mcp_client_app.client.rpc_messages import LIST_CHANGED
from mcp_client_app.client.standing import Standing
from mcp_client_app.datatypes import (
    SHARED,
    ConnectionState,
    ProtocolMode,
    ServerSpec,
    StderrLine,
    Transport,
)
from mcp_client_app.exceptions import (
    ConnectionLostError,
    MCPClientError,
    RequestTimeoutError,
    ServerUnavailableError,
)

logger = logging.getLogger(__name__)

__all__ = ["Connection"]


class Connection:
    """Connects on demand, stays connected, says how it stands."""

    def __init__(
        self, spec: ServerSpec, host: ConnectionHost, *, backoff: Backoff, principal: str = SHARED
    ) -> None:
        self.spec = spec
        self.principal = principal
        self.redact = Redactor(spec)
        self.standing = Standing(spec, backoff, lambda: host.state_changed(self))
        self.link: Link | None = None
        """The live link; only while the state is ready."""
        self.retired = False
        """Replaced by a connection with another configuration: ask for that one."""
        self.connects = 0
        self.calls = 0
        self.in_flight = 0
        self.slots = asyncio.Semaphore(spec.max_concurrency) if spec.max_concurrency else None
        self.keeper = CatalogueKeeper(
            spec,
            host.options,
            self.ready,
            lambda: self.link,
            lambda: host.catalogue_changed(self),
            host.names_changed,
        )
        self._host = host
        self._loop = asyncio.get_running_loop()
        self._owner: asyncio.Task[None] | None = None
        self._attempt: Attempt | None = None
        """The one under way."""
        self._last_link: Link | None = None
        """The link being opened, live or closed last: for diagnostics and the exit path."""
        self._stop = asyncio.Event()
        self._stop_reason = "disconnected"
        self._stops = 0
        """How many were asked for so far."""
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._used_at = self._ready_at = self._loop.time()
        self._predecessor: asyncio.Task[None] | None = None
        self._is_going_to_sleep = False
        """Whether the link is being closed because nobody has used it for long."""

    @property
    def catalogue(self) -> Catalogue | None:
        """What the server offers, as last known."""
        return self.keeper.catalogue

    @property
    def diagnostics(self) -> Diagnostics:
        """What is known of the process and the pipes, of the last link if there is none now."""
        return self._last_link.diagnostics() if self._last_link is not None else Diagnostics()

    @property
    def loss(self) -> MCPClientError | None:
        """Why the link has broken, while it is still being closed: ``standing`` tells of it afterwards."""
        link = self._last_link
        if link is None or self.standing.state is not ConnectionState.READY:
            return None
        return None if self._stop.is_set() or self._is_going_to_sleep else link.fault

    @property
    def state(self) -> ConnectionState:
        """How it stands, as ``standing`` says; with a broken link it counts as lost at once."""
        if self.loss is None:
            return self.standing.state
        return ConnectionState.LOST if self.spec.auto_reconnect else ConnectionState.FAILED

    def began_call(self) -> None:
        """Count a running call: a connection in use is not stopped for idleness."""
        self.calls += 1
        self.in_flight += 1
        self._quiet.clear()

    def ended_call(self) -> None:
        """The call that was counted is over."""
        self.in_flight -= 1
        self._used_at = self._loop.time()
        if not self.in_flight:
            self._quiet.set()

    # Getting a link --------------------------------------------------------------------

    async def ready(self) -> Link:
        """Return the live link; connects first if need be, one attempt for all who wait.

        Raises:
            NotConnectedError: Stopped on purpose.
            ServerUnavailableError: Still within the delay after a failure.
            MCPClientError: Why connecting failed.
        """
        self._used_at = self._loop.time()
        while True:
            link = self.link
            if link is not None and not link.is_down and not self._stop.is_set():
                return link
            if self._attempt is not None:
                await self._attempt.ended()
                continue  # the link may be lost again by now
            if self._owner is not None and not self._owner.done():
                await asyncio.wait({self._owner})  # the old link is being closed
                continue
            self.standing.check_may_connect(self._loop.time())
            self._begin()

    def patience(self, limit: float) -> float:
        """Return what is left of ``limit`` seconds since the attempt under way began."""
        if self._attempt is None:
            return limit
        return max(0.0, self._attempt.began_at + limit - self._loop.time())

    async def connect(self) -> Link:
        """Connect by explicit wish: clears a stop, a failure and the breaker."""
        if self._attempt is None and (self.link is None or self._stop.is_set()):
            stops = self._stops
            await self._rest()
            if self._stops == stops:  # else somebody has wished for the contrary since
                self.standing.reset()
        return await self.ready()

    def _begin(self) -> None:
        self._attempt = Attempt()
        self._stop.clear()
        self._is_going_to_sleep = False
        self.standing.move(ConnectionState.CONNECTING)
        self._owner = self._loop.create_task(
            self._own(self._attempt), name=f"mcp-connection-{self.spec.name}"
        )

    # The owner -------------------------------------------------------------------------

    async def _own(self, attempt: Attempt) -> None:
        """Open, stay, close: the only task that enters and leaves the link."""
        link: Link | None = None
        failure: MCPClientError | None = None
        moved: Callable[[], None]
        try:
            if self._predecessor is not None:
                await asyncio.wait({self._predecessor})
            link = self._last_link = self._host.make_link(self._link_context())
            await self._open(link)
            self._became_ready(link, attempt)
            moved = await self._stay(link)
        except asyncio.CancelledError:
            absorb_cancellation()
            if self.link is not None:
                moved = self._lost(self.link)  # something within the link broke, and took its owner along
            elif not self._stop.is_set():
                failure = ConnectionLostError(
                    f"Connecting to {self.spec.name!r} was cut short.", server=self.spec.name, sent=False
                )
        except MCPClientError as error:
            failure = error
        except Exception as error:
            logger.exception("Connecting to %r failed unexpectedly.", self.spec.name)
            failure = from_foreign(
                error, server=self.spec.name, method="initialize", redact=self.redact, sent=False
            )
        if failure is not None:
            self._host.eras.pop(self.spec.name, None)
            moved = partial(self.standing.failed, untraced(failure), self._loop.time())
        if link is not None:
            link.hurry = failure is not None
            await self._close(link)
        self._attempt = None
        if self._stop.is_set():  # perhaps only since then: who waits for the end must not connect anew
            moved = partial(self.standing.move, ConnectionState.STOPPED, self._stop_reason)
        moved()
        attempt.end(failure)

    async def _open(self, link: Link) -> None:
        seconds = self.spec.connect_timeout
        try:
            async with asyncio.timeout(seconds or None):
                await self._until_stopped(link.open())
                await self._until_stopped(self.keeper.load(link))
        except RequestTimeoutError:
            raise  # one of the steps had a limit of its own and says so
        except TimeoutError as error:
            raise RequestTimeoutError(
                f"The server {self.spec.name!r} was not ready within {seconds:.3g} s.",
                server=self.spec.name,
                seconds=seconds,
            ) from error

    async def _until_stopped(self, work: Any) -> Any:
        """Await within this very task, so that what it enters can be left here; a stop cancels it."""
        task = asyncio.current_task()
        assert task is not None
        is_working = True
        stopper = self._loop.create_task(self._stop.wait())
        # It may be done already when the work ends: what comes after that must not be cancelled.
        stopper.add_done_callback(lambda done: is_working and not done.cancelled() and task.cancel())
        try:
            return await work
        finally:
            is_working = False
            stopper.cancel()

    def _became_ready(self, link: Link, attempt: Attempt) -> None:
        handshake = link.handshake
        if handshake is not None:
            self._host.eras[self.spec.name] = handshake.mode
        self.link = link
        self.connects += 1
        self._used_at = self._ready_at = self._loop.time()
        self.standing.connected()
        self._attempt = None
        self.standing.move(ConnectionState.READY)
        attempt.end()
        self._host.catalogue_changed(self)

    async def _stay(self, link: Link) -> Callable[[], None]:
        """Wait until the link is down, a stop is asked for, or nobody has used it for long.

        Returns the change of state that is due once the link is closed, unless a stop is.
        """
        stop: asyncio.Future[Any] = self._loop.create_task(self._stop.wait())
        listener = self._loop.create_task(self.keeper.listen(link))
        try:
            while True:
                await asyncio.wait(
                    {stop, link.closed}, timeout=self._idle_left(), return_when=asyncio.FIRST_COMPLETED
                )
                if stop.done() or link.closed.done():
                    return self._lost(link)
                if not self._is_busy and (left := self._idle_left()) is not None and left <= 0:
                    self._is_going_to_sleep = True
                    minutes = self.spec.idle_timeout / 60
                    reason = f"stopped after {minutes:g} minutes without use"
                    return partial(self.standing.move, ConnectionState.IDLE, reason)
        finally:
            stop.cancel()
            listener.cancel()
            self.keeper.cancel()

    def _idle_left(self) -> float | None:
        if self.spec.transport is not Transport.STDIO or not self.spec.idle_timeout:
            return None
        left = self._used_at + self.spec.idle_timeout - self._loop.time()
        return max(left, 1.0) if self._is_busy else max(left, 0.0)

    @property
    def _is_busy(self) -> bool:
        return self.in_flight > 0 or self.keeper.reading > 0

    async def _close(self, link: Link) -> None:
        seconds = self.spec.shutdown_timeout
        self.link = None
        try:
            async with asyncio.timeout(2 * seconds or None):
                await link.close()
        except TimeoutError:
            logger.warning("Closing the connection to %r took too long; it was cut.", self.spec.name)
        except asyncio.CancelledError:
            logger.debug("Closing the connection to %r was cancelled.", self.spec.name)
        except Exception:
            logger.exception("Closing the connection to %r failed.", self.spec.name)
        finally:
            link.kill_now()

    def _lost(self, link: Link) -> Callable[[], None]:
        error = link.failure or ServerUnavailableError(
            f"The connection to {self.spec.name!r} was lost.", server=self.spec.name
        )
        now = self._loop.time()
        return partial(self.standing.lost, untraced(error), lived=now - self._ready_at, now=now)

    def succeeded(self) -> None:
        """A request was answered: the server is sound."""
        self.standing.backoff.failures = 0

    def break_link(self, error: MCPClientError) -> None:
        """Give the link up: a request showed that nothing is at the other end."""
        if self.link is not None:
            self.link.give_up(error.copy())  # the one given goes on to the caller, and gathers tracebacks

    # Stopping --------------------------------------------------------------------------

    def refuse(self, reason: str) -> None:
        """Begin to stop: from now on nobody is given the link."""
        self._stops += 1
        self._stop_reason = reason
        self._stop.set()

    async def stop(self, reason: str = "disconnected") -> None:
        """Close and stay closed until ``connect``; returns when the link is closed."""
        self.refuse(reason)
        await self._rest()
        if self._stop.is_set():  # else it was connected again by now, by explicit wish
            self.standing.move(ConnectionState.STOPPED, reason)

    async def retire(self, grace: float) -> None:
        """Let running calls end, within ``grace`` seconds, then close: the server was edited or removed."""
        self.retired = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace):
                await self._quiet.wait()
        await self.stop("replaced")

    async def _rest(self) -> None:
        if self._owner is not None and not self._owner.done():
            await asyncio.wait({self._owner})

    def update(self, spec: ServerSpec) -> None:
        """Take over new filters and limits; the link stays."""
        self.spec = self.keeper.spec = spec
        if self.keeper.catalogue is not None:
            self.keeper.catalogue = self.keeper.catalogue.filtered(spec)

    def follow(self, predecessor: asyncio.Task[None]) -> None:
        """Start only once ``predecessor`` (the end of the old connection) is done."""
        self._predecessor = predecessor

    # What the server says --------------------------------------------------------------

    def _link_context(self) -> LinkContext:
        mode = self.spec.mode
        if mode is ProtocolMode.AUTO and self._host.eras.get(self.spec.name) is ProtocolMode.LEGACY:
            mode = ProtocolMode.LEGACY
        return self._host.link_context(
            spec=self.spec,
            principal=self.principal,
            redact=self.redact,
            mode=mode,
            on_notification=self._notified,
            on_stderr=self._stderr,
        )

    def _notified(self, method: str, params: Mapping[str, Any]) -> None:
        if method in LIST_CHANGED:
            self.keeper.refresh_soon()
        elif method == "notifications/message":
            self._host.logged(log_message(self.spec.name, params, self.redact))

    def _stderr(self, line: str) -> None:
        self._host.stderr(StderrLine(server=self.spec.name, line=line, received_at=datetime.now(UTC)))

    # The exit path ---------------------------------------------------------------------

    def kill_now(self) -> None:
        """End the server's process at once: for the exit path."""
        if self._last_link is not None:
            self._last_link.kill_now()

    def forget(self) -> None:
        """After a fork, in the child: close copies of descriptors."""
        if self._last_link is not None:
            self._last_link.forget()
