"""The REST API as a program sees it: a base address, a token, JSON; standard library only.

Nothing here knows Django: an agent on another machine could use this file as it is.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

SECONDS = 60


class RestError(Exception):
    """The API refused, or could not do what it was asked: its ``code`` and its sentence."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        super().__init__(f"{body.get('code', 'error')}: {body.get('detail', f'HTTP status {status}')}")
        self.status = status
        self.body = body


class RestClient:
    """Talks to the API at an address such as ``http://127.0.0.1:8000/api/mcp/``."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._headers = {
            "Authorization": f"Token {token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }

    def get(self, place: str, **parameters: str | float) -> dict[str, Any]:
        """Return the answer of a GET.

        Raises:
            RestError: The API says why.
        """
        return self._send("GET", f"{place}?{urllib.parse.urlencode(parameters)}")

    def post(self, place: str, **body: Any) -> dict[str, Any]:
        """Return the answer of a POST.

        Raises:
            RestError: The API says why.
        """
        return self._send("POST", place, json.dumps(body).encode())

    def find_tool(self, words: str) -> str:
        """Return the public name of the first usable tool that fits; connects servers if need be.

        Raises:
            RestError: No tool fits.
        """
        found = self.get("tools/", search=words, wait=10)["results"]
        names = [str(tool["public_name"]) for tool in found if tool["available"]]
        if not names:
            raise RestError(404, {"code": "unknown_tool", "detail": f"No tool fits {words!r}."})
        return names[0]

    def _send(self, method: str, place: str, data: bytes | None = None) -> dict[str, Any]:
        request = urllib.request.Request(  # noqa: S310 (the caller's own address)
            self._url + place, data, self._headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
                body: dict[str, Any] = json.load(answer)
                return body
        except urllib.error.HTTPError as error:
            with error:
                raise RestError(error.code, _json(error.read())) from None


def _json(text: bytes) -> dict[str, Any]:
    try:
        body = json.loads(text)
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
