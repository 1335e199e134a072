"""An MCP server over stdio: list, read, write and search text files below one directory.

Run it as ``python files.py DIRECTORY``; it needs only the package ``mcp``. Nothing outside the
directory can be reached: paths that lead out of it are refused, and so are symbolic links, wherever
they point.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError, ToolError
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

MAX_FILE_SIZE = 1_000_000
MAX_MATCHES = 200

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
WRITES = ToolAnnotations(destructive_hint=True, idempotent_hint=True, open_world_hint=False)

RelativePath = Annotated[str, Field(description="Path relative to the directory, with forward slashes.")]


class RefusedError(ToolError, ResourceError):
    """The file may not be read or written; said to tools and resources alike."""


class MissingError(ToolError, ResourceNotFoundError):
    """There is no such file."""


class Entry(BaseModel):
    """One file or folder."""

    path: str
    kind: str
    size: int


class Listing(BaseModel):
    """What a folder holds."""

    entries: list[Entry]


class Match(BaseModel):
    """One line that contains the text looked for."""

    path: str
    line: int
    text: str


class Matches(BaseModel):
    """What a search found; ``complete`` is false if there may be more."""

    matches: list[Match]
    complete: bool


class Directory:
    """The one directory that may be touched."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve(strict=True)

    def resolve(self, path: str) -> Path:
        """Return the absolute path for a relative one.

        Raises:
            RefusedError: The path is absolute, leads out of the directory or through a symbolic link.
        """
        relative = PurePosixPath(path)
        if relative.is_absolute() or ".." in relative.parts or "\0" in path or "\\" in path:
            raise RefusedError(f"The path {path!r} is not inside the directory.")
        current = self.root
        for part in relative.parts:
            current /= part
            if current.is_symlink():
                raise RefusedError(f"The path {path!r} leads through a symbolic link.")
        return current

    def file(self, path: str) -> Path:
        """Return the absolute path of an existing plain file that is not too large."""
        found = self.resolve(path)
        if not found.is_file():
            raise MissingError(f"There is no file {path!r}.")
        if found.stat().st_size > MAX_FILE_SIZE:
            raise RefusedError(f"The file {path!r} is larger than {MAX_FILE_SIZE} bytes.")
        return found

    def relative(self, path: Path) -> str:
        """Return the path as clients see it."""
        return path.relative_to(self.root).as_posix()

    def plain_files(self) -> Iterator[Path]:
        """Yield all plain files, in a stable order, never following a link."""
        for folder, folders, names in os.walk(self.root, followlinks=False):
            folders.sort()
            for name in sorted(names):
                path = Path(folder, name)
                if path.is_file() and not path.is_symlink():
                    yield path


def build(directory: Directory) -> MCPServer:
    """Return the server for one directory."""
    server = MCPServer(
        "files",
        title="Files",
        instructions="Reads and writes text files below one directory. All paths are relative to it.",
        version="1.0.0",
        log_level="WARNING",
    )

    @server.tool(annotations=READS)
    def list_files(path: RelativePath = ".") -> Listing:
        """List the files and folders in one folder."""
        folder = directory.resolve(path)
        if not folder.is_dir():
            raise MissingError(f"There is no folder {path!r}.")
        children = sorted(child for child in folder.iterdir() if not child.is_symlink())
        return Listing(
            entries=[
                Entry(
                    path=directory.relative(child),
                    kind="folder" if child.is_dir() else "file",
                    size=0 if child.is_dir() else child.stat().st_size,
                )
                for child in children
            ]
        )

    @server.tool(annotations=READS, structured_output=False)
    def read_file(path: RelativePath) -> str:
        """Return the text of one file."""
        return _read(directory.file(path), path)

    @server.tool(annotations=WRITES, structured_output=False)
    def write_file(path: RelativePath, text: str) -> str:
        """Write a file, making its folders; what it held before is lost."""
        size = _write(directory, path, text)
        return f"Wrote {size} bytes to {path}."

    @server.tool(annotations=READS)
    def search_files(text: str) -> Matches:
        """Find the lines that contain a text, without regard to case."""
        wanted = text.casefold()
        if not wanted:
            raise RefusedError("Give a text to look for.")
        found = list(_search(directory, wanted))
        return Matches(matches=found[:MAX_MATCHES], complete=len(found) <= MAX_MATCHES)

    @server.resource("file:///{+path}", name="file", title="File", mime_type="text/plain")
    def file_resource(path: str) -> str:
        """The text of one file below the directory."""
        return _read(directory.file(path), path)

    return server


def _read(file: Path, shown: str) -> str:
    try:
        # Not read_text(): it would turn the ends of lines into others.
        return file.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError(f"The file {shown!r} is not UTF-8 text.") from None


def _write(directory: Directory, path: str, text: str) -> int:
    target = directory.resolve(path)
    if target == directory.root or target.is_dir():
        raise RefusedError(f"{path!r} is a folder.")
    content = text.encode("utf-8", "surrogatepass")
    if len(content) > MAX_FILE_SIZE:
        raise RefusedError(f"The text is larger than {MAX_FILE_SIZE} bytes.")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content)
    except (FileExistsError, NotADirectoryError):
        raise RefusedError(f"A part of {path!r} is a file, not a folder.") from None
    return len(content)


def _replace(target: Path, content: bytes) -> None:
    # Through a new file and a rename: a reader never sees half of it, and a link put in the way
    # after the check is replaced, not followed.
    with tempfile.NamedTemporaryFile(dir=target.parent, delete=False) as temporary:
        path = Path(temporary.name)
        try:
            temporary.write(content)
            temporary.flush()
            path.replace(target)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _search(directory: Directory, wanted: str) -> Iterator[Match]:
    found = 0
    for file in directory.plain_files():
        if file.stat().st_size > MAX_FILE_SIZE:
            continue
        lines = file.read_bytes().decode("utf-8", "replace").splitlines()
        for number, line in enumerate(lines, start=1):
            if wanted in line.casefold():
                yield Match(path=directory.relative(file), line=number, text=line[:500])
                found += 1
                if found > MAX_MATCHES:
                    return


def main() -> None:
    """Serve the directory named on the command line over stdin and stdout."""
    parser = argparse.ArgumentParser(description="Serve the text files below one directory over MCP (stdio).")
    parser.add_argument("directory", type=Path)
    path: Path = parser.parse_args().directory
    if not path.is_dir():
        sys.exit(f"There is no directory {str(path)!r}.")
    build(Directory(path)).run("stdio")


if __name__ == "__main__":
    main()
