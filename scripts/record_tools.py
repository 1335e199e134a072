"""Record what published servers list as their tools, for tests that need no network.

``tests/data/published/servers.json`` says which servers, how they are started and, if need be, a made-up
key that is only looked at when a tool is called. Each is installed into a folder of its own, started over
stdio, asked for ``tools/list`` and ended; no tool is called. The answer is kept as it came, beside name,
version and licence of the package, and the table of the README is written anew.

    python scripts/record_tools.py            # all
    python scripts/record_tools.py memory git # these
"""

from __future__ import annotations

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import venv
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "data" / "published"
INDEX = FOLDER / "servers.json"
README = FOLDER / "README.md"
TABLE = "| recording | package | registry | version | licence | tools |\n|---|---|---|---|---|---|\n"
LONGEST_START = 120
"""Seconds for starting and listing, all together."""


def main() -> int:
    """Record the servers that the command line names; return the exit status."""
    parser = argparse.ArgumentParser(description="Record the tool lists of published servers.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="a name in servers.json; default: all")
    parser.add_argument("--cache", type=Path, help="keep what is installed in this folder")
    options = parser.parse_args()
    servers = json.loads(INDEX.read_text())
    failed = False
    with tempfile.TemporaryDirectory() as temporary:
        for name in options.names or servers:
            try:
                recorded = record(servers[name], (options.cache or Path(temporary)) / name)
            except (OSError, ValueError, subprocess.CalledProcessError) as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
                continue
            path = FOLDER / f"{name}.json"
            path.write_text(json.dumps(recorded, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            print(f"{name}: {len(recorded['tools'])} tools")
    write_table()
    return 1 if failed else 0


def record(server: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Install one server, and return what it lists."""
    folder.mkdir(parents=True, exist_ok=True)
    command, package = (install_npm if server["registry"] == "npm" else install_pypi)(server, folder)
    # Some packages name their licence only in a text.
    package["licence"] = server.get("licence") or package["licence"]
    listed = list_tools([*command, *server.get("args", [])], server.get("env", {}), folder)
    return anonymous({**package, "registry": server["registry"], **listed}, folder)


def anonymous(recorded: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Take out what some servers tell of the machine that they run on."""
    text = json.dumps(recorded).replace(str(folder), "/srv/server")
    text = re.sub(rf"\b{re.escape(socket.gethostname())}\b", "host", text)
    same: dict[str, Any] = json.loads(text)
    return same


# Installing ----------------------------------------------------------------------------


def install_npm(server: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Install from npm; return the command and what the package says of itself."""
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--no-save"]
    run(["npm", "install", *quiet, f"--prefix={folder}", f"{server['package']}@{server['version']}"])
    home = folder / "node_modules" / server["package"]
    manifest = json.loads((home / "package.json").read_text())
    programs = manifest["bin"]
    program = (
        programs
        if isinstance(programs, str)
        else programs.get(server.get("bin")) or next(iter(programs.values()))
    )
    about = {
        "package": server["package"],
        "version": manifest["version"],
        "licence": manifest.get("license", ""),
    }
    return ["node", str(home / program)], about


def install_pypi(server: dict[str, Any], folder: Path) -> tuple[list[str], dict[str, str]]:
    """Install from PyPI; return the command and what the package says of itself."""
    if not (folder / "bin").exists():
        venv.create(folder, with_pip=True, symlinks=True)
    python = str(folder / "bin" / "python")
    wanted = [f"{server['package']}=={server['version']}", *server.get("with", [])]
    run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    ask = "import importlib.metadata as m, json, sys; print(json.dumps(m.metadata(sys.argv[1]).json))"
    metadata = json.loads(run([python, "-c", ask, server["package"]]))
    licence = metadata.get("license_expression") or metadata.get("license") or ""
    if not licence or len(licence) > 40:
        named = [each for each in metadata.get("classifier", []) if each.startswith("License ::")]
        licence = named[0].rpartition(" :: ")[2] if named else licence[:40]
    about = {"package": server["package"], "version": metadata["version"], "licence": licence}
    return [str(folder / "bin" / server.get("bin", server["package"]))], about


def run(command: list[str]) -> str:
    """Run a command and return what it printed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(f"{command[0]} failed: {done.stderr.strip()[-800:]}")
    return done.stdout


# Listing -------------------------------------------------------------------------------


def list_tools(command: list[str], env: dict[str, str], folder: Path) -> dict[str, Any]:
    """Start a server, and return all pages of its list, unchanged."""
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**inherited, "HOME": str(folder), **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(folder / "stderr.txt").open("wb"),
        start_new_session=True,
    )
    guard = threading.Timer(LONGEST_START, process.kill)
    guard.start()
    try:
        about = {"name": "recorder", "version": "1"}
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
        said = ask(process, "initialize", hello, 1)
        send(process, {"method": "notifications/initialized"})
        tools: list[Any] = []
        cursor = None
        while True:
            page = ask(process, "tools/list", {"cursor": cursor} if cursor else {}, len(tools) + 2)
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if not cursor or not page["tools"]:
                return {"protocol": said["protocolVersion"], "server": said["serverInfo"], "tools": tools}
    finally:
        guard.cancel()
        process.kill()
        process.wait()


def ask(process: subprocess.Popen[bytes], method: str, params: dict[str, Any], number: int) -> dict[str, Any]:
    """Send a request and wait for its answer; what else the server says is left unread."""
    send(process, {"id": number, "method": method, "params": params})
    assert process.stdout
    for line in process.stdout:
        if not re.match(rb"\s*\{", line):
            continue
        message = json.loads(line)
        if message.get("id") == number and "method" not in message:
            if "result" not in message:
                raise ValueError(f"{method} failed: {message.get('error')}")
            result: dict[str, Any] = message["result"]
            return result
    raise ValueError(f"the server ended before it answered {method}.")


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    """Send one message."""
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


# The README ----------------------------------------------------------------------------


def write_table() -> None:
    """Write the table of the README after what is recorded."""
    rows = []
    for path in sorted(FOLDER.glob("*.json")):
        if path != INDEX:
            each = json.loads(path.read_text(encoding="utf-8"))
            about = [each[key] for key in ("package", "registry", "version", "licence")]
            rows.append(f"| {' | '.join([path.name, *about, str(len(each['tools']))])} |\n")
    before, _, _ = README.read_text(encoding="utf-8").partition("| recording |")
    README.write_text(before + TABLE + "".join(rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
