"""From wherever an agent is run (threads, loops, views, forked children), one loop of the process does it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.db import connections

from mcp_client_app.agents.api import arun_agent, run_agent
from mcp_client_app.agents.database import LANES
from mcp_client_app.agents.loop import close_agents_loop, get_agents_loop
from mcp_client_app.exceptions import ManagerClosedError
from mcp_client_app.models import AgentConfig, AgentServer
from mcp_client_app.runtime import close_mcp_manager
from tests.agents.scripts import asks, call, says, scripted, tool_results
from tests.servers.model_apis import Call, ModelApi, Turn
from tests.stored import close_connections, peer_entry, run_process

TURNS = [Turn("", (Call("shop__price", {"article": "tea"}),)), Turn("It costs 3.")]


def test_many_threads_share_one_model(agent):
    with ModelApi(TURNS, key="no-key") as api:
        agent(model="openai:gpt-5", base_url=api.openai_url)
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(lambda _: run_agent("clerk", "Go."), range(12)))

    assert [result.text for result in results] == ["It costs 3."] * 12
    assert [t.name for t in threading.enumerate() if t.name == "mcp-client-agents"] == ["mcp-client-agents"]


async def test_threads_and_loops_share_one_model(agent):
    with ModelApi(TURNS, key="no-key") as api:
        await sync_to_async(agent)(model="openai:gpt-5", base_url=api.openai_url)
        mixed = [
            *(arun_agent("clerk", "Go.") for _ in range(4)),
            *(asyncio.to_thread(run_agent, "clerk", "Go.") for _ in range(4)),
            *(asyncio.to_thread(lambda: asyncio.run(_elsewhere())) for _ in range(2)),
        ]
        results = await asyncio.gather(*mixed)

    assert [result.text for result in results] == ["It costs 3."] * 10
    await close_connections()


async def _elsewhere():
    """On a loop of its own."""
    return await arun_agent("clerk", "Go.")


async def test_a_sync_view_waits_for_no_thread_that_waits_for_it(agent):
    """The thread kept for sync code is taken by whoever waits for the agent, with and without a context."""
    await sync_to_async(agent)()
    model = scripted(asks(call("shop__price", article="tea")), says("3."))
    view = sync_to_async(run_agent)

    assert (await view("clerk", "Go.", model=model)).text == "3."
    await close_connections()
    async with ThreadSensitiveContext():
        assert (await view("clerk", "Go.", model=model)).text == "3."
        await close_connections()


MET = threading.Barrier(LANES)


def ask_helper(result, tool):
    """An output filter that has an agent work the result over."""
    MET.wait(60)
    return run_agent("helper", result.text, model=scripted(says("Cheap."))).text


def test_agents_that_others_wait_for_in_all_database_threads_are_run(agent, settings):
    settings.MCP_CLIENT_OUTPUT_FILTERS = {"helper": f"{__name__}.ask_helper"}
    agent("helper")
    AgentServer.objects.filter(agent=agent("clerk")).update(output_filters={"price": ["helper"]})
    model = scripted(
        asks(call("shop__price", article="tea")), lambda messages, _: says(tool_results(messages)[0][2])
    )
    pool = ThreadPoolExecutor(LANES)
    try:
        runs = [pool.submit(run_agent, "clerk", "Go.", model=model) for _ in range(LANES)]
        assert [run.result(60).text for run in runs] == ["Cheap."] * LANES
    finally:
        close_agents_loop()  # whoever waits in vain is told
        for _ in range(LANES):
            pool.submit(connections.close_all)
        pool.shutdown()


def test_a_loop_that_was_closed_is_made_anew(agent):
    agent()
    first = get_agents_loop()
    close_agents_loop()

    assert run_agent("clerk", "Go.", model=scripted(says("Hello."))).text == "Hello."
    assert get_agents_loop() is not first
    try:
        first.spawn(lambda: _elsewhere())
    except ManagerClosedError:
        return
    raise AssertionError("a closed loop took work")


def test_the_loop_ends_with_the_connections(agent):
    agent()
    run_agent("clerk", "Go.", model=scripted(says("Hello.")))
    loop = get_agents_loop()

    close_mcp_manager()

    assert not loop.is_alive


def _stored_agent(add_mcp_server):
    """An agent that other processes can run: a server of its own process, and a model by its name."""
    row = AgentConfig.objects.create(name="clerk", model="scripted:echoer")
    AgentServer.objects.create(agent=row, server=add_mcp_server("peer", peer_entry()))


def echoer():
    return scripted(asks(call("peer__echo", text="hello")), says("Done."))


PRELUDE = f"""
from django.conf import settings
settings.MCP_CLIENT_MODELS = {{"scripted:echoer": "{__name__}.echoer"}}
from mcp_client_app.agents.api import run_agent, start_agent
"""


def test_a_forked_child_has_a_loop_of_its_own(transactional_db, add_mcp_server):
    _stored_agent(add_mcp_server)
    code = f"""{PRELUDE}
import os
from django.db import connections
from mcp_client_app.runtime import close_mcp_manager
print(run_agent("clerk", "Go.").text, flush=True)
connections.close_all()
pid = os.fork()
if pid == 0:
    print("child", run_agent("clerk", "Go.").text, flush=True)
    close_mcp_manager()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print("parent", run_agent("clerk", "Go.").text)
close_mcp_manager()
"""
    assert run_process(code).split("\n")[:3] == ["Done.", "child Done.", "parent Done."]


def test_a_process_ends_although_a_run_goes_on(transactional_db, add_mcp_server):
    _stored_agent(add_mcp_server)
    code = f"""{PRELUDE}
import sys
from mcp_client_app.services.run_feed import feed
sys.stderr = sys.stdout
run = start_agent("clerk", "Go.")
with feed.watch(run.pk) as watch:
    assert watch.get(60) is not None
print("started")
"""
    assert run_process(code).strip() == "started"


def test_green_threads_are_refused(transactional_db, add_mcp_server):
    _stored_agent(add_mcp_server)
    code = f"""{PRELUDE}
from mcp_client_app.exceptions import ConfigurationError
try:
    run_agent("clerk", "Go.")
except ConfigurationError as error:
    print(error)
"""
    before = (
        "import warnings; warnings.simplefilter('ignore')\nfrom gevent import monkey\nmonkey.patch_all()\n"
    )
    assert "gevent" in run_process(code, before=before)


def test_runs_leave_no_database_connection_open(agent):
    agent()
    run_agent("clerk", "Go.", model=scripted(asks(call("shop__price", article="tea")), says("3.")))
    opened: list[bool] = []

    async def look() -> None:
        opened.append(await sync_to_async(lambda: connections["default"].connection is not None)())

    for _ in range(4):  # once in each lane
        get_agents_loop().run(look)
    assert opened == [False] * 4
