"""The pages of the agents' admin, read and sent as a browser without JavaScript does."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from mcp_client_app.models import AgentConfig
from tests.admin import pages

FIRST = "agent_servers-0"


def url(page: str, row: AgentConfig | None = None) -> str:
    """Return the address of a page of the agents' admin."""
    return reverse(f"admin:mcp_client_app_agentconfig_{page}", args=() if row is None else (row.pk,))


def form(client: Client, row: AgentConfig | None = None) -> pages.Data:
    """Return what a browser would send for the form if nothing were touched."""
    page = pages.text(client.get(url("add") if row is None else url("change", row)))
    return {
        name: values
        for name, values in pages.form(page, "agentconfig_form").items()
        if "__prefix__" not in name
    }


def send(client: Client, row: AgentConfig | None, data: pages.Data, **changes: Any) -> Any:
    """Save the form with changes."""
    given = {name: value if isinstance(value, list) else [value] for name, value in changes.items()}
    return client.post(url("add") if row is None else url("change", row), data | given)


def change(client: Client, row: AgentConfig, **changes: Any) -> Any:
    """Open the form of an agent, change fields, and save."""
    return send(client, row, form(client, row), **changes)


def with_server(data: pages.Data, server: int, **fields: str) -> pages.Data:
    """Fill in one more server, as the button for that does."""
    number = int(data["agent_servers-TOTAL_FORMS"][0])
    prefix = f"agent_servers-{number}"
    return data | {
        "agent_servers-TOTAL_FORMS": [str(number + 1)],
        f"{prefix}-server": [str(server)],
        **{f"{prefix}-{name}": [value] for name, value in fields.items()},
    }


def argument(data: pages.Data, tool: str, name: str, *, action: str, value: str = "") -> pages.Data:
    """Say in the editor of fixed arguments what to do with one; a new one goes into an empty row."""
    field = f"{FIRST}-fixed_arguments"
    columns = {part: list(data[f"{field}-{part}"]) for part in ("tool", "name", "action", "value", "again")}
    rows = list(zip(columns["tool"], columns["name"], strict=True))
    place = rows.index((tool, name)) if (tool, name) in rows else rows.index(("", ""))
    for part, given in (("tool", tool), ("name", name), ("action", action), ("value", value)):
        columns[part][place] = given
    return {f"{field}-{part}": values for part, values in columns.items()}


def errors(response: Any) -> dict[str, Any]:
    """Return what the page complains about, by field; those of a server with its prefix in front."""
    pages.text(response)
    found = dict(response.context["adminform"].form.errors)
    for formset in response.context["inline_admin_formsets"]:
        for each in formset.formset.forms:
            found |= {f"{each.prefix}-{name}": told for name, told in each.errors.items()}
    return found
