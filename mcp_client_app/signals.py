"""Signals: what happened to the connections of this process.

All are sent with ``send_robust``; receivers may use the database and must accept
``**kwargs``. What happens to connections is told on callback threads, never on the event
loop and never inside a caller's transaction; events of one server arrive in order. Calls
are told where they were made: in the caller's thread, within its transaction. Approvals are
told in the thread that asked or decided, once its transaction is committed.
"""

from __future__ import annotations

from django.dispatch import Signal

__all__ = [
    "approval_decided",
    "approval_requested",
    "catalogue_changed",
    "server_log",
    "server_state_changed",
    "server_stderr",
    "tool_called",
]

# sender: the manager's class. status: datatypes.ServerStatus after the change;
# previous: datatypes.ConnectionState before it.
server_state_changed = Signal()

# sender: the manager's class. line: datatypes.StderrLine. Whatever a server prints: it may hold secrets.
server_stderr = Signal()

# sender: the manager's class. message: datatypes.LogMessage. Whatever a server reports: it may hold secrets.
server_log = Signal()

# sender: the manager's class. status: datatypes.ServerStatus, after the lists of a server were read,
# for the first time or anew.
catalogue_changed = Signal()

# sender: models.ToolCall. server, tool: names; kind: "tool", "resource", "prompt" or "completion";
# code: "ok", "tool_failed" or an error's code; duration_ms: int; user: the user or None;
# correlation_id: str. Never arguments or results.
tool_called = Signal()

# sender: models.Approval. approval: the row, of a call that waits for a person or of a server's question.
approval_requested = Signal()

# sender: models.Approval. approval: the row, as a person has decided it.
approval_decided = Signal()
