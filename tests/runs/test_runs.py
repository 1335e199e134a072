"""Ordering, looking, cancelling: who may, and what is there afterwards."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import AnonymousUser, Group

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.exceptions import (
    ConfigurationError,
    PermissionDeniedError,
    RunStateError,
    UnknownAgentError,
    UnknownRunError,
)
from mcp_client_app.models import AgentConfig, AgentRun
from tests.runs.conftest import NewRun, asked, fresh, kinds
from tests.services.conftest import MakeUser
from tests.stored import close_connections


def test_a_run_keeps_what_was_asked_for(new_run: NewRun, make_user: MakeUser):
    user = make_user("run_agentconfig")

    run = new_run("He\0lp!", user=user, history=[{"kind": "request"}], deps={"tenant": 3}, correlation_id="c")

    row = fresh(run)
    assert (row.agent_name, row.user, row.username) == ("support", user, user.username)
    assert row.agent == AgentConfig.objects.get()
    assert (row.prompt, row.messages, row.deps) == ("He�lp!", [{"kind": "request"}], {"tenant": 3})
    assert (row.correlation_id, row.state) == ("c", RunStatus.QUEUED)
    assert not row.in_background
    assert kinds(run) == []


def test_an_id_of_the_caller_is_made_to_fit(new_run: NewRun):
    assert fresh(new_run(correlation_id="c\0" * 40)).correlation_id == "c�" * 32


def test_a_prompt_that_is_no_text_is_refused(new_run: NewRun):
    with pytest.raises(ConfigurationError) as caught:
        new_run(None)

    assert caught.value.field == "prompt"
    assert not AgentRun.objects.exists()


def test_a_run_of_trusted_code_is_nobodys(new_run: NewRun):
    run = new_run()

    assert (run.user, run.username) == (None, "")
    assert run.correlation_id


class Visitor(AnonymousUser):
    """Somebody who is not signed in, and to whom a backend of the project gives permissions."""

    is_active: Any = True

    def __init__(self, *permissions: str) -> None:
        self.permissions = permissions

    def has_perm(self, perm: str, obj: object = None) -> bool:
        return perm.partition(".")[2] in self.permissions


def test_visitors_have_no_runs_and_end_none_of_trusted_code(new_run: NewRun):
    nobodys = new_run()

    with pytest.raises(PermissionDeniedError, match="sign in"):
        new_run(user=Visitor("run_agentconfig"))
    with pytest.raises(PermissionDeniedError):
        services.cancel_run(nobodys.pk, user=Visitor("view_agentrun"))

    assert AgentRun.objects.get().state is RunStatus.QUEUED
    assert services.cancel_run(nobodys.pk).state is RunStatus.CANCELLED


def test_the_name_of_an_agent_is_kept_when_it_is_gone(new_run: NewRun):
    run = new_run()
    AgentConfig.objects.all().delete()

    row = fresh(run)
    assert (row.agent, row.agent_name) == (None, "support")


@pytest.mark.parametrize("options", [{"deps": object()}, {"history": [object()]}], ids=["deps", "history"])
def test_what_has_no_json_form_is_refused(new_run: NewRun, options: dict[str, object]):
    [field] = options
    with pytest.raises(ConfigurationError) as caught:
        new_run(**options)

    assert caught.value.field == field
    assert not AgentRun.objects.exists()


def test_running_an_agent_takes_its_permission_and_its_groups(new_run: NewRun, make_user: MakeUser):
    allowed = make_user("run_agentconfig")
    with pytest.raises(PermissionDeniedError) as caught:
        new_run(user=make_user("view_agentconfig"))
    assert caught.value.permission == "mcp_client_app.run_agentconfig"

    agent = AgentConfig.objects.get()
    agent.groups.add(Group.objects.create(name="staff"))
    with pytest.raises(UnknownAgentError):
        new_run(user=allowed)
    agent.groups.clear()
    AgentConfig.objects.update(enabled=False)
    with pytest.raises(UnknownAgentError):
        new_run()
    assert not AgentRun.objects.exists()


def test_everybody_sees_his_own_runs(new_run: NewRun, make_user: MakeUser):
    owner, other = make_user("run_agentconfig"), make_user("run_agentconfig", "change_agentrun")
    viewer = make_user("view_agentrun")
    run, nobodys = new_run(user=owner), new_run()

    assert services.get_run(run.pk, owner) == run
    assert services.get_run(str(run.pk), viewer) == run
    assert list(services.list_runs(owner)) == [run]
    assert list(services.list_runs(viewer)) == list(services.list_runs()) == [nobodys, run]
    assert list(services.list_runs(other)) == []
    for user, run_id in [
        (other, run.pk),
        (owner, nobodys.pk),
        (AnonymousUser(), nobodys.pk),
        (None, "no id"),
        (None, uuid.uuid4()),
    ]:
        with pytest.raises(UnknownRunError):
            services.get_run(run_id, user)


def test_runs_are_listed_by_agent_and_status_without_their_messages(new_run: NewRun):
    first = new_run(history=["m"])
    AgentConfig.objects.create(name="sales")
    second = services.create_run("sales", "Buy!")
    services.claim(second.pk, "a")

    assert list(services.list_runs(agent="SUPPORT")) == [first]
    assert list(services.list_runs(limit=1)) == [second]
    assert list(services.list_runs(status=RunStatus.RUNNING)) == [second]
    assert list(services.list_runs(status="queued")) == [first]
    assert "messages" in services.list_runs()[0].get_deferred_fields()


@pytest.mark.parametrize("status", [None, RunStatus.AWAITING_APPROVAL, RunStatus.AWAITING_INPUT])
def test_a_run_that_nobody_works_on_is_cancelled_at_once(new_run: NewRun, status: RunStatus | None):
    run = new_run(owner="a" if status else "")
    if status:
        approval = asked(run)
        services.pause(run.pk, "a", status, messages=["m"])

    cancelled = services.cancel_run(run.pk)

    assert (cancelled.state, cancelled.messages) == (RunStatus.CANCELLED, ["m"] if status else [])
    assert cancelled.finished_at is not None
    assert kinds(run)[-1] == "run.cancelled"
    assert services.claim(run.pk, "b") is None
    if status:
        approval.refresh_from_db()
        assert approval.status == "cancelled"
    count = len(kinds(run))
    assert services.cancel_run(run.pk).state is RunStatus.CANCELLED, "twice does no harm"
    assert len(kinds(run)) == count


def test_the_worker_of_a_run_is_told_to_cancel_it(new_run: NewRun):
    run = new_run(owner="a")

    first = services.cancel_run(run.pk)
    again = services.cancel_run(run.pk)

    assert first.state is RunStatus.RUNNING
    assert first.cancel_requested_at == again.cancel_requested_at is not None
    assert services.renew(run.pk, "a").cancel
    services.finish(run.pk, "a", RunStatus.CANCELLED)
    assert kinds(run) == ["run.started", "run.cancelled"]


@pytest.mark.parametrize("status", [RunStatus.COMPLETED, RunStatus.LIMIT_REACHED, RunStatus.FAILED])
def test_what_is_over_is_not_cancelled(new_run: NewRun, status: RunStatus):
    run = new_run(owner="a")
    services.finish(run.pk, "a", status)

    with pytest.raises(RunStateError) as caught:
        services.cancel_run(run.pk)

    assert (caught.value.status, caught.value.run) == (status.value, str(run.pk))
    assert "running" in caught.value.allowed
    assert fresh(run).state is status


def test_others_runs_are_cancelled_by_those_who_may(new_run: NewRun, make_user: MakeUser):
    owner = make_user("run_agentconfig")
    run = new_run(user=owner)

    with pytest.raises(UnknownRunError):
        services.cancel_run(run.pk, user=make_user("change_agentrun"))
    with pytest.raises(PermissionDeniedError) as caught:
        services.cancel_run(run.pk, user=make_user("view_agentrun"))
    assert caught.value.permission == "mcp_client_app.change_agentrun"
    assert fresh(run).state is RunStatus.QUEUED
    operator = make_user("view_agentrun", "change_agentrun")
    assert services.cancel_run(run.pk, user=operator).state is RunStatus.CANCELLED
    assert services.cancel_run(new_run(user=owner).pk, user=owner).state is RunStatus.CANCELLED


@pytest.mark.django_db(transaction=True)
async def test_every_service_has_an_async_twin(new_run: NewRun, given: list[str]):
    await sync_to_async(new_run)()
    run = await services.acreate_run("support", "Help!")
    await services.asubmit(run)
    assert given == [str(run.pk)]
    claimed = await services.aclaim(run.pk, "a")
    assert claimed is not None
    assert not (await services.arenew(run.pk, "a")).lost
    await services.acheckpoint(run.pk, "a", messages=["m"])
    assert await services.aappend_events(run.pk, [("round", {"number": 1})]) == 2
    assert [event.number for event in await services.aevents_after(run.pk, 1)] == [2]
    await sync_to_async(asked)(run)
    assert await services.apause(run.pk, "a", RunStatus.AWAITING_INPUT, messages=["m"]) == "awaiting_input"
    assert not await services.arequeue(run.pk)
    assert (await services.acancel_run(run.pk)).state is RunStatus.CANCELLED
    assert (await services.aget_run(run.pk)).state is RunStatus.CANCELLED
    assert len(await services.alist_runs()) == 2
    assert await services.alist_runs(status="cancelled", limit=1) == [run]
    assert await services.arecorded_call(run.pk, "c") is None
    [other] = await services.alist_runs(status="queued")
    assert await services.aclaim(other.pk, "a") is not None
    await services.afinish(other.pk, "a", RunStatus.COMPLETED, text="Done.")
    assert (await services.aget_run(other.pk)).text == "Done."
    await close_connections()
