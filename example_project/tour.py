"""The calls that the demo makes, each with what must come of it."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from example_project.rest_client import RestClient, RestError
from mcp_client_app.client.manager import MCPClientManager
from mcp_client_app.datatypes import Progress
from mcp_client_app.exceptions import MCPClientError, UnknownToolError

Guide = TypeVar("Guide")
"""What a stop needs to make its calls."""

PNG = b"\x89PNG\r\n\x1a\n"


class TourError(Exception):
    """A call gave something else than it should."""


@dataclass(frozen=True, slots=True)
class Stop(Generic[Guide]):
    """One stop of the tour: what is shown, and the function that does it and returns a short account."""

    title: str
    visit: Callable[[Guide], str]


def walk(stops: list[Stop[Guide]], guide: Guide) -> bool:
    """Make all calls, print a line for each, and say whether all went as they should."""
    all_well = True
    for stop in stops:
        started = time.monotonic()
        try:
            account = stop.visit(guide)
        except (MCPClientError, RestError, TourError, OSError) as error:
            all_well = False
            outcome, account = "FAILED", str(error)
        else:
            outcome = "ok"
        print(f"  {outcome:<6}  {stop.title:<44}  {time.monotonic() - started:5.2f} s  {account}", flush=True)
    return all_well


def _expect(condition: bool, what: str) -> None:
    if not condition:
        raise TourError(f"Not as expected: {what}.")


def _files(manager: MCPClientManager) -> str:
    text = "Written by the demo.\n"
    manager.call_tool("files__write_file", {"path": "demo/hello.txt", "text": text})
    result = manager.call_tool("read_file", {"path": "demo/hello.txt"})
    _expect(result.text == text, f"the file holds {result.text!r}")
    return "the text came back"


def _refused_path(manager: MCPClientManager) -> str:
    result = manager.call_tool("files__read_file", {"path": "../db.sqlite3"})
    _expect(result.is_error and "not inside" in result.text, "a path outside the directory was not refused")
    return f"refused: {result.text}"


def _structured(manager: MCPClientManager) -> str:
    result = manager.call_tool("measure", {"length": 1200, "width": 300})
    wanted = {"area_mm2": 360_000, "volume_mm3": 6_480_000, "fits_on_the_bench": True}
    _expect(result.structured == wanted, f"structured content {result.structured!r}")
    return f"structured: {result.structured}"


def _progress(manager: MCPClientManager) -> str:
    reports: list[Progress] = []
    result = manager.call_tool("sand", {"passes": 5, "seconds": 0.05}, on_progress=reports.append)
    _expect(not result.is_error, result.text)
    _expect(bool(reports) and reports[-1].total == 5, f"{len(reports)} progress reports came")
    return f"{len(reports)} reports, then: {result.text}"


def _failing(manager: MCPClientManager) -> str:
    result = manager.call_tool("break_down", {"reason": "out of oil"})
    _expect(result.is_error and "out of oil" in result.text, "the tool did not fail")
    return f"failed as it should: {result.text}"


def _image(manager: MCPClientManager) -> str:
    result = manager.call_tool("draw_swatch", {})
    _expect(bool(result.content) and result.content[0].get("type") == "image", "no image came")
    image = base64.b64decode(result.content[0]["data"])
    _expect(image.startswith(PNG), "the image is no PNG")
    return f"a PNG of {len(image)} bytes"


def _weather(manager: MCPClientManager) -> str:
    result = manager.call_tool("forecast", {"city": "Oslo", "days": 2}, server="weather")
    _expect(not result.is_error and len(result.structured["days"]) == 2, result.text)
    first = result.structured["days"][0]
    return f"Oslo: {first['sky']}, {first['celsius']} degrees"


def _unknown(manager: MCPClientManager) -> str:
    try:
        manager.call_tool("paint", {})
    except UnknownToolError as error:
        return f"{error.code}: {error}"
    raise TourError("A tool that nobody offers was called.")


def _resource(manager: MCPClientManager) -> str:
    rules = manager.read_resource("workshop", "workshop://rules")
    _expect("Measure twice" in rules.text, "the rules are others")
    saw = manager.read_resource("workshop", "workshop://tools/saw")
    return saw.text


def _prompt(manager: MCPClientManager) -> str:
    prompt = manager.get_prompt("workshop", "plan", {"piece": "a stool"})
    _expect(len(prompt.messages) == 2, f"{len(prompt.messages)} messages came")
    return str(prompt.messages[0]["content"]["text"])


def _rest_listing(site: RestSite) -> str:
    report = site.api.post("connect/", all=True)
    _expect(not report["errors"], f"not connected: {report['errors']}")
    page = site.api.get("tools/")
    servers = {tool["server"] for tool in page["results"] if tool["available"]}
    _expect({"files", "weather", "workshop"} <= servers, f"the servers listed are {sorted(servers)}")
    return f"{page['count']} tools of {len(servers)} servers"


def _rest_call(site: RestSite) -> str:
    arguments = {"length": 1200, "width": 300}
    result = site.api.post("tools/call/", name="workshop__measure", arguments=arguments)
    _expect(result["structured"]["area_mm2"] == 360_000, f"structured content {result['structured']!r}")
    calls = site.api.get("calls/", correlation_id=result["correlation_id"])["results"]
    _expect(len(calls) == 1 and calls[0]["code"] == "ok", "the call is not in the audit")
    return f"structured: {result['structured']}"


def _rest_agent(site: RestSite) -> str:
    found = site.agent.post("rest/", wanted="forecast", arguments={"city": "Oslo", "days": 1})
    _expect(found["tool"] == "weather__forecast" and not found["is_error"], str(found))
    return f"found {found['tool']}, which says: {' '.join(found['text'].split())}"


def _rest_run(site: RestSite) -> str:
    answer = site.agent.post("run/", agent="demo", prompt="What do I have to buy? Is it sunny in Cairo?")
    _expect(answer["status"] == "completed" and answer["tool_rounds"] == 2, str(answer))
    _expect("You need" in answer["text"] and "Cairo" in answer["text"], answer["text"])
    return f"{answer['tool_rounds']} rounds of tools, then: {answer['text']}"


@dataclass(frozen=True, slots=True)
class RestSite:
    """A site that is served elsewhere: its API, and its agents."""

    api: RestClient
    agent: RestClient


STOPS: list[Stop[MCPClientManager]] = [
    Stop("write and read a file", _files),
    Stop("a path outside the directory", _refused_path),
    Stop("a tool with an output schema", _structured),
    Stop("a slow tool with progress", _progress),
    Stop("a tool that fails", _failing),
    Stop("a tool that draws", _image),
    Stop("a tool over HTTP", _weather),
    Stop("a tool that does not exist", _unknown),
    Stop("a resource and a resource template", _resource),
    Stop("a prompt", _prompt),
]

REST_STOPS: list[Stop[RestSite]] = [
    Stop("the tools, over REST", _rest_listing),
    Stop("a tool called over REST, and its audit row", _rest_call),
    Stop("an agent that works through REST", _rest_agent),
    Stop("a view that has a stored agent run", _rest_run),
]
