"""An operator configures an agent, in a real browser."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import DIRECTORY, FILE_SERVER, PHONE, OpenPage, picture

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

AGENTS = "/admin/mcp_client_app/agentconfig/"
SECRET = "planted-5e2c"


def test_an_agent_is_configured_and_looked_at(open_page: OpenPage):
    page = open_page()
    add_servers(page)
    add_an_agent_after_a_mistake(page)
    change_what_is_fixed(page)
    look_at_its_tools(page)
    look_at_the_list(page, open_page)


def add_servers(page: Page) -> None:
    page.goto(AGENTS)
    token = next(each["value"] for each in page.context.cookies() if each.get("name") == "csrftoken")
    files: dict[str, Any] = {"command": "python", "args": [FILE_SERVER, DIRECTORY]}
    for name, fields in {"files": files, "gone": {"command": "no-such-program"}}.items():
        answer = page.request.post(
            "/api/mcp/servers/",
            data={"name": name, **fields},
            headers={"X-CSRFToken": token, "Referer": page.url},
        )
        assert answer.status == 201, answer.text()


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()


def server(page: Page, number: int) -> Locator:
    return page.locator(f"#agent_servers-{number}")


def add_an_agent_after_a_mistake(page: Page) -> None:
    page.goto(f"{AGENTS}add/")
    page.get_by_label("Name:", exact=True).fill("support")
    page.get_by_label("Model:", exact=True).fill("gpt-5")
    for number, name in enumerate(["files", "gone"]):
        page.locator(".add-row").get_by_role("button", name="Add another MCP server").click()
        server(page, number).get_by_label("MCP server:").select_option(label=name)
    fixed = server(page, 0)
    fixed.get_by_text("Fixed arguments", exact=True).first.click()
    expect(fixed.get_by_label("Tool", exact=True)).to_have_count(0)
    fixed.get_by_role("button", name="Add another").click()
    fixed.get_by_label("Tool", exact=True).fill("write_file")
    fixed.get_by_label("Argument", exact=True).fill("text")
    fixed.get_by_label("Value", exact=True).fill(SECRET)
    save(page)

    expect(page.locator(".field-model .errorlist")).to_contain_text("colon")
    assert SECRET not in page.content()
    page.get_by_label("Model:", exact=True).fill("openai:gpt-5")
    fixed.get_by_text("Fixed arguments", exact=True).first.click()
    fixed.get_by_label("Value of text").fill(SECRET)
    save(page)
    expect(page.locator(".messagelist")).to_contain_text("was added successfully")


def change_what_is_fixed(page: Page) -> None:
    page.locator("#result_list").get_by_role("link", name="support", exact=True).click()
    assert SECRET not in page.content()
    fixed = server(page, 0)
    expect(fixed.get_by_label("MCP server:")).to_be_disabled()
    fixed.get_by_text("Fixed arguments", exact=True).first.click()
    expect(fixed.get_by_label("Value of text")).to_be_hidden()
    fixed.get_by_label("What to do with text").select_option("json")
    fixed.get_by_label("Value of text").fill('["a", "b"')
    picture(page, "admin-agent")
    save(page)
    expect(server(page, 0).locator(".field-fixed_arguments .errorlist")).to_contain_text("write_file, text")
    server(page, 0).get_by_text("Fixed arguments", exact=True).first.click()
    server(page, 0).get_by_label("What to do with text").select_option("keep")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist")).to_contain_text("was changed successfully")


def look_at_its_tools(page: Page) -> None:
    page.get_by_role("link", name="Tools as a model sees them").click()
    expect(page.get_by_text("A model sees no tools.")).to_be_visible()
    page.get_by_role("button", name="Ask the servers").click()
    missing = page.locator("section", has=page.locator("#mcp-unavailable"))
    expect(missing).to_contain_text("gone")
    expect(missing).to_contain_text("no-such-program")
    tool = page.locator("details.mcp-item").filter(has_text="files__write_file")
    tool.locator("summary").click()
    arguments = tool.locator("pre").inner_text()
    assert '"path"' in arguments
    assert '"text"' not in arguments
    assert SECRET not in page.content()
    picture(page, "admin-agent-tools")


def look_at_the_list(page: Page, open_page: OpenPage) -> None:
    page.goto(AGENTS)
    row = page.locator("#result_list tbody tr")
    expect(row.locator(".field-server_names")).to_contain_text("files")
    expect(row.locator(".field-standing")).to_contain_text("in order")
    picture(page, "admin-agents")
    phone = open_page(viewport=PHONE, color_scheme="dark")
    phone.goto(AGENTS)
    expect(phone.locator("#result_list")).to_contain_text("support")
    assert phone.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
