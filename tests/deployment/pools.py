"""Calls a server in a parent and in the processes of its ``multiprocessing`` pools; prints who has used what.

``python -m tests.deployment.pools METHOD END``: how children are started, and how they end.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import django
from django.apps import apps
from django.db import connections

TOGETHER = 60


def use(text: str) -> tuple[int, str, str]:
    """Call the server in this process; return its number, the server's, and what was answered."""
    if not apps.ready:
        django.setup()  # spawned, or from a fork server: nothing is there
    from mcp_client_app import services

    peer = services.call_tool("early__pid").text
    return os.getpid(), peer, services.call_tool("early__echo", {"text": text}).text


def meet(barrier: Any) -> tuple[int, str, str]:
    """Do the same once all children are here: else one might do the work of all."""
    barrier.wait(TOGETHER)
    return use("met")


def leave(kind: str) -> None:
    """End a process that has used the server, in an unusual way."""
    sys.stdout.write(json.dumps(use(kind)) + "\n")
    sys.stdout.flush()
    if kind == "_exit":
        os._exit(0)
    os.kill(os.getpid(), signal.SIGTERM)


def main(method: str, end: str) -> None:
    """Have two children use the server, before and after the parent does."""
    django.setup()
    parent = use("parent")
    connections.close_all()
    context: Any = multiprocessing.get_context(method)
    if end in ("_exit", "sigterm"):
        child = context.Process(target=leave, args=(end,))
        child.start()
        child.join()
        used = []
    elif end == "executor":
        with context.Manager() as manager, ProcessPoolExecutor(2, mp_context=context) as executor:
            barrier = manager.Barrier(2)
            used = [each.result() for each in [executor.submit(meet, barrier) for _ in range(2)]]
    else:
        with context.Manager() as manager, context.Pool(2) as pool:
            barrier = manager.Barrier(2)
            used = pool.map(meet, [barrier] * 2, chunksize=1)
            if end == "close":
                pool.close()
                pool.join()
    assert use("parent") == parent
    sys.stdout.write(json.dumps({"parent": parent, "children": used}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
