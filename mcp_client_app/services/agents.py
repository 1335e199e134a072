"""Stored agents: looking, adding, changing, removing, and who may use them.

To look at agents and to change them is for operators; to use one needs ``run_agentconfig``,
and membership in one of the agent's groups if it has any.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from django.contrib.auth.models import Group
from django.core.exceptions import FieldDoesNotExist
from django.db import IntegrityError, router, transaction
from django.db.models import Prefetch, prefetch_related_objects

from mcp_client_app.configuration.secrets import keep_masked_values
from mcp_client_app.datatypes import AgentSpec
from mcp_client_app.exceptions import (
    ConfigurationError,
    DuplicateAgentError,
    StaleRevisionError,
    UnknownAgentError,
)
from mcp_client_app.models import AgentConfig, AgentServer
from mcp_client_app.models.agents import AgentConfigQuerySet
from mcp_client_app.services.agent_choices import AgentChoices, ServerChoice
from mcp_client_app.services.permissions import (
    ADD_AGENT,
    CHANGE_AGENT,
    DELETE_AGENT,
    REFERENCE,
    RUN_AGENT,
    VIEW_AGENT,
    may,
    require,
)

__all__ = [
    "add_agent",
    "agent_spec",
    "get_agent",
    "list_agents",
    "remove_agent",
    "remove_agent_server",
    "save_agent",
    "save_agent_server",
    "update_agent",
    "usable_agents",
]

_SET_BY_US: Final = frozenset(
    {"id", "pk", "name", "revision", "created_at", "updated_at", "may_reference_environment"}
)


def list_agents(*, user: Any = None) -> list[AgentConfig]:
    """Return all agents by name, enabled or not.

    Raises:
        PermissionDeniedError: The user may not see agents.
    """
    require(user, VIEW_AGENT)
    return list(_rows().order_by("name").prefetch_related(*_parts()))


def get_agent(name: str, *, user: Any = None) -> AgentConfig:
    """Return one agent, enabled or not; names are compared without regard to case.

    Raises:
        UnknownAgentError: There is none.
        PermissionDeniedError: The user may not see agents.
    """
    require(user, VIEW_AGENT)
    return _complete(_find(name))


def usable_agents(*, user: Any = None) -> list[AgentConfig]:
    """Return the agents that a user may use, by name.

    Raises:
        PermissionDeniedError: The user may not use agents.
    """
    require(user, RUN_AGENT)
    return list(_rows().enabled().for_user(user).order_by("name"))


def agent_spec(name: str, *, user: Any = None) -> AgentSpec:
    """Return an agent as it may be used.

    Args:
        name: Which one; case makes no difference.
        user: Who uses it; None for trusted code.

    Raises:
        UnknownAgentError: There is none, it is disabled, or it is not open to the user's groups.
        PermissionDeniedError: The user may not use agents.
    """
    require(user, RUN_AGENT)
    row = _rows().enabled().for_user(user).named(name).first()
    if row is None:
        whom = "" if user is None else " that you may use"
        raise UnknownAgentError(f"There is no agent {name!r}{whom}, or it is disabled.", agent=name)
    return row.to_spec()


def add_agent(
    name: str,
    *,
    user: Any = None,
    servers: Iterable[ServerChoice] = (),
    groups: Iterable[Group | str] = (),
    **fields: Any,
) -> AgentConfig:
    """Store a new agent.

    Args:
        name: Its name.
        user: Who does it; None for trusted code.
        servers: Its servers: names, or mappings of ``server`` and fields of ``AgentServer``.
        groups: Whose members may use it, as rows or names; none = everybody with the permission.
        **fields: Fields of ``AgentConfig``.

    Raises:
        DuplicateAgentError: The name is taken.
        PermissionDeniedError: The user may not.
        ValidationError: Django's, with messages by field, such as ``servers.0.fixed_arguments``.
        ConfigurationError: There is no such field.
    """
    require(user, ADD_AGENT)
    _require_free(name)
    row = AgentConfig(name=name)
    _assign(row, fields)
    try:
        with transaction.atomic(using=_database()):
            return _complete(_save(row, user, AgentChoices(row, servers, groups)))
    except IntegrityError:
        _require_free(name)
        raise


def update_agent(
    name: str,
    *,
    user: Any = None,
    expected_revision: int | None = None,
    servers: Iterable[ServerChoice] | None = None,
    groups: Iterable[Group | str] | None = None,
    **fields: Any,
) -> AgentConfig:
    """Change a stored agent; what is not given stays.

    Args:
        name: Which one.
        user: Who does it; None for trusted code.
        expected_revision: The revision that the change was made for; None overwrites any.
        servers: All its servers, as for ``add_agent``. One that is missing is taken out; of one that
            stays, fields that are not given stay. ``fixed_arguments`` are given whole, or as
            ``ArgumentChanges``.
        groups: All its groups.
        **fields: Fields of ``AgentConfig``.

    Raises:
        UnknownAgentError: There is none.
        StaleRevisionError: ``expected_revision`` is not the stored one any more.
        PermissionDeniedError, ValidationError, ConfigurationError: As for ``add_agent``.
    """
    require(user, CHANGE_AGENT)
    with transaction.atomic(using=_database()):
        row = _find(name, lock=True)
        _require_revision(row, expected_revision)
        if "model_settings" in fields:
            fields["model_settings"] = keep_masked_values(fields["model_settings"], row.model_settings)
        _assign(row, fields)
        return _complete(_save(row, user, AgentChoices(row, servers, groups)))


def save_agent(row: AgentConfig, *, user: Any = None) -> AgentConfig:
    """Validate and save an agent, new or changed, without its servers and groups.

    Raises:
        PermissionDeniedError: The user may not.
        ValidationError: Django's, with messages by field.
    """
    is_new = row._state.adding  # noqa: SLF001 (documented by Django)
    require(user, ADD_AGENT if is_new else CHANGE_AGENT)
    return _save(row, user, AgentChoices(row, None, None))


def save_agent_server(row: AgentServer, *, user: Any = None) -> AgentServer:
    """Validate and save what an agent may use of one server, new or changed.

    Raises:
        PermissionDeniedError: The user may not change agents.
        ValidationError: Django's, with messages by field.
    """
    require(user, CHANGE_AGENT)
    row.full_clean()
    row.save()
    return row


def remove_agent_server(row: AgentServer, *, user: Any = None) -> None:
    """Take a server from an agent.

    Raises:
        PermissionDeniedError: The user may not change agents.
    """
    require(user, CHANGE_AGENT)
    row.delete()


def remove_agent(name: str, *, user: Any = None, expected_revision: int | None = None) -> None:
    """Delete a stored agent; its runs stay, under its name.

    Raises:
        UnknownAgentError: There is none.
        StaleRevisionError: ``expected_revision`` is not the stored one any more.
        PermissionDeniedError: The user may not.
    """
    require(user, DELETE_AGENT)
    with transaction.atomic(using=_database()):
        row = _find(name, lock=True)
        _require_revision(row, expected_revision)
        row.delete()


def _save(row: AgentConfig, user: Any, choices: AgentChoices) -> AgentConfig:
    row.judge_references(saver_may=may(user, REFERENCE))
    choices.validate()
    with transaction.atomic(using=_database()):
        row.save()
        choices.save()
    return row


def _complete(row: AgentConfig) -> AgentConfig:
    """Return the agent with its servers and groups read."""
    prefetch_related_objects([row], *_parts())
    return row


def _parts() -> list[Prefetch[Any]]:
    """Return what belongs to an agent, to be read where the agent itself is."""
    database = _database()
    return [
        Prefetch("agent_servers", AgentServer.objects.using(database).select_related("server")),
        Prefetch("groups", Group.objects.using(database)),
    ]


def _database() -> str:
    return router.db_for_write(AgentConfig)


def _rows() -> AgentConfigQuerySet:
    """Rows of the write database: a replica may not know yet what was saved a moment ago."""
    return AgentConfig.objects.using(_database())


def _find(name: str, *, lock: bool = False) -> AgentConfig:
    rows = _rows().select_for_update() if lock else _rows()
    row = rows.named(name).first()
    if row is None:
        raise UnknownAgentError(f"There is no agent {name!r}.", agent=name)
    return row


def _require_free(name: str) -> None:
    if _rows().named(name).exists():
        raise DuplicateAgentError(
            f"There is an agent {name!r} already; choose another name, or change that one.", field="name"
        )


def _assign(row: AgentConfig, fields: dict[str, Any]) -> None:
    for name, value in fields.items():
        if name in _SET_BY_US or not _is_field(name):
            raise ConfigurationError(f"An agent has no field {name!r} that can be set.", field=name)
        setattr(row, name, value)


def _is_field(name: str) -> bool:
    try:
        return bool(AgentConfig._meta.get_field(name).concrete)  # noqa: SLF001 (documented by Django)
    except FieldDoesNotExist:
        return False


def _require_revision(row: AgentConfig, expected: int | None) -> None:
    if expected is not None and row.revision != expected:
        raise StaleRevisionError(expected=expected, revision=row.revision)
