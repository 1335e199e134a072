"""One of many servers is called by its public name: ``python -m benchmarks.workers.crowd TARGET COUNT``."""

from __future__ import annotations

import sys
from typing import Any

from benchmarks.workers import threads
from benchmarks.workers.ours import manager_of, spec_of
from benchmarks.workers.protocol import target_of


def main() -> None:
    """Connect all, then take orders; the calls are made by threads."""
    target, count = target_of(sys.argv[1]), int(sys.argv[2])
    names = [f"server-{number}" for number in range(count)]
    manager = manager_of(spec_of(target, name) for name in names)
    assert all(status.is_ready for status in manager.connect_all().values())
    manager.list_tools()
    called = f"{names[count // 2]}__echo"

    def call(tool: str, arguments: dict[str, Any]) -> object:
        result = manager.call_tool(called, arguments)
        assert not result.is_error
        return result

    threads.serve(call)
    manager.close()


if __name__ == "__main__":
    main()
