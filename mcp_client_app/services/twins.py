"""Async twins of the services that only touch rows: the same, on the thread that Django keeps for that."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from mcp_client_app.services import agents, offers, receipts, servers, time_limits, transfer

__all__ = [
    "aadd_agent",
    "aadd_server",
    "aagent_spec",
    "acall_limit",
    "aclaim_key",
    "adisable_server",
    "aenable_server",
    "aexport_servers",
    "aget_agent",
    "aget_server",
    "aimport_servers",
    "alast_known",
    "alist_agents",
    "alist_servers",
    "aremove_agent",
    "aremove_server",
    "asave_agent",
    "asave_server",
    "async_servers",
    "aupdate_agent",
    "aupdate_server",
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

aimport_servers = sync_to_async(transfer.import_servers)
aexport_servers = sync_to_async(transfer.export_servers)
async_servers = sync_to_async(transfer.sync_servers)

alast_known = sync_to_async(offers.last_known)
acall_limit = sync_to_async(time_limits.call_limit)
aclaim_key = sync_to_async(receipts.claim_key)
