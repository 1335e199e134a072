"""Child processes: started off the loop, watched without a thread each, always ended as a group.

Every child leads a session and process group of its own. It is never reaped before its
group has been signalled, so that the group's number cannot have been reused. Must not
know what the pipes carry.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping

from mcp_client_app.client.reaper import Reaper
from mcp_client_app.datatypes import ServerSpec
from mcp_client_app.exceptions import ConfigurationError, MCPClientError, ServerUnavailableError

logger = logging.getLogger(__name__)

__all__ = ["ChildProcess", "child_environment", "spawn"]

INHERITED = ("HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER")
"""What a server gets of this process's environment: nothing that could hold a secret."""

TRANSIENT = frozenset(
    {errno.EAGAIN, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ETXTBSY}
)
"""Refusals of the system that have nothing to do with what is to be started, and pass."""

STEP = 2.0
"""Seconds between closing stdin, SIGTERM and SIGKILL."""

REAPING = 0.5
"""Seconds that a killed process may keep the exit path waiting; it takes milliseconds."""

POLL = 0.05
"""Seconds between looks at a child where the platform has no pidfd."""


def child_environment(spec: ServerSpec, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment of a server: the inherited minimum, the named extras, the row's own."""
    environ = os.environ if environ is None else environ
    names = (*INHERITED, *spec.inherited_names) if spec.inherit_environment else ()
    inherited = {name: environ[name] for name in names if name in environ}
    # Exported shell functions are code, not settings.
    return {name: value for name, value in inherited.items() if not value.startswith("()")} | dict(spec.env)


def spawn(spec: ServerSpec) -> subprocess.Popen[bytes]:
    """Start the process of a stdio server; blocks for the exec, so call it off the loop.

    Raises:
        ConfigurationError: Command missing, not executable, or no such working directory.
        ServerUnavailableError: The system has no processes, memory or descriptors left.
    """
    environment = child_environment(spec)
    if spec.cwd is not None and not os.path.isdir(spec.cwd):
        what = "is no directory" if os.path.exists(spec.cwd) else "does not exist"
        raise ConfigurationError(
            f"The working directory {spec.cwd!r} of {spec.name!r} {what}.",
            server=spec.name,
            field="cwd",
        )
    executable = _find(spec, environment)
    try:
        return subprocess.Popen(
            [spec.command, *spec.args],
            executable=executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=spec.cwd,
            env=environment,
            bufsize=0,
            start_new_session=True,
        )
    except OSError as error:
        raise _spawn_error(spec, error) from error
    except ValueError as error:
        raise ConfigurationError(
            f"The command, arguments or environment of {spec.name!r} hold a NUL character.",
            server=spec.name,
            field="args",
        ) from error


def _find(spec: ServerSpec, environment: Mapping[str, str]) -> str:
    base = spec.cwd or os.curdir
    if os.sep in spec.command:
        path = os.path.join(base, spec.command)
        if not os.path.exists(path):
            raise _missing(spec)
        if not os.path.isfile(path) or not os.access(path, os.X_OK):
            raise _not_executable(spec)
        # Popen resolves it after the change of directory.
        return spec.command
    search = environment.get("PATH", os.defpath)
    found = shutil.which(spec.command, path=search)
    if found is not None:
        return found
    if any(os.path.isfile(os.path.join(folder, spec.command)) for folder in search.split(os.pathsep)):
        raise _not_executable(spec)
    raise _missing(spec)


def _missing(spec: ServerSpec) -> ConfigurationError:
    return ConfigurationError(
        f"The command {spec.command!r} of {spec.name!r} was not found; install it, or give its full path.",
        server=spec.name,
        field="command",
    )


def _not_executable(spec: ServerSpec, why: str = "") -> ConfigurationError:
    return ConfigurationError(
        f"The command {spec.command!r} of {spec.name!r} is not executable{why}.",
        server=spec.name,
        field="command",
    )


def _spawn_error(spec: ServerSpec, error: OSError) -> MCPClientError:
    if error.errno in TRANSIENT:
        return ServerUnavailableError(
            f"The process of {spec.name!r} could not be started now: {os.strerror(error.errno)}.",
            server=spec.name,
        )
    if error.errno == errno.ENOEXEC:
        return _not_executable(spec, ": it is neither a program nor a script with a #! line")
    if error.errno == errno.EACCES:
        return _not_executable(spec)
    if error.errno == errno.ENOENT:  # the file itself was found
        return _not_executable(spec, ": the interpreter that its #! line names was not found")
    if error.errno == errno.E2BIG:
        return ConfigurationError(
            f"The arguments and environment of {spec.name!r} are too large.", server=spec.name, field="args"
        )
    return ConfigurationError(
        f"The process of {spec.name!r} could not be started: {os.strerror(error.errno or 0)}.",
        server=spec.name,
        field="command",
    )


class ChildProcess:
    """A running child; knows when it exits and ends its whole group.

    Lives on one loop. ``exited`` is done once the leader has exited; it is reaped, and its
    group ended, by ``end``.
    """

    def __init__(self, popen: subprocess.Popen[bytes], reaper: Reaper | None) -> None:
        assert popen.stdin is not None
        assert popen.stdout is not None
        assert popen.stderr is not None
        self._popen = popen
        self._reaper = reaper
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = None
        self._ended = False
        self._let_go = False
        self._observed: int | None = None
        self.pid = popen.pid
        self.stdin, self.stdout, self.stderr = popen.stdin, popen.stdout, popen.stderr
        for pipe in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(pipe.fileno(), False)
        self.exited: asyncio.Future[None] = self._loop.create_future()
        self.before_close: Callable[[], None] = _nothing
        """Called when the process is gone and its pipes are about to be closed."""
        if reaper is not None:
            reaper.add(self.pid)
        self._watch()

    @property
    def exit_code(self) -> int | None:
        """Exit status, negative for a signal; None while it runs, or if somebody else reaped it."""
        return self._popen.returncode if self._observed is None else self._observed

    def _watch(self) -> None:
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):  # another platform, an old kernel, or no descriptor left
            self._poll()
        else:
            self._loop.add_reader(self._pidfd, self._on_exit)

    def _poll(self) -> None:
        if self._has_exited():
            self._on_exit()
        elif not self._ended:
            self._loop.call_later(POLL, self._poll)

    def _has_exited(self) -> bool:
        """Look without reaping: the zombie keeps pid and group number taken."""
        try:
            found = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True  # reaped by somebody else: a SIGCHLD handler of the host process
        if found is None:
            return False
        self._observed = found.si_status if found.si_code == os.CLD_EXITED else -found.si_status
        return True

    def _on_exit(self) -> None:
        self._has_exited()
        self._unwatch()
        if not self.exited.done():
            self.exited.set_result(None)

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    async def end(self, patience: float = STEP) -> int | None:
        """End the group: stdin is closed, then SIGTERM, then SIGKILL, ``patience`` seconds apart.

        Returns the exit code. Safe to call again; bounded by two steps and the kernel.
        """
        if self._ended:
            return self.exit_code
        self._ended = True
        try:
            with contextlib.suppress(OSError):
                self.stdin.close()
            if not await self._exits_within(patience):
                self._signal(signal.SIGTERM)
                await self._exits_within(patience)
        finally:
            # Also when cancelled: nothing of the group may survive this method.
            self._signal(signal.SIGKILL)
            self._unwatch()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await self._wait_reaped()
        self._close()
        return self.exit_code

    async def _exits_within(self, seconds: float) -> bool:
        if not self.exited.done():
            await asyncio.wait({self.exited}, timeout=seconds)
        return self.exited.done()

    async def _wait_reaped(self) -> None:
        while self._popen.poll() is None:  # noqa: ASYNC110 - a killed child takes moments, and has no event
            await asyncio.sleep(0.005)

    def _signal(self, number: signal.Signals) -> None:
        if self._popen.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def _close(self) -> None:
        self._let_go = True
        if self._reaper is not None:
            self._reaper.discard(self.pid)
        self.before_close()
        self._close_pipes()
        if not self.exited.done():
            self.exited.set_result(None)

    def _close_pipes(self) -> None:
        # By their objects, never by number: these close themselves, and the number may be another's by then.
        for pipe in (self.stdin, self.stdout, self.stderr):
            with contextlib.suppress(OSError):
                pipe.close()

    def kill_now(self) -> None:
        """End the group at once, hardly waiting: for the exit path. Does nothing after ``end``."""
        if self._let_go:
            return
        self._ended = True
        self._signal(signal.SIGKILL)
        self._unwatch()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(REAPING)
        self._close()

    def forget(self) -> None:
        """After a fork, in the child: let go of the parent's pipes; never signal the parent's processes."""
        self._ended = self._let_go = True
        # Keeps Popen from waiting for, or warning about, a process that is not ours.
        self._popen.returncode = 0
        self._close_pipes()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None


def _nothing() -> None:
    """Nobody watches the pipes."""
