"""Async twins of the services that only touch rows: the same, on the thread that Django keeps for that."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from mcp_client_app.services import (
    agents,
    approval_decisions,
    approvals,
    offers,
    receipts,
    servers,
    time_limits,
    transfer,
)

__all__ = [
    "aadd_agent",
    "aadd_server",
    "aagent_spec",
    "aanswer_input",
    "aapproval_state",
    "aapprove",
    "acall_limit",
    "aclaim_key",
    "adeny",
    "adisable_server",
    "aenable_server",
    "aexpire_approvals",
    "aexport_servers",
    "aget_agent",
    "aget_approval",
    "aget_server",
    "aimport_servers",
    "alast_known",
    "alist_agents",
    "alist_approvals",
    "alist_servers",
    "aremove_agent",
    "aremove_server",
    "arequest_approval",
    "arequest_input",
    "asave_agent",
    "asave_server",
    "async_servers",
    "aupdate_agent",
    "aupdate_server",
    "ausable_agents",
    "ause_approval",
]

aadd_server = sync_to_async(servers.add_server)
aget_server = sync_to_async(servers.get_server)
alist_servers = sync_to_async(servers.list_servers)
aremove_server = sync_to_async(servers.remove_server)
asave_server = sync_to_async(servers.save_server)
aupdate_server = sync_to_async(servers.update_server)
aenable_server = sync_to_async(servers.enable_server)
adisable_server = sync_to_async(servers.disable_server)

aadd_agent = sync_to_async(agents.add_agent)
aagent_spec = sync_to_async(agents.agent_spec)
aget_agent = sync_to_async(agents.get_agent)
alist_agents = sync_to_async(agents.list_agents)
aremove_agent = sync_to_async(agents.remove_agent)
asave_agent = sync_to_async(agents.save_agent)
aupdate_agent = sync_to_async(agents.update_agent)
ausable_agents = sync_to_async(agents.usable_agents)

aimport_servers = sync_to_async(transfer.import_servers)
aexport_servers = sync_to_async(transfer.export_servers)
async_servers = sync_to_async(transfer.sync_servers)

alast_known = sync_to_async(offers.last_known)
acall_limit = sync_to_async(time_limits.call_limit)
aclaim_key = sync_to_async(receipts.claim_key)

aapproval_state = sync_to_async(approvals.approval_state)
arequest_approval = sync_to_async(approvals.request_approval)
arequest_input = sync_to_async(approvals.request_input)
ause_approval = sync_to_async(approvals.use_approval)
aanswer_input = sync_to_async(approval_decisions.answer_input)
aapprove = sync_to_async(approval_decisions.approve)
adeny = sync_to_async(approval_decisions.deny)
aexpire_approvals = sync_to_async(approval_decisions.expire_approvals)
aget_approval = sync_to_async(approval_decisions.get_approval)
alist_approvals = sync_to_async(approval_decisions.list_approvals)
