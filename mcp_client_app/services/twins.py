"""Async twins of the services that only touch rows or wait for a connection: the same, on a thread."""

from __future__ import annotations

from asgiref.sync import sync_to_async

from mcp_client_app.services import connections, servers, transfer

__all__ = [
    "aadd_server",
    "aconnect",
    "aconnect_all",
    "adisable_server",
    "adisconnect",
    "aenable_server",
    "aexport_servers",
    "aget_server",
    "aimport_servers",
    "alist_servers",
    "arefresh",
    "aremove_server",
    "aserver_logs",
    "aserver_status",
    "aserver_statuses",
    "aserver_stderr",
    "async_servers",
    "atest_server",
    "aupdate_server",
    "aworker_states",
]

aadd_server = sync_to_async(servers.add_server)
aget_server = sync_to_async(servers.get_server)
alist_servers = sync_to_async(servers.list_servers)
aremove_server = sync_to_async(servers.remove_server)
aupdate_server = sync_to_async(servers.update_server)
aenable_server = sync_to_async(servers.enable_server)
adisable_server = sync_to_async(servers.disable_server)

aimport_servers = sync_to_async(transfer.import_servers)
aexport_servers = sync_to_async(transfer.export_servers)
async_servers = sync_to_async(transfer.sync_servers)

aserver_status = sync_to_async(connections.server_status)
aserver_statuses = sync_to_async(connections.server_statuses)
aserver_logs = sync_to_async(connections.server_logs)
aserver_stderr = sync_to_async(connections.server_stderr)
aworker_states = sync_to_async(connections.worker_states)
# These may wait long for a server: not on the one thread that all thread-sensitive work shares.
aconnect = sync_to_async(connections.connect, thread_sensitive=False)
aconnect_all = sync_to_async(connections.connect_all, thread_sensitive=False)
adisconnect = sync_to_async(connections.disconnect, thread_sensitive=False)
arefresh = sync_to_async(connections.refresh, thread_sensitive=False)
atest_server = sync_to_async(connections.test_server, thread_sensitive=False)
