"""``ServerConfig``: a stored MCP server, and what is done with one.

Its columns are in ``server_fields``, the rules between them in ``validation``, the way into
the core in ``resolution``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from mcp_client_app.configuration.dialects import ImportedServer
from mcp_client_app.configuration.export import EXPORTED_FIELDS
from mcp_client_app.configuration.secrets import keep_stored_json, keep_stored_values, without_secrets
from mcp_client_app.datatypes import ServerSpec, Transport, safe_url
from mcp_client_app.models.resolution import ResolvedServer, has_references, resolve, unfilled_places
from mcp_client_app.models.revisions import RevisedQuerySet
from mcp_client_app.models.server_fields import ServerFields
from mcp_client_app.models.validation import server_errors

__all__ = ["CONNECTION_FIELDS", "ServerConfig", "ServerConfigQuerySet"]

CONNECTION_FIELDS: Final = (
    "transport",
    "command",
    "args",
    "env",
    "cwd",
    "inherit_environment",
    "inherited_names",
    "url",
    "headers",
    "in_process",
    "link",
)
"""What is reached, and with what in hand: a change here decides anew which variables may be read."""

SENT_ELSEWHERE: Final = _(
    "With another host, secrets in here would go elsewhere: take them out first, or change them."
)

_SECRET_MAPS: Final = ("env", "headers")


class ServerConfigQuerySet(RevisedQuerySet["ServerConfig"]):
    """Servers, by what an operator wants."""

    def enabled(self) -> Self:
        """Keep the servers that may be used."""
        return self.filter(enabled=True)

    def disabled(self) -> Self:
        """Keep the servers that may not be used."""
        return self.filter(enabled=False)

    def connectable(self) -> Self:
        """Keep the servers that a use may connect: enabled, and not stopped by hand."""
        return self.filter(enabled=True, stopped=False)

    def from_source(self, source: str) -> Self:
        """Keep the servers of one source."""
        return self.filter(source=source)

    def named(self, name: str) -> Self:
        """Keep the server of this name, whatever its case."""
        return self.filter(name__iexact=name)

    def revisions(self) -> dict[str, int]:
        """Return the revision of each server by name, with one query."""
        return dict(self.order_by().values_list("name", "revision"))

    def get_by_natural_key(self, name: str) -> ServerConfig:
        """Return the server of this name."""
        return self.get(name=name)


class ServerConfig(ServerFields):
    """A stored MCP server."""

    objects = ServerConfigQuerySet.as_manager()

    _sends_secrets_elsewhere = False
    """As ``judge_references`` has found."""

    class Meta:
        verbose_name = _("MCP server")
        verbose_name_plural = _("MCP servers")
        ordering = ("name",)
        constraints: ClassVar = [
            # MariaDB has no index on expressions; there the column's own collation ignores case.
            models.UniqueConstraint(
                Lower("name"),
                name="mcp_client_server_name",
                violation_error_message=_("This name is taken; case makes no difference."),
            ),
        ]
        permissions: ClassVar = [
            ("connect_serverconfig", _("Can connect and disconnect MCP servers")),
            ("run_code_serverconfig", _("Can define MCP servers that run code on this machine")),
            ("reference_environment", _("Can refer to any environment variable in MCP servers")),
        ]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    @property
    def title(self) -> str:
        """The label, or the name."""
        return self.label or self.name

    @property
    def runs_code(self) -> bool:
        """Whether the server is a program on this machine, for which a permission is needed."""
        return self.transport in (Transport.STDIO, Transport.IN_PROCESS)

    def clean(self) -> None:
        """Judge the whole server.

        Raises:
            ValidationError: with the messages by field.
        """
        super().clean()
        errors = server_errors(self)
        if self._sends_secrets_elsewhere:
            errors.setdefault("headers", []).append(ValidationError(SENT_ELSEWHERE, code="elsewhere"))
        if errors:
            raise ValidationError(errors)

    def judge_references(self, *, saver_may: bool) -> None:
        """Decide what this server may refer to, and where its secrets may go. Call before ``full_clean``.

        Args:
            saver_may: whether who saves has the permission ``reference_environment``. If so,
                the row is granted what it refers to. If not, it keeps a grant only while
                nothing of ``CONNECTION_FIELDS`` changes: else somebody could point the secrets
                of another person's row to a server of their own. Nor do stored headers go there.
        """
        self._sends_secrets_elsewhere = False
        if saver_may:
            self.may_reference_environment = has_references(self)
            return
        rows = type(self)._base_manager.using(self._state.db)  # noqa: SLF001 (documented by Django)
        stored = rows.filter(pk=self.pk).first() if self.pk else None
        if stored is None:
            self.may_reference_environment = False
            return
        names = (*CONNECTION_FIELDS, "may_reference_environment")
        if any(getattr(stored, name) != getattr(self, name) for name in names):
            self.may_reference_environment = False
        if _origin(stored.url) != _origin(self.url) and isinstance(self.headers, Mapping):
            shown = without_secrets(stored.headers)
            self._sends_secrets_elsewhere = any(
                text and shown[name] is None and self.headers.get(name) == text
                for name, text in stored.headers.items()
            )

    def resolve(self, variables: Mapping[str, str] | None = None) -> ResolvedServer:
        """Return what the core works with, and warnings; see :func:`resolution.resolve`.

        Raises:
            ConfigurationError: the server cannot work.
        """
        return resolve(self, variables)

    def to_spec(self, variables: Mapping[str, str] | None = None) -> ServerSpec:
        """Return what the core works with.

        Raises:
            ConfigurationError: the server cannot work.
        """
        return resolve(self, variables).spec

    def apply_import(self, imported: ImportedServer) -> list[str]:
        """Take over what an import says, without saving; what it does not say stays.

        Returns:
            The places that have to be filled in by hand, such as ``env.TOKEN``. If there are
            any, the server is disabled.
        """
        for name, value in imported.fields.items():
            stored = getattr(self, name)
            setattr(self, name, keep_stored_values(value, stored) if name in _SECRET_MAPS else value)
        self.extra = keep_stored_json(imported.extra, self.extra)
        if imported.label != self.name:
            self.label = imported.label
        if unfilled := unfilled_places(self):
            self.enabled = False
        return unfilled

    def export_values(self) -> dict[str, Any]:
        """Return what ``configuration.export`` wants to know."""
        return {name: getattr(self, name) for name in EXPORTED_FIELDS}

    def enable(self) -> None:
        """Allow the server's use."""
        self._change(enabled=True)

    def disable(self) -> None:
        """Forbid the server's use."""
        self._change(enabled=False)

    def stop(self) -> None:
        """Note that the server was disconnected by hand: all processes obey."""
        self._change(stopped=True)

    def unstop(self) -> None:
        """Note that the server was connected by hand."""
        self._change(stopped=False)

    def _change(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)
        self.save(update_fields=values)


def _origin(url: str) -> str:
    """Return scheme, host and port, or all of what refers to variables."""
    return url if "${" in url else safe_url(url)
