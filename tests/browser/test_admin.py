"""An operator's day in the admin, in a real browser against a real site and real servers."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DIRECTORY, FILE_SERVER, PHONE, OpenPage, Site, picture

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SERVERS = "/admin/mcp_client_app/serverconfig/"
SECRET = "planted-5e2c"


def test_an_operators_day(open_page: OpenPage, site: Site):
    page = open_page()
    add_a_local_server_after_a_mistake(page)
    add_a_remote_server(page, site)
    try_and_connect(page)
    look_at_the_tools(page)
    see_why_a_broken_server_is_down(page)
    import_a_file_with_a_bad_entry(page)
    restrict_the_tools(page)
    call_over_rest_and_find_it_in_the_audit(page)
    look_at_the_list(page, open_page)


def open_server(page: Page, name: str) -> None:
    page.goto(SERVERS)
    page.locator("#result_list").get_by_role("link", name=name, exact=True).click()


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def press(page: Page, button: str) -> str:
    page.locator(".object-tools").get_by_role("button", name=button, exact=True).click()
    return page.locator(".messagelist").inner_text()


def add_a_local_server_after_a_mistake(page: Page) -> None:
    page.goto(SERVERS)
    page.get_by_role("link", name="Add MCP server").first.click()
    page.get_by_label("Name:", exact=True).fill("files")
    expect(page.get_by_label("Command:")).to_be_visible()
    expect(page.get_by_label("URL:")).to_be_hidden()
    page.get_by_label("Command:").fill("python")
    page.get_by_label("Arguments:").fill(f'["{FILE_SERVER}"\n "{DIRECTORY}"]')
    page.locator("#id_env").get_by_role("button", name="Add another").click()
    page.locator("#id_env").get_by_label("Name").fill("API_TOKEN")
    page.locator("#id_env").get_by_label("Value").fill(SECRET)
    save(page)

    expect(page.locator(".field-args .errorlist")).to_contain_text("line 2, column 2")
    assert SECRET not in page.content()
    picture(page, "admin-error")
    page.get_by_label("Arguments:").fill(f"{FILE_SERVER}\n{DIRECTORY}")
    page.get_by_label("Value of API_TOKEN").fill(SECRET)
    save(page)

    expect(page.locator(".messagelist")).to_contain_text("was added successfully")
    open_server(page, "files")
    assert SECRET not in page.content()
    expect(page.locator("#id_env").get_by_text("set", exact=True)).to_be_visible()
    expect(page.get_by_label("Value of API_TOKEN")).to_be_hidden()
    picture(page, "admin-form")


def add_a_remote_server(page: Page, site: Site) -> None:
    page.goto(f"{SERVERS}add/")
    page.get_by_label("Name:", exact=True).fill("weather")
    page.get_by_label("Transport:").select_option("streamable_http")
    expect(page.get_by_label("Command:")).to_be_hidden()
    page.get_by_label("URL:").fill(site.weather)
    save(page)
    expect(page.locator(".messagelist")).to_contain_text("was added successfully")


def try_and_connect(page: Page) -> None:
    open_server(page, "files")
    assert "the test succeeded" in press(page, "Test")
    assert "ready" in press(page, "Connect")
    assert page.locator(".field-state .mcp-good").inner_text() == "ready"
    open_server(page, "weather")
    assert "ready" in press(page, "Connect")


def look_at_the_tools(page: Page) -> None:
    open_server(page, "files")
    page.get_by_role("link", name="Status and tools").click()
    expect(page.get_by_role("heading", name=re.compile("^Tools"))).to_be_visible()
    page.get_by_label("Filter", exact=True).fill("write")
    page.get_by_role("button", name="Search").click()
    tool = page.locator("details.mcp-item").filter(has_text="write_file").first
    if tool.get_attribute("open") is None:
        tool.locator("summary").click()
    expect(tool.get_by_text("files__write_file")).to_be_visible()
    assert '"properties"' in tool.locator("pre").first.inner_text()
    picture(page, "admin-tools")


def see_why_a_broken_server_is_down(page: Page) -> None:
    page.goto(f"{SERVERS}add/")
    page.get_by_label("Name:", exact=True).fill("broken")
    page.get_by_label("Command:").fill("python")
    page.get_by_label("Arguments:").fill("-c\nimport sys; sys.exit('The licence file is missing.')")
    save(page)
    open_server(page, "broken")
    assert "exited with code 1" in press(page, "Connect")
    page.get_by_role("link", name="Status and tools").click()
    expect(page.locator("#mcp-stderr + pre")).to_contain_text("The licence file is missing.")
    expect(page.get_by_text("server_crashed", exact=True)).to_be_visible()
    picture(page, "admin-broken")


def import_a_file_with_a_bad_entry(page: Page) -> None:
    document = {
        "mcpServers": {
            "tickets": {"url": "https://tickets.example.com/mcp", "headers": {"Authorization": SECRET}},
            "broken": {"command": "python", "args": ["-c", "import time; time.sleep(60)"]},
            "search": {"url": "search.example.com/mcp"},
            "unwanted": {"url": "https://unwanted.example.com/mcp"},
        }
    }
    page.goto(SERVERS)
    page.get_by_role("link", name="Import").click()
    page.get_by_label("Paste").fill(json.dumps(document))
    page.get_by_role("button", name="Preview").click()
    assert SECRET not in page.content()
    expect(page.get_by_label("Import search")).to_be_disabled()
    expect(page.locator("tr.mcp-entry-error")).to_contain_text("cannot be imported")
    expect(page.locator("tr.mcp-entry-update")).to_contain_text("args:")
    page.get_by_label("Import unwanted").uncheck()
    page.get_by_label("Import broken").uncheck()
    picture(page, "admin-import")
    page.get_by_role("button", name="Import the chosen servers").click()
    assert page.locator("tr.mcp-entry-create").inner_text().startswith("tickets")
    page.get_by_role("link", name="To the servers").click()
    page.wait_for_url(f"**{SERVERS}")
    names = page.locator("#result_list .field-name_and_label").all_inner_texts()
    assert {"broken", "files", "tickets", "weather"} <= set(names)
    assert not {"search", "unwanted"} & set(names)


def restrict_the_tools(page: Page) -> None:
    open_server(page, "files")
    page.get_by_label("Allowed tools:").fill("read_*\nlist_*")
    save(page)
    open_server(page, "files")
    press(page, "Connect")
    page.get_by_role("link", name="Status and tools").click()
    expect(page.get_by_text("files__read_file")).to_have_count(1)
    expect(page.get_by_text("files__write_file")).to_have_count(0)


def call_over_rest_and_find_it_in_the_audit(page: Page) -> None:
    def call(tool: str, arguments: dict[str, str]) -> int:
        token = next(each["value"] for each in page.context.cookies() if each.get("name") == "csrftoken")
        answer = page.request.post(
            "/api/mcp/tools/call/",
            data={"name": tool, "arguments": arguments},
            headers={"X-CSRFToken": token, "Referer": page.url},
        )
        return answer.status

    assert call("files__read_file", {"path": "welcome.txt"}) == 200
    assert call("files__write_file", {"path": "x", "text": "y"}) == 403
    page.goto("/admin/mcp_client_app/toolcall/")
    rows = page.locator("#result_list tbody tr").all_inner_texts()
    assert "tool_blocked" in rows[0]
    assert "ok" in rows[1]
    assert "read_file" in rows[1]
    picture(page, "admin-calls")
    page.locator("#changelist-filter").get_by_role("link", name="tool_blocked").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)


def look_at_the_list(page: Page, open_page: OpenPage) -> None:
    page.goto(SERVERS)
    names = page.locator("#result_list .field-name_and_label").all_inner_texts()
    states = [state.split()[0] for state in page.locator("#result_list .field-state").all_inner_texts()]
    assert dict(zip(names, states, strict=True)).items() >= {
        ("broken", "backing"),
        ("files", "ready"),
        ("tickets", "idle"),
        ("weather", "ready"),
    }
    picture(page, "admin-list")
    dark = open_page(color_scheme="dark")
    dark.goto(SERVERS)
    picture(dark, "admin-list-dark")
    phone = open_page(viewport=PHONE, device_scale_factor=2)
    phone.goto(SERVERS)
    picture(phone, "admin-list-phone")
    open_server(phone, "files")
    assert_nothing_sticks_out(phone)
    picture(phone, "admin-form-phone")
    phone.goto(phone.url.replace("/change/", "/offers/"))
    assert_nothing_sticks_out(phone)
    picture(phone, "admin-tools-phone")


def assert_nothing_sticks_out(page: Page) -> None:
    too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert too_wide <= 0


def test_without_javascript_all_fields_are_there_and_judged(open_page: OpenPage):
    page = open_page(java_script_enabled=False)
    page.goto(f"{SERVERS}add/")
    for label in ("Command:", "URL:", "Server in this process:"):
        expect(page.get_by_label(label)).to_be_visible()
    page.get_by_label("Name:", exact=True).fill("plain")
    page.get_by_label("Transport:").select_option("streamable_http")
    page.get_by_label("URL:").fill("https://plain.example.com/mcp")
    page.locator("#id_headers").get_by_label("Name").first.fill("X-Key")
    page.locator("#id_headers").get_by_label("Value").first.fill(SECRET)
    page.get_by_label("Command:").fill("npx")
    save(page)
    expect(page.locator(".field-command .errorlist")).to_contain_text("no use for a value here")
    page.get_by_label("Command:").fill("")
    page.get_by_label("Value of X-Key").fill(SECRET)
    save(page)
    expect(page.locator(".messagelist")).to_contain_text("was added successfully")
    open_server(page, "plain")
    page.get_by_label("What to do with X-Key").select_option("remove")
    save(page)
    open_server(page, "plain")
    assert "X-Key" not in page.content()


def test_changing_the_transport_back_and_forth_loses_nothing_that_was_typed(open_page: OpenPage):
    page = open_page()
    page.goto(f"{SERVERS}add/")
    page.get_by_label("Command:").fill("npx")
    page.get_by_label("Transport:").select_option("sse")
    expect(page.get_by_label("URL:")).to_be_visible()
    page.get_by_label("Transport:").select_option("stdio")
    assert page.get_by_label("Command:").input_value() == "npx"
