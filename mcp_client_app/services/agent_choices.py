"""The servers and groups of an agent: found by name, judged together with it, saved with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from django.contrib.auth.models import Group
from django.core.exceptions import NON_FIELD_ERRORS, ValidationError
from django.db import router
from django.utils.translation import gettext_lazy as _

from mcp_client_app.configuration.argument_changes import ArgumentChanges
from mcp_client_app.exceptions import ConfigurationError
from mcp_client_app.models import AgentConfig, AgentServer, ServerConfig
from mcp_client_app.runtime import row_source

__all__ = ["SERVER_FIELDS", "AgentChoices", "ServerChoice"]

ServerChoice = str | Mapping[str, Any]
"""The name of a server, or a mapping of ``server`` (its name) and fields of ``AgentServer``."""

SERVER_FIELDS: Final = (
    "allowed_tools",
    "blocked_tools",
    "fixed_arguments",
    "output_filters",
    "result_limit",
    "result_limits",
    "approval",
    "tool_approvals",
)
"""What may be said of each server."""

Errors = dict[str, list[ValidationError]]


class AgentChoices:
    """What an agent is given besides its own columns; None leaves servers or groups as they are."""

    def __init__(
        self,
        agent: AgentConfig,
        servers: Iterable[ServerChoice] | None,
        groups: Iterable[Group | str] | None,
    ) -> None:
        self.agent = agent
        self.database = router.db_for_write(AgentConfig)
        self._given_servers = None if servers is None else list(servers)
        self._given_groups = None if groups is None else list(groups)
        self._servers: list[AgentServer] = []
        self._groups: list[Group] = []

    def validate(self) -> None:
        """Judge the agent with its servers and groups.

        Raises:
            ValidationError: with all messages, by field; those of a server under ``servers.<index>``.
        """
        errors: Errors = {}
        try:
            self.agent.full_clean()
        except ValidationError as error:
            errors.update(error.error_dict)
        if self._given_servers is not None:
            self._find_servers(self._given_servers, errors)
        if self._given_groups is not None:
            self._find_groups(self._given_groups, errors)
        if errors:
            raise ValidationError(errors)

    def save(self) -> None:
        """Save servers and groups of the agent, which is saved already."""
        if self._given_servers is not None:
            kept = {row.server_id for row in self._servers}
            for row in self._stored().exclude(server__in=kept):
                row.delete(using=self.database)
            for row in self._servers:
                row.agent = self.agent
                row.save(using=self.database)
            # Each of them has raised it.
            self.agent.refresh_from_db(using=self.database, fields=["revision", "updated_at"])
        if self._given_groups is not None:
            self.agent.groups.set(self._groups)

    def _stored(self) -> Any:
        return AgentServer.objects.using(self.database).filter(agent_id=self.agent.pk)

    # Servers ---------------------------------------------------------------------------

    def _find_servers(self, given: list[ServerChoice], errors: Errors) -> None:
        # Servers of the settings and the file get their rows at first use: this may be it.
        row_source.current()
        known = {row.name.casefold(): row for row in ServerConfig.objects.using(self.database).only("name")}
        stored = {row.server_id: row for row in self._stored()} if self.agent.pk else {}
        seen: set[int] = set()
        for index, choice in enumerate(given):
            place = f"servers.{index}"
            fields = {"server": choice} if isinstance(choice, str) else dict(choice)
            name = str(fields.pop("server", ""))
            server = known.get(name.casefold())
            if server is None:
                _add(
                    errors, f"{place}.server", _("There is no server %(name)r."), "unknown_server", name=name
                )
                continue
            if server.pk in seen:
                _add(errors, f"{place}.server", _("%(name)r is given twice."), "server_twice", name=name)
                continue
            seen.add(server.pk)
            row = stored.get(server.pk) or AgentServer(server=server)
            for field, error in _assigned(row, fields):
                errors.setdefault(f"{place}.{field}", []).append(error)
            for field, found in _errors_of(row):
                errors.setdefault(f"{place}.{field}" if field else place, []).extend(found)
            self._servers.append(row)

    # Groups ----------------------------------------------------------------------------

    def _find_groups(self, given: list[Group | str], errors: Errors) -> None:
        names = [group for group in given if isinstance(group, str)]
        found = {group.name: group for group in Group.objects.using(self.database).filter(name__in=names)}
        for each in given:
            group = found.get(each) if isinstance(each, str) else each
            if group is None:
                _add(errors, "groups", _("There is no group %(name)r."), "unknown_group", name=each)
            else:
                self._groups.append(group)


def _assigned(row: AgentServer, fields: dict[str, Any]) -> Iterator[tuple[str, ValidationError]]:
    """Set the fields; yield what cannot be set."""
    for name, value in fields.items():
        if name not in SERVER_FIELDS:
            yield name, ValidationError(_("There is no such field."), code="unknown_field")
            continue
        if isinstance(value, ArgumentChanges):
            try:
                value = value.whole(row.fixed_arguments)
            except ConfigurationError as error:
                yield name, ValidationError(str(error), code="nothing_to_keep")
                continue
        setattr(row, name, value)


def _errors_of(row: AgentServer) -> Iterator[tuple[str, list[ValidationError]]]:
    try:
        row.full_clean(exclude=["agent", "server"], validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        for field, found in error.error_dict.items():
            yield "" if field == NON_FIELD_ERRORS else field, found


def _add(errors: Errors, field: str, message: Any, code: str, **params: Any) -> None:
    errors.setdefault(field, []).append(ValidationError(message, code=code, params=params))
