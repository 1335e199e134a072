"""The verb test."""

from __future__ import annotations

import re

from mcp_client_app.runtime import get_mcp_manager
from tests.management.conftest import faulty


def test_a_good_server_passes_step_by_step_with_times(servers):
    result = servers("test", "good")
    assert result.code == 0, result.err
    steps = [line.split()[1:3] for line in result.lines[1:]]
    assert steps == [["connect", "ok"], ["list", "ok"], ["ping", "ok"], ["close", "ok"]]
    assert re.search(r"connect +ok +\d+\.\d\d s", result.out)


def test_several_servers_are_tested_and_each_failure_is_explained(servers):
    assert servers("add", "broken", faulty("exit_at_start=3"), "--no-connect").code == 0
    result = servers("test")
    assert result.code == 3
    assert "The test failed: broken, dead." in result.err
    assert {line.split()[0] for line in result.lines[1:] if "FAILED" in line} == {"broken", "dead"}
    assert {line.split()[0] for line in result.lines[1:] if " ok " in line} == {"good"}


def test_only_failures_are_a_failure(servers):
    assert servers("test", "dead").code == 1


def test_machines_get_the_steps(servers):
    result = servers("test", "dead", "good", "--json")
    assert result.code == 3
    assert [(test["server"], test["ok"]) for test in result.document["tests"]] == [
        ("dead", False),
        ("good", True),
    ]
    assert [step["name"] for step in result.document["tests"][1]["steps"]] == [
        "connect",
        "list",
        "ping",
        "close",
    ]
    assert result.document["tests"][1]["status"]["tools"] > 0
    assert result.err.startswith("The test failed: dead.")


def test_a_test_uses_a_connection_of_its_own(servers):
    before = get_mcp_manager().connect("good").pid
    assert servers("test", "good").code == 0
    status = get_mcp_manager().status("good")
    assert (status.pid, status.is_ready, status.connects) == (before, True, 1)


def test_an_unknown_server_is_refused(servers):
    assert servers("test", "good", "nobody").code == 2
