"""Reading and sending the admin's pages as a browser without JavaScript does."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from mcp_client_app.models import ServerConfig

Data = dict[str, list[str]]


def url(page: str, row: ServerConfig | None = None) -> str:
    """Return the address of a page of the servers' admin."""
    return reverse(f"admin:mcp_client_app_serverconfig_{page}", args=() if row is None else (row.pk,))


def text(response: Any) -> str:
    """Return a page, which must have come."""
    assert response.status_code == 200, response
    html: str = response.content.decode()
    return html


def form(page: str, form_id: str = "serverconfig_form") -> Data:
    """Return what a browser would send for the form of a page if nothing were touched."""
    reader = _FormReader(form_id)
    reader.feed(page)
    assert reader.found, f"There is no form {form_id!r}."
    return reader.data


def change(client: Client, row: ServerConfig, **changes: Any) -> Any:
    """Open the form of a server, change fields, and save."""
    data = form(text(client.get(url("change", row))))
    return client.post(url("change", row), data | _lists(changes))


def add(client: Client, **changes: Any) -> Any:
    """Open the form for a new server, fill it in, and save."""
    data = form(text(client.get(url("add"))))
    return client.post(url("add"), data | _lists(changes))


def secret(data: Data, field: str, name: str, *, action: str, value: str = "", as_new: bool = False) -> Data:
    """Say in the editor of ``field`` what to do with one name; a new one goes into an empty row."""
    names, actions, values = (list(data[f"{field}-{part}"]) for part in ("name", "action", "value"))
    place = names.index(name) if name in names and not as_new else names.index("")
    names[place], actions[place], values[place] = name, action, value
    return {f"{field}-name": names, f"{field}-action": actions, f"{field}-value": values}


def messages(response: Any) -> list[str]:
    """Return the messages that a request has added for the next page."""
    storage: Any = get_messages(response.wsgi_request)
    return [str(message) for message in storage._queued_messages]


def errors(response: Any) -> dict[str, list[str]]:
    """Return what the form of a page complains about, by field."""
    found: dict[str, list[str]] = response.context["adminform"].form.errors
    return found


def _lists(changes: dict[str, Any]) -> Data:
    return {
        name.removesuffix("_"): value if isinstance(value, list) else [value]
        for name, value in changes.items()
    }


class _FormReader(HTMLParser):
    def __init__(self, form_id: str) -> None:
        super().__init__()
        self.found = False
        self.data: Data = {}
        self._form_id = form_id
        self._inside = False
        self._select = ""
        self._first: str | None = None
        self._textarea: str | None = None

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        got = {name: value or "" for name, value in attributes}
        if tag == "form":
            self._inside = got.get("id") == self._form_id
            self.found |= self._inside
        elif self._inside and tag == "input":
            self._input(got)
        elif self._inside and tag == "select":
            self._select, self._first = got["name"], None
        elif self._inside and tag == "option" and self._select:
            self._first = got["value"] if self._first is None else self._first
            if "selected" in got:
                self._add(self._select, got["value"])
                self._select = ""
        elif self._inside and tag == "textarea":
            self._textarea = got["name"]
            self._add(self._textarea, "")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._inside = False
        elif tag == "textarea":
            self._textarea = None
        elif tag == "select" and self._select:
            if self._first is not None:
                self._add(self._select, self._first)
            self._select = ""

    def handle_data(self, data: str) -> None:
        if self._textarea is not None:
            self.data[self._textarea][-1] += (
                data.removeprefix("\n") if not self.data[self._textarea][-1] else data
            )

    def _input(self, got: dict[str, str]) -> None:
        kind = got.get("type", "text")
        if kind in ("submit", "button", "file") or (kind in ("checkbox", "radio") and "checked" not in got):
            return
        self._add(got["name"], got.get("value", "on" if kind == "checkbox" else ""))

    def _add(self, name: str, value: str) -> None:
        self.data.setdefault(name, []).append(value)
