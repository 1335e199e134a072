"""``AgentConfig``: a stored agent.

Its columns are in ``agent_fields``, what it may use of each server in ``agent_servers``.
``to_spec`` is the way out of the database: what calls tools or runs a model never sees a row.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext_lazy as _

from mcp_client_app.configuration.secrets import keeps_masked_values
from mcp_client_app.datatypes import AgentSpec, ApprovalPolicy
from mcp_client_app.models.agent_fields import AgentFields, agent_errors, as_filter
from mcp_client_app.models.revisions import RevisedQuerySet
from mcp_client_app.models.servers import ServerConfig

__all__ = ["AgentConfig", "AgentConfigQuerySet"]

SENT_ELSEWHERE = _(
    "With another model or base URL, secrets in here would go elsewhere: take them out first, or change them."
)


class AgentConfigQuerySet(RevisedQuerySet["AgentConfig"]):
    """Agents, by what an operator wants."""

    def enabled(self) -> Self:
        """Keep the agents that may be used."""
        return self.filter(enabled=True)

    def named(self, name: str) -> Self:
        """Keep the agent of this name, whatever its case."""
        return self.filter(name__iexact=name)

    def for_user(self, user: Any) -> Self:
        """Keep the agents that are open to a user's groups; None and superusers see all."""
        if user is None or getattr(user, "is_superuser", False):
            return self
        # A user model of the project's own may have no groups.
        has_groups = getattr(user, "pk", None) is not None and hasattr(user, "groups")
        groups = user.groups.values("pk") if has_groups else []
        agents = self.model._default_manager  # noqa: SLF001 (documented by Django)
        closed = agents.using(self.db).filter(groups__isnull=False)
        return self.exclude(pk__in=closed.exclude(groups__in=groups).values("pk"))

    def get_by_natural_key(self, name: str) -> AgentConfig:
        """Return the agent of this name."""
        return self.get(name=name)


class AgentConfig(AgentFields):
    """A stored agent: its model, its servers, and what it may do with them."""

    servers = models.ManyToManyField(
        ServerConfig,
        through="AgentServer",
        related_name="agents",
        blank=True,
        verbose_name=_("MCP servers"),
    )
    groups = models.ManyToManyField(
        Group,
        related_name="+",
        blank=True,
        verbose_name=_("groups"),
        help_text=_("Whose members may use the agent; none = everybody with the permission."),
    )
    objects = AgentConfigQuerySet.as_manager()

    _sends_secrets_elsewhere = False
    """As ``judge_references`` has found."""

    class Meta:
        verbose_name = _("agent")
        verbose_name_plural = _("agents")
        ordering = ("name",)
        constraints: ClassVar = [
            models.UniqueConstraint(
                Lower("name"),
                name="mcp_client_agent_name",
                violation_error_message=_("This name is taken; case makes no difference."),
            ),
        ]
        permissions: ClassVar = [("run_agentconfig", _("Can use agents"))]

    def __str__(self) -> str:
        return self.name

    def natural_key(self) -> tuple[str]:
        return (self.name,)

    @property
    def title(self) -> str:
        """The label, or the name."""
        return self.label or self.name

    def clean(self) -> None:
        """Judge the whole agent.

        Raises:
            ValidationError: with the messages by field.
        """
        super().clean()
        errors = agent_errors(self)
        if self._sends_secrets_elsewhere:
            errors.setdefault("model_settings", []).append(ValidationError(SENT_ELSEWHERE, code="elsewhere"))
        if errors:
            raise ValidationError(errors)

    def judge_references(self, *, saver_may: bool) -> None:
        """Decide whether the key's variable may be any, and where secrets may go. Call before ``full_clean``.

        Args:
            saver_may: whether who saves has the permission ``reference_environment``. If not, a
                grant is kept only while neither the variable nor where the key goes changes, and
                settings that nobody is shown go nowhere else.
        """
        self._sends_secrets_elsewhere = False
        if saver_may:
            self.may_reference_environment = bool(self.api_key_variable)
            return
        rows = type(self)._base_manager.using(self._state.db)  # noqa: SLF001 (documented by Django)
        stored = rows.filter(pk=self.pk).first() if self.pk else None
        if stored is None:
            self.may_reference_environment = False
            return
        goes_elsewhere = (stored.model, stored.base_url) != (self.model, self.base_url)
        if goes_elsewhere or stored.api_key_variable != self.api_key_variable:
            self.may_reference_environment = False
        self.may_reference_environment &= stored.may_reference_environment
        self._sends_secrets_elsewhere = goes_elsewhere and keeps_masked_values(
            self.model_settings, stored.model_settings
        )

    def to_spec(self) -> AgentSpec:
        """Return the agent as ``services`` and ``agents`` work with it; one query, unless prefetched."""
        # Read where the agent was: a replica may still have the servers of an earlier revision.
        chosen = self.agent_servers.db_manager(self._state.db).all()
        if "agent_servers" not in getattr(self, "_prefetched_objects_cache", ()):
            chosen = chosen.select_related("server")
        return AgentSpec(
            name=self.name,
            revision=self.revision,
            servers=tuple(sorted((each.to_spec() for each in chosen), key=lambda server: server.name)),
            all_servers=self.all_servers,
            filter=as_filter(self.allowed_tools, self.blocked_tools),
            result_limit=self.result_limit,
            approval=ApprovalPolicy(self.approval),
            approval_lifetime=self.approval_lifetime,
            validation=self.validation,  # type: ignore[arg-type]  # one of the choices
            model=self.model,
            base_url=self.base_url,
            api_key_variable=self.api_key_variable,
            may_reference_environment=self.may_reference_environment,
            instructions=self.instructions,
            model_settings=dict(self.model_settings),
            max_rounds=self.max_rounds,
            max_parallel_calls=self.max_parallel_calls,
            token_limit=self.token_limit,
            time_limit=self.time_limit,
        )
