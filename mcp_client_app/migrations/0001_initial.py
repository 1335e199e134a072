"""The tables of the first release."""

from __future__ import annotations

import uuid

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import mcp_client_app.models.calls
import mcp_client_app.models.fields
import mcp_client_app.models.revisions
import mcp_client_app.validators


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="AgentConfig",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "revision",
                    models.PositiveBigIntegerField(
                        default=mcp_client_app.models.revisions.first_revision,
                        editable=False,
                        help_text="Grows with each change.",
                        verbose_name="revision",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="created"
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "name",
                    models.CharField(
                        error_messages={"unique": "An agent of this name exists already."},
                        help_text="Letters, digits, '-' and '_'; part of its addresses.",
                        max_length=100,
                        unique=True,
                        validators=[mcp_client_app.validators.validate_agent_name],
                        verbose_name="name",
                    ),
                ),
                (
                    "label",
                    models.CharField(
                        blank=True,
                        help_text="The name to show; any text.",
                        max_length=200,
                        verbose_name="label",
                    ),
                ),
                ("description", models.TextField(blank=True, verbose_name="description")),
                (
                    "enabled",
                    models.BooleanField(
                        default=True, help_text="Whether the agent may be used.", verbose_name="enabled"
                    ),
                ),
                (
                    "model",
                    models.CharField(
                        blank=True,
                        help_text="Provider and model, as in 'openai:gpt-5'; empty = the agent only serves its tools.",
                        max_length=200,
                        validators=[mcp_client_app.validators.validate_model_name],
                        verbose_name="model",
                    ),
                ),
                (
                    "base_url",
                    models.CharField(
                        blank=True,
                        help_text="Of a server that speaks as the provider does, such as vLLM or Ollama.",
                        max_length=2048,
                        validators=[mcp_client_app.validators.validate_plain_url],
                        verbose_name="base URL",
                    ),
                ),
                (
                    "api_key_variable",
                    models.CharField(
                        blank=True,
                        help_text="Name of the environment variable that holds the key; empty = the provider's own one.",
                        max_length=200,
                        validators=[mcp_client_app.validators.validate_variable_name],
                        verbose_name="variable of the API key",
                    ),
                ),
                ("instructions", models.TextField(blank=True, verbose_name="instructions")),
                (
                    "model_settings",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text='An object, as in {"temperature": 0}.',
                        verbose_name="model settings",
                    ),
                ),
                (
                    "all_servers",
                    models.BooleanField(
                        default=False,
                        help_text="Use every enabled server, also those added later.",
                        verbose_name="all servers",
                    ),
                ),
                (
                    "allowed_tools",
                    models.JSONField(
                        blank=True,
                        default=None,
                        help_text="Names or patterns; null = all, [] = none.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_tool_patterns],
                        verbose_name="allowed tools",
                    ),
                ),
                (
                    "blocked_tools",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names or patterns; they win over allowed ones.",
                        validators=[mcp_client_app.validators.validate_tool_patterns],
                        verbose_name="blocked tools",
                    ),
                ),
                (
                    "validation",
                    models.CharField(
                        choices=[
                            ("error", "refuse the call"),
                            ("warn", "make the call, and say so"),
                            ("off", "do not look"),
                        ],
                        default="error",
                        max_length=10,
                        verbose_name="arguments that do not fit",
                    ),
                ),
                (
                    "result_limit",
                    models.PositiveIntegerField(
                        default=100000,
                        help_text="Characters of a tool's result that the model reads; the rest is cut, and marked.",
                        validators=[django.core.validators.MinValueValidator(100)],
                        verbose_name="longest result",
                    ),
                ),
                (
                    "approval",
                    models.CharField(
                        choices=[
                            ("never", "never"),
                            ("writes", "for calls that may change something"),
                            ("always", "always"),
                            ("deny", "refuse such calls"),
                        ],
                        default="never",
                        help_text="When a person has to approve a call.",
                        max_length=10,
                        verbose_name="approval",
                    ),
                ),
                (
                    "approval_lifetime",
                    models.FloatField(
                        blank=True,
                        help_text="Seconds; empty = the default.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="lifetime of an approval",
                    ),
                ),
                (
                    "max_rounds",
                    models.PositiveIntegerField(
                        default=8,
                        help_text="How often the model may ask for tools in one run.",
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="rounds",
                    ),
                ),
                (
                    "max_parallel_calls",
                    models.PositiveIntegerField(
                        default=8, help_text="Within one round; 0 = no limit.", verbose_name="calls at once"
                    ),
                ),
                (
                    "token_limit",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Tokens of one run; empty = no limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="token limit",
                    ),
                ),
                (
                    "time_limit",
                    models.FloatField(
                        blank=True,
                        help_text="Seconds of one run, without the time it waits for people; empty = the default, 0 = no limit.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="time limit",
                    ),
                ),
                (
                    "may_reference_environment",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="Saved by somebody who may refer to the environment.",
                        verbose_name="may use any variable",
                    ),
                ),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True,
                        help_text="Whose members may use the agent; none = everybody with the permission.",
                        related_name="+",
                        to="auth.group",
                        verbose_name="groups",
                    ),
                ),
            ],
            options={
                "verbose_name": "agent",
                "verbose_name_plural": "agents",
                "ordering": ("name",),
                "permissions": [("run_agentconfig", "Can use agents")],
            },
        ),
        migrations.CreateModel(
            name="AgentRun",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "agent_name",
                    models.CharField(
                        help_text="As it was at the time.", max_length=100, verbose_name="agent name"
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        blank=True,
                        help_text="As it was at the time.",
                        max_length=255,
                        verbose_name="user name",
                    ),
                ),
                ("prompt", models.TextField(blank=True, verbose_name="prompt")),
                (
                    "deps",
                    models.JSONField(
                        blank=True, default=None, null=True, verbose_name="values of the caller"
                    ),
                ),
                (
                    "correlation_id",
                    models.CharField(
                        default=mcp_client_app.models.calls.new_correlation_id,
                        max_length=64,
                        verbose_name="correlation id",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("queued", "queued"),
                            ("running", "running"),
                            ("awaiting_approval", "awaiting approval"),
                            ("awaiting_input", "awaiting input"),
                            ("completed", "completed"),
                            ("limit_reached", "limit reached"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="queued",
                        max_length=20,
                        verbose_name="status",
                    ),
                ),
                (
                    "code",
                    models.CharField(
                        blank=True,
                        help_text="Why it ended as it did, for machines.",
                        max_length=40,
                        verbose_name="reason",
                    ),
                ),
                (
                    "detail",
                    models.TextField(
                        blank=True, help_text="Why it ended as it did, in a sentence.", verbose_name="detail"
                    ),
                ),
                ("text", models.TextField(blank=True, verbose_name="answer")),
                ("tool_rounds", models.PositiveIntegerField(default=0, verbose_name="rounds with tools")),
                ("usage", models.JSONField(blank=True, default=dict, verbose_name="usage")),
                (
                    "messages",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="The conversation as of the last point from which it can go on.",
                        verbose_name="messages",
                    ),
                ),
                (
                    "seconds_used",
                    models.FloatField(
                        default=0.0, help_text="Seconds, without pauses.", verbose_name="time used"
                    ),
                ),
                (
                    "in_background",
                    models.BooleanField(
                        default=False,
                        help_text="Nobody waits for it: any process may go on with it.",
                        verbose_name="in the background",
                    ),
                ),
                (
                    "attempts",
                    models.PositiveIntegerField(
                        default=0,
                        help_text="How often it was begun since it last came to rest.",
                        verbose_name="attempts",
                    ),
                ),
                ("lease_owner", models.CharField(blank=True, max_length=100, verbose_name="worker")),
                (
                    "lease_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="Until when it is let alone, running or queued.",
                        null=True,
                        verbose_name="worker's lease",
                    ),
                ),
                (
                    "event_count",
                    models.PositiveBigIntegerField(default=0, editable=False, verbose_name="events"),
                ),
                (
                    "cancel_requested_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="cancelling asked for"),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="created"),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True, verbose_name="started")),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="finished")),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="mcp_client_app.agentconfig",
                        verbose_name="agent",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "agent run",
                "verbose_name_plural": "agent runs",
                "ordering": ("-created_at", "-pk"),
                "get_latest_by": "created_at",
            },
        ),
        migrations.CreateModel(
            name="AgentEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "number",
                    models.PositiveBigIntegerField(
                        help_text="Within the run, from 1, without gaps.", verbose_name="number"
                    ),
                ),
                ("kind", models.CharField(max_length=40, verbose_name="kind")),
                ("data", models.JSONField(blank=True, default=dict, verbose_name="data")),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="created"),
                ),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="mcp_client_app.agentrun",
                        verbose_name="run",
                    ),
                ),
            ],
            options={
                "verbose_name": "event of a run",
                "verbose_name_plural": "events of runs",
                "ordering": ("run", "number"),
            },
        ),
        migrations.CreateModel(
            name="Approval",
            fields=[
                (
                    "id",
                    models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("approval", "approval of a call"), ("input", "input for a server")],
                        default="approval",
                        max_length=10,
                        verbose_name="kind",
                    ),
                ),
                (
                    "agent_name",
                    models.CharField(
                        help_text="As it was at the time.", max_length=100, verbose_name="agent name"
                    ),
                ),
                ("username", models.CharField(blank=True, max_length=255, verbose_name="user name")),
                ("call_id", models.CharField(blank=True, max_length=200, verbose_name="call id")),
                ("server_name", models.CharField(max_length=40, verbose_name="server name")),
                ("tool", models.CharField(max_length=255, verbose_name="tool")),
                (
                    "arguments",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="As the model gave them, without fixed ones.",
                        verbose_name="arguments",
                    ),
                ),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="Of tool and arguments.", max_length=64, verbose_name="fingerprint"
                    ),
                ),
                (
                    "requests",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="What the server asks for, by key.",
                        verbose_name="questions",
                    ),
                ),
                (
                    "request_state",
                    models.TextField(blank=True, editable=False, verbose_name="state of the server"),
                ),
                (
                    "schema",
                    models.JSONField(
                        blank=True,
                        default=None,
                        help_text="Of the tool's arguments, without fixed ones; what edited arguments are held to.",
                        null=True,
                        verbose_name="schema",
                    ),
                ),
                (
                    "fixed_names",
                    models.JSONField(
                        blank=True, default=list, editable=False, verbose_name="names of fixed arguments"
                    ),
                ),
                (
                    "open_key",
                    models.CharField(
                        blank=True,
                        editable=False,
                        help_text="Of the call while it waits or may be made: nobody is asked twice about the same one.",
                        max_length=64,
                        null=True,
                        unique=True,
                        verbose_name="key",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("approved", "approved"),
                            ("denied", "denied"),
                            ("answered", "answered"),
                            ("used", "used"),
                            ("expired", "expired"),
                            ("cancelled", "cancelled"),
                        ],
                        default="pending",
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                (
                    "edited_arguments",
                    models.JSONField(blank=True, default=None, null=True, verbose_name="edited arguments"),
                ),
                (
                    "answers",
                    models.JSONField(
                        blank=True,
                        default=None,
                        editable=False,
                        help_text="By key; deleted once they have been sent.",
                        null=True,
                        verbose_name="answers",
                    ),
                ),
                (
                    "reason",
                    models.TextField(
                        blank=True,
                        help_text="The model reads it if the call is denied.",
                        verbose_name="reason",
                    ),
                ),
                (
                    "decided_by_name",
                    models.CharField(blank=True, max_length=255, verbose_name="name of who decided"),
                ),
                ("decided_at", models.DateTimeField(blank=True, null=True, verbose_name="decided")),
                ("used_at", models.DateTimeField(blank=True, null=True, verbose_name="used")),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="created"),
                ),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                (
                    "agent",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="approvals",
                        to="mcp_client_app.agentconfig",
                        verbose_name="agent",
                    ),
                ),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="decided by",
                    ),
                ),
                (
                    "run",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty for a single call.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="approvals",
                        to="mcp_client_app.agentrun",
                        verbose_name="run",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="asked for by",
                    ),
                ),
            ],
            options={
                "verbose_name": "approval",
                "verbose_name_plural": "approvals",
                "ordering": ("-created_at", "-pk"),
                "permissions": [("decide_approval", "Can approve or deny calls of other users' runs")],
            },
        ),
        migrations.CreateModel(
            name="CallReceipt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("key", models.CharField(max_length=200, verbose_name="key")),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="Of the request: the key is good for no other one.",
                        max_length=64,
                        verbose_name="fingerprint",
                    ),
                ),
                (
                    "status",
                    models.PositiveSmallIntegerField(blank=True, null=True, verbose_name="HTTP status"),
                ),
                ("answer", models.BinaryField(blank=True, null=True, verbose_name="answer")),
                (
                    "started_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="started"),
                ),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "call receipt",
                "verbose_name_plural": "call receipts",
                "ordering": ("-started_at",),
            },
        ),
        migrations.CreateModel(
            name="RunCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "call_id",
                    models.CharField(
                        help_text="As the model's provider named it.", max_length=200, verbose_name="call id"
                    ),
                ),
                ("server_name", models.CharField(blank=True, max_length=40, verbose_name="server name")),
                ("tool", models.CharField(max_length=255, verbose_name="tool")),
                (
                    "fingerprint",
                    models.CharField(
                        help_text="Of tool and arguments.", max_length=64, verbose_name="fingerprint"
                    ),
                ),
                ("arguments", models.JSONField(blank=True, default=dict, verbose_name="arguments")),
                (
                    "is_safe",
                    models.BooleanField(
                        default=False,
                        help_text="Trusted annotations say that repeating is harmless.",
                        verbose_name="safe to repeat",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("started", "started"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("unknown", "unknown"),
                        ],
                        default="started",
                        max_length=10,
                        verbose_name="status",
                    ),
                ),
                ("code", models.CharField(blank=True, max_length=40, verbose_name="outcome")),
                (
                    "result",
                    models.JSONField(
                        blank=True,
                        default=None,
                        help_text="As the model read it.",
                        null=True,
                        verbose_name="result",
                    ),
                ),
                (
                    "started_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="started"),
                ),
                ("finished_at", models.DateTimeField(blank=True, null=True, verbose_name="finished")),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="calls",
                        to="mcp_client_app.agentrun",
                        verbose_name="run",
                    ),
                ),
            ],
            options={
                "verbose_name": "call of a run",
                "verbose_name_plural": "calls of runs",
                "ordering": ("run", "started_at", "pk"),
            },
        ),
        migrations.CreateModel(
            name="ServerConfig",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "revision",
                    models.PositiveBigIntegerField(
                        default=mcp_client_app.models.revisions.first_revision,
                        editable=False,
                        help_text="Grows with each change.",
                        verbose_name="revision",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="created"
                    ),
                ),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "name",
                    models.CharField(
                        error_messages={"unique": "A server of this name exists already."},
                        help_text="Letters, digits, '-' and '_'; part of the names of its tools.",
                        max_length=40,
                        unique=True,
                        validators=[mcp_client_app.validators.validate_server_name],
                        verbose_name="name",
                    ),
                ),
                (
                    "label",
                    models.CharField(
                        blank=True,
                        help_text="The name to show; any text.",
                        max_length=200,
                        verbose_name="label",
                    ),
                ),
                ("description", models.TextField(blank=True, verbose_name="description")),
                (
                    "transport",
                    models.CharField(
                        choices=[
                            ("stdio", "stdio: a local process"),
                            ("streamable_http", "streamable HTTP"),
                            ("sse", "SSE: the older HTTP transport"),
                            ("in_process", "in this process"),
                        ],
                        default="stdio",
                        max_length=20,
                        verbose_name="transport",
                    ),
                ),
                (
                    "command",
                    models.CharField(
                        blank=True,
                        help_text="One program, found on the PATH or by its path; no shell is used.",
                        max_length=1024,
                        validators=[mcp_client_app.validators.validate_command],
                        verbose_name="command",
                    ),
                ),
                (
                    "args",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="A list of strings.",
                        validators=[mcp_client_app.validators.validate_args],
                        verbose_name="arguments",
                    ),
                ),
                (
                    "env",
                    mcp_client_app.models.fields.SecretMapField(
                        blank=True,
                        default=dict,
                        help_text="Values are never shown again; they may refer to variables.",
                        validators=[mcp_client_app.validators.validate_env],
                        verbose_name="environment",
                    ),
                ),
                ("cwd", models.CharField(blank=True, max_length=1024, verbose_name="working directory")),
                (
                    "inherit_environment",
                    models.BooleanField(
                        default=True,
                        help_text="Pass PATH, HOME and the like on; otherwise only the variables given here.",
                        verbose_name="inherit the environment",
                    ),
                ),
                (
                    "inherited_names",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names of variables of this process to pass on.",
                        validators=[mcp_client_app.validators.validate_variable_names],
                        verbose_name="further inherited variables",
                    ),
                ),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        help_text="It may refer to variables.",
                        max_length=2048,
                        validators=[mcp_client_app.validators.validate_url],
                        verbose_name="URL",
                    ),
                ),
                (
                    "headers",
                    mcp_client_app.models.fields.SecretMapField(
                        blank=True,
                        default=dict,
                        help_text="Values are never shown again; they may refer to variables.",
                        validators=[mcp_client_app.validators.validate_headers],
                        verbose_name="headers",
                    ),
                ),
                (
                    "terminate_on_close",
                    models.BooleanField(
                        default=True,
                        help_text="For servers that keep sessions.",
                        verbose_name="end the session on closing",
                    ),
                ),
                (
                    "in_process",
                    models.CharField(
                        blank=True,
                        help_text="A key of MCP_CLIENT_IN_PROCESS_SERVERS.",
                        max_length=100,
                        verbose_name="server in this process",
                    ),
                ),
                (
                    "mode",
                    models.CharField(
                        choices=[
                            ("auto", "automatic"),
                            ("legacy", "with handshake, up to 2025-11-25"),
                            ("2026-07-28", "2026-07-28"),
                        ],
                        default="auto",
                        max_length=20,
                        verbose_name="protocol",
                    ),
                ),
                (
                    "connect_timeout",
                    models.FloatField(
                        blank=True,
                        help_text="Seconds; 0 = no limit, empty = the default.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="time limit for connecting",
                    ),
                ),
                (
                    "list_timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="time limit for listing",
                    ),
                ),
                (
                    "call_timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="time limit for calls",
                    ),
                ),
                (
                    "shutdown_timeout",
                    models.FloatField(
                        blank=True,
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="time limit for closing",
                    ),
                ),
                (
                    "idle_timeout",
                    models.FloatField(
                        blank=True,
                        help_text="Seconds until an unused process is stopped; 0 = never.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_seconds],
                        verbose_name="idle time",
                    ),
                ),
                (
                    "max_concurrency",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Further calls wait; 0 = no limit.",
                        null=True,
                        verbose_name="calls at once",
                    ),
                ),
                (
                    "max_result_size",
                    models.PositiveBigIntegerField(
                        blank=True,
                        help_text="Bytes; longer text is cut. 0 = no limit.",
                        null=True,
                        verbose_name="largest result",
                    ),
                ),
                (
                    "auto_reconnect",
                    models.BooleanField(
                        default=True,
                        help_text="Connect again at the next use after a loss.",
                        verbose_name="reconnect",
                    ),
                ),
                (
                    "trust_annotations",
                    models.BooleanField(
                        default=False,
                        help_text="Repeat a lost call once if the tool says that this is harmless.",
                        verbose_name="trust annotations",
                    ),
                ),
                (
                    "strict",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names of checks that are off by default.",
                        verbose_name="strict options",
                    ),
                ),
                (
                    "allowed_tools",
                    models.JSONField(
                        blank=True,
                        default=None,
                        help_text="Names or patterns; null = all, [] = none.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_tool_patterns],
                        verbose_name="allowed tools",
                    ),
                ),
                (
                    "blocked_tools",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names or patterns; they win over allowed ones.",
                        validators=[mcp_client_app.validators.validate_tool_patterns],
                        verbose_name="blocked tools",
                    ),
                ),
                (
                    "link",
                    models.CharField(
                        blank=True,
                        help_text="'own' or 'stock'; empty = the default.",
                        max_length=200,
                        verbose_name="link",
                    ),
                ),
                (
                    "enabled",
                    models.BooleanField(
                        default=True, help_text="Whether the server may be used.", verbose_name="enabled"
                    ),
                ),
                (
                    "stopped",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="Disconnected by hand, until connected again.",
                        verbose_name="stopped",
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[("database", "database"), ("settings", "settings"), ("file", "file")],
                        default="database",
                        editable=False,
                        max_length=20,
                        verbose_name="source",
                    ),
                ),
                (
                    "may_reference_environment",
                    models.BooleanField(
                        default=False,
                        editable=False,
                        help_text="Saved by somebody who may refer to the environment.",
                        verbose_name="may refer to all variables",
                    ),
                ),
                (
                    "extra",
                    mcp_client_app.models.fields.SecretMapField(
                        blank=True,
                        default=dict,
                        help_text="Keys of an import that mean nothing here; an export gives them back.",
                        verbose_name="other keys",
                    ),
                ),
            ],
            options={
                "verbose_name": "MCP server",
                "verbose_name_plural": "MCP servers",
                "ordering": ("name",),
                "permissions": [
                    ("connect_serverconfig", "Can connect and disconnect MCP servers"),
                    ("run_code_serverconfig", "Can define MCP servers that run code on this machine"),
                    ("reference_environment", "Can refer to any environment variable in MCP servers"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        django.db.models.functions.text.Lower("name"),
                        name="mcp_client_server_name",
                        violation_error_message="This name is taken; case makes no difference.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AgentServer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "allowed_tools",
                    models.JSONField(
                        blank=True,
                        default=None,
                        help_text="Names or patterns; null = all, [] = none.",
                        null=True,
                        validators=[mcp_client_app.validators.validate_tool_patterns],
                        verbose_name="allowed tools",
                    ),
                ),
                (
                    "blocked_tools",
                    models.JSONField(
                        blank=True,
                        default=list,
                        help_text="Names or patterns; they win over allowed ones.",
                        validators=[mcp_client_app.validators.validate_tool_patterns],
                        verbose_name="blocked tools",
                    ),
                ),
                (
                    "fixed_arguments",
                    mcp_client_app.models.fields.SecretMapField(
                        blank=True,
                        default=dict,
                        help_text="Tool to an object of arguments that every call has and no model sees.",
                        verbose_name="fixed arguments",
                    ),
                ),
                (
                    "output_filters",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Tool or pattern to a list of filters of its results.",
                        verbose_name="output filters",
                    ),
                ),
                (
                    "result_limit",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Characters; empty = the agent's limit.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(100)],
                        verbose_name="longest result",
                    ),
                ),
                (
                    "result_limits",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Tool or pattern to a number of characters.",
                        verbose_name="longest results by tool",
                    ),
                ),
                (
                    "approval",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("never", "never"),
                            ("writes", "for calls that may change something"),
                            ("always", "always"),
                            ("deny", "refuse such calls"),
                        ],
                        help_text="When a person has to approve a call; empty = as the agent says.",
                        max_length=10,
                        verbose_name="approval",
                    ),
                ),
                (
                    "tool_approvals",
                    models.JSONField(
                        blank=True,
                        default=dict,
                        help_text="Tool or pattern to 'never', 'writes', 'always' or 'deny'.",
                        verbose_name="approval by tool",
                    ),
                ),
                (
                    "agent",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_servers",
                        to="mcp_client_app.agentconfig",
                        verbose_name="agent",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="agent_servers",
                        to="mcp_client_app.serverconfig",
                        verbose_name="MCP server",
                    ),
                ),
            ],
            options={
                "verbose_name": "MCP server of an agent",
                "verbose_name_plural": "MCP servers of agents",
                "ordering": ("agent", "server"),
            },
        ),
        migrations.AddField(
            model_name="agentconfig",
            name="servers",
            field=models.ManyToManyField(
                blank=True,
                related_name="agents",
                through="mcp_client_app.AgentServer",
                to="mcp_client_app.serverconfig",
                verbose_name="MCP servers",
            ),
        ),
        migrations.CreateModel(
            name="ToolCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "username",
                    models.CharField(
                        blank=True,
                        help_text="As it was at the time.",
                        max_length=255,
                        verbose_name="user name",
                    ),
                ),
                (
                    "agent",
                    models.CharField(
                        blank=True,
                        help_text="As it was called at the time.",
                        max_length=100,
                        verbose_name="agent",
                    ),
                ),
                (
                    "server_name",
                    models.CharField(
                        help_text="As it was at the time.", max_length=40, verbose_name="server name"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("tool", "tool"),
                            ("resource", "resource"),
                            ("prompt", "prompt"),
                            ("completion", "completion"),
                        ],
                        default="tool",
                        max_length=20,
                        verbose_name="kind",
                    ),
                ),
                (
                    "tool",
                    models.CharField(
                        help_text="Name of the tool or prompt, or URI of the resource; cut if longer.",
                        max_length=255,
                        verbose_name="tool",
                    ),
                ),
                ("transport", models.CharField(default="stdio", max_length=20, verbose_name="transport")),
                (
                    "started_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="started"),
                ),
                (
                    "duration_ms",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Milliseconds.", verbose_name="duration"
                    ),
                ),
                (
                    "code",
                    models.CharField(
                        default="ok",
                        help_text="'ok', 'tool_failed' or the code of an error.",
                        max_length=40,
                        verbose_name="outcome",
                    ),
                ),
                ("is_error", models.BooleanField(default=False, verbose_name="failed")),
                (
                    "request_size",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Bytes.", verbose_name="size of the arguments"
                    ),
                ),
                (
                    "result_size",
                    models.PositiveBigIntegerField(
                        default=0, help_text="Bytes.", verbose_name="size of the result"
                    ),
                ),
                (
                    "correlation_id",
                    models.CharField(
                        default=mcp_client_app.models.calls.new_correlation_id,
                        max_length=64,
                        verbose_name="correlation id",
                    ),
                ),
                (
                    "arguments",
                    models.JSONField(blank=True, default=None, null=True, verbose_name="arguments"),
                ),
                ("result", models.JSONField(blank=True, default=None, null=True, verbose_name="result")),
                (
                    "server",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="calls",
                        to="mcp_client_app.serverconfig",
                        verbose_name="MCP server",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "tool call",
                "verbose_name_plural": "tool calls",
                "ordering": ("-started_at", "-pk"),
                "permissions": [("call_tool", "Can call tools of MCP servers")],
                "get_latest_by": "started_at",
            },
        ),
        migrations.CreateModel(
            name="WorkerProcess",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("host", models.CharField(max_length=255, verbose_name="host")),
                ("pid", models.PositiveBigIntegerField(verbose_name="process id")),
                (
                    "started_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="started"),
                ),
                (
                    "seen_at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="last seen"),
                ),
            ],
            options={
                "verbose_name": "worker process",
                "verbose_name_plural": "worker processes",
                "ordering": ("host", "pid", "started_at"),
                "indexes": [models.Index(fields=["seen_at"], name="mcp_client_worker_seen_at")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("host", "pid", "started_at"), name="mcp_client_worker_process"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ServerState",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "principal",
                    models.CharField(
                        default="shared",
                        help_text="Whose credentials the connection carries.",
                        max_length=100,
                        verbose_name="principal",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("idle", "idle"),
                            ("connecting", "connecting"),
                            ("ready", "ready"),
                            ("lost", "lost"),
                            ("backing_off", "backing off"),
                            ("failed", "failed"),
                            ("needs_auth", "needs authorization"),
                            ("stopped", "stopped"),
                        ],
                        default="idle",
                        max_length=20,
                        verbose_name="state",
                    ),
                ),
                ("reason", models.TextField(blank=True, verbose_name="reason")),
                ("code", models.CharField(blank=True, max_length=40, verbose_name="error code")),
                ("since", models.DateTimeField(default=django.utils.timezone.now, verbose_name="since")),
                ("retry_at", models.DateTimeField(blank=True, null=True, verbose_name="next try")),
                ("failures", models.PositiveIntegerField(default=0, verbose_name="failures in a row")),
                (
                    "revision",
                    models.PositiveBigIntegerField(default=0, verbose_name="revision of the server"),
                ),
                ("link", models.CharField(blank=True, max_length=200, verbose_name="link")),
                (
                    "protocol_version",
                    models.CharField(blank=True, max_length=40, verbose_name="protocol version"),
                ),
                (
                    "server_name",
                    models.CharField(blank=True, max_length=200, verbose_name="name told by the server"),
                ),
                (
                    "server_version",
                    models.CharField(blank=True, max_length=200, verbose_name="version told by the server"),
                ),
                ("tools", models.PositiveIntegerField(default=0, verbose_name="tools")),
                ("resources", models.PositiveIntegerField(default=0, verbose_name="resources")),
                (
                    "resource_templates",
                    models.PositiveIntegerField(default=0, verbose_name="resource templates"),
                ),
                ("prompts", models.PositiveIntegerField(default=0, verbose_name="prompts")),
                ("updated_at", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="states",
                        to="mcp_client_app.serverconfig",
                        verbose_name="MCP server",
                    ),
                ),
                (
                    "worker",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="states",
                        to="mcp_client_app.workerprocess",
                        verbose_name="worker process",
                    ),
                ),
            ],
            options={
                "verbose_name": "server state",
                "verbose_name_plural": "server states",
                "ordering": ("server", "worker", "principal"),
            },
        ),
        migrations.AddIndex(
            model_name="agentrun",
            index=models.Index(fields=["-created_at"], name="mcp_client_run_created_at"),
        ),
        migrations.AddIndex(
            model_name="agentrun",
            index=models.Index(fields=["status", "lease_until"], name="mcp_client_run_lease"),
        ),
        migrations.AddIndex(
            model_name="agentrun",
            index=models.Index(fields=["user", "-created_at"], name="mcp_client_run_user"),
        ),
        migrations.AddConstraint(
            model_name="agentevent",
            constraint=models.UniqueConstraint(fields=("run", "number"), name="mcp_client_event_number"),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["-created_at"], name="mcp_client_approval_created"),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["status", "expires_at"], name="mcp_client_approval_status"),
        ),
        migrations.AddIndex(
            model_name="approval",
            index=models.Index(fields=["run", "call_id"], name="mcp_client_approval_call"),
        ),
        migrations.AddIndex(
            model_name="callreceipt",
            index=models.Index(fields=["expires_at"], name="mcp_client_receipt_expires_at"),
        ),
        migrations.AddConstraint(
            model_name="callreceipt",
            constraint=models.UniqueConstraint(fields=("user", "key"), name="mcp_client_receipt_key"),
        ),
        migrations.AddConstraint(
            model_name="runcall",
            constraint=models.UniqueConstraint(fields=("run", "call_id"), name="mcp_client_run_call"),
        ),
        migrations.AddConstraint(
            model_name="agentserver",
            constraint=models.UniqueConstraint(fields=("agent", "server"), name="mcp_client_agent_server"),
        ),
        migrations.AddConstraint(
            model_name="agentconfig",
            constraint=models.UniqueConstraint(
                django.db.models.functions.text.Lower("name"),
                name="mcp_client_agent_name",
                violation_error_message="This name is taken; case makes no difference.",
            ),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["-started_at"], name="mcp_client_call_started_at"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["server_name", "-started_at"], name="mcp_client_call_server"),
        ),
        migrations.AddIndex(
            model_name="toolcall",
            index=models.Index(fields=["correlation_id"], name="mcp_client_call_correlation"),
        ),
        migrations.AddConstraint(
            model_name="serverstate",
            constraint=models.UniqueConstraint(
                fields=("worker", "server", "principal"), name="mcp_client_state_connection"
            ),
        ),
    ]
