"""Runs in the admin: looked at, cancelled, never changed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from mcp_client_app import services
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentRun, Approval
from tests.admin import pages
from tests.admin.conftest import MakeStaff
from tests.runs.conftest import NewRun, asked, fresh, give_up, prepared
from tests.runs.conftest import given as given  # a fixture
from tests.runs.conftest import new_run as new_run  # a fixture

pytestmark = pytest.mark.django_db

LIST = "/admin/mcp_client_app/agentrun/"


def shown(client: Client, **query: str) -> set[str]:
    return {run.prompt for run in client.get(LIST, query).context["cl"].result_list}


def page_of(client: Client, run: AgentRun) -> str:
    return pages.text(client.get(f"{LIST}{run.pk}/change/"))


def test_runs_are_filtered_and_searched(admin_client: Client, new_run: NewRun):
    first, second = new_run("Sell <b>tea</b>!"), new_run("Buy tea!", owner="a", correlation_id="c-77")
    services.finish(second.pk, "a", RunStatus.FAILED, code="model_error")
    old = new_run("Old")
    AgentRun.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=400))

    assert (
        shown(admin_client, status__exact="failed") == shown(admin_client, code="model_error") == {"Buy tea!"}
    )
    assert shown(admin_client, q="tea") == {"Sell <b>tea</b>!", "Buy tea!"}
    assert shown(admin_client, q="c-77") == shown(admin_client, q=str(second.pk)) == {"Buy tea!"}
    assert shown(admin_client, q="no id") == set()
    assert shown(admin_client, created_at__year=str(timezone.now().year)) == {"Sell <b>tea</b>!", "Buy tea!"}
    page = pages.text(admin_client.get(LIST))
    assert '<span class="mcp-state mcp-bad">failed (model_error)</span>' in page
    assert '<span class="mcp-state mcp-calm">queued</span>' in page
    assert "Sell &lt;b&gt;tea&lt;/b&gt;!" in page
    assert str(first.pk) in page


def test_what_an_agent_was_told_and_where_its_model_is_is_not_shown_with_its_runs(
    admin_client: Client, new_run: NewRun
):
    told = [
        {"kind": "request", "instructions": "planted-4711"},
        {"kind": "response", "provider_url": "https://planted-4711.example/v1", "run_id": "shown"},
    ]
    run = new_run("Buy tea!", owner="web-1")
    services.checkpoint(run.pk, "web-1", messages=told)

    page = page_of(admin_client, run)

    assert "&quot;run_id&quot;: &quot;shown&quot;" in page
    assert "planted-4711" not in page
    assert admin_client.get(LIST, {"messages__0__instructions__startswith": "planted"}).status_code == 400


@pytest.mark.parametrize("zones", [True, False])
def test_a_run_shows_what_happened(admin_client: Client, new_run: NewRun, settings: Any, zones: bool):
    settings.USE_TZ = zones
    run = new_run("Sell <b>tea</b>!", owner="web-1", deps={"tenant": 3})
    services.append_events(run.pk, [("tool.call", {"name": "shop__refund", "note": "<i>"})])
    services.RunJournal(run.pk, "web-1", "c1").begin(prepared(amount=3), is_safe=False)
    services.checkpoint(run.pk, "web-1", messages=[{"kind": "request"}], usage={"requests": 2})
    approval = asked(run)

    page = page_of(admin_client, run)

    assert "Sell &lt;b&gt;tea&lt;/b&gt;!" in page
    assert "2 " in page
    assert (
        " tool.call {&quot;name&quot;:&quot;shop__refund&quot;,&quot;note&quot;:&quot;&lt;i&gt;&quot;}"
        in page
    )
    assert '<span class="mcp-state mcp-busy">started</span>' in page
    assert "&quot;amount&quot;: 3" in page
    assert "planted-secret" not in page
    assert "&quot;tenant&quot;: 3" in page
    assert "&quot;kind&quot;: &quot;request&quot;" in page
    assert "web-1" in page
    assert f"/admin/mcp_client_app/approval/{approval.pk}/change/" in page


def test_times_are_short(admin_client: Client, new_run: NewRun):
    run, now = new_run("Sell tea!"), timezone.now()
    begun = {"started_at": now, "seconds_used": 3.14159265, "status": RunStatus.COMPLETED}
    AgentRun.objects.filter(pk=run.pk).update(finished_at=now + timedelta(seconds=4.2), **begun)

    page = page_of(admin_client, run)
    assert "4.2 s" in page
    assert "3.1 s" in page
    assert "3.14" not in page

    AgentRun.objects.filter(pk=run.pk).update(finished_at=now + timedelta(minutes=2))
    assert "2\xa0minutes" in page_of(admin_client, run)


def test_the_latest_of_many_events_are_shown(
    admin_client: Client, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mcp_client_app.admin.runs.LATEST", 3)
    run = new_run()
    services.append_events(run.pk, [("round", {"number": number, "long": "x" * 1000}) for number in range(5)])

    page = page_of(admin_client, run)

    assert [f"round {{&quot;number&quot;:{number}" in page for number in range(5)] == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert "x" * 200 in page
    assert "x" * 301 not in page


def test_runs_are_never_changed_nor_deleted(admin_client: Client, new_run: NewRun):
    run = new_run()
    assert admin_client.get(f"{LIST}add/").status_code == 403
    assert admin_client.post(f"{LIST}{run.pk}/change/", {"prompt": "other"}).status_code == 403
    assert admin_client.post(f"{LIST}{run.pk}/delete/", {"post": "yes"}).status_code == 403
    admin_client.post(LIST, {"action": "delete_selected", "_selected_action": [run.pk], "post": "yes"})
    assert fresh(run).prompt == "Help!"


def test_runs_need_their_own_permissions(staff: MakeStaff, new_run: NewRun):
    run = new_run()
    stranger = staff("view_agentconfig", "change_agentrun")
    viewer = staff("view_agentrun", name="viewer")
    operator = staff("view_agentrun", "change_agentrun", name="operator")
    cancel = f"{LIST}{run.pk}/cancel/"

    assert viewer.get(LIST).status_code == 200
    assert cancel not in page_of(viewer, run)
    assert viewer.post(cancel).status_code == 403
    assert "cancel_runs" not in pages.text(viewer.get(LIST))
    assert stranger.post(cancel).status_code == 403
    assert fresh(run).state is RunStatus.QUEUED
    assert cancel in page_of(operator, run)
    assert "cancel_runs" in pages.text(operator.get(LIST))
    assert Client().post(cancel).status_code == 302  # to the login
    assert staff(name="nobody").get(LIST).status_code == 403


def test_a_run_is_cancelled_at_the_press_of_a_button(staff: MakeStaff, new_run: NewRun):
    client = staff("view_agentrun", "change_agentrun")
    queued, running = new_run(), new_run(owner="a")

    assert client.get(f"{LIST}{queued.pk}/cancel/").status_code == 405
    answer = client.post(f"{LIST}{queued.pk}/cancel/")
    assert answer.headers["Location"] == f"{LIST}{queued.pk}/change/"
    assert pages.messages(answer) == [f"support {queued.pk}: cancelled."]
    assert pages.messages(client.post(f"{LIST}{running.pk}/cancel/")) == [
        f"support {running.pk}: its worker is told to cancel it."
    ]
    assert (fresh(queued).state, fresh(running).state) == (RunStatus.CANCELLED, RunStatus.RUNNING)
    assert "being cancelled" in page_of(client, running)
    assert f"{queued.pk}/cancel/" not in page_of(client, queued)
    assert client.post(f"{LIST}not-an-id/cancel/").status_code == 404


def test_several_runs_are_cancelled_from_the_list(admin_client: Client, new_run: NewRun):
    queued, over = new_run(), new_run(owner="a")
    services.finish(over.pk, "a", RunStatus.COMPLETED)

    answer = admin_client.post(
        LIST, {"action": "cancel_runs", "_selected_action": [str(queued.pk), str(over.pk)]}
    )

    assert set(pages.messages(answer)) == {
        f"support {queued.pk}: cancelled.",
        f"support {over.pk}: The run is over (completed).",
    }
    assert (fresh(queued).state, fresh(over).state) == (RunStatus.CANCELLED, RunStatus.COMPLETED)
    bad = admin_client.post(LIST, {"action": "cancel_runs", "_selected_action": ["no-id"]})
    assert bad.status_code == 400


@pytest.mark.parametrize("look", ["list", "page"])
def test_who_looks_at_an_abandoned_run_sees_its_end(admin_client: Client, new_run: NewRun, look: str):
    run = new_run(owner="a")
    give_up(run)

    page = pages.text(admin_client.get(LIST)) if look == "list" else page_of(admin_client, run)

    assert "failed (abandoned)" in page


def test_the_number_of_queries_does_not_grow_with_the_runs(admin_client: Client, new_run: NewRun):
    new_run()
    admin_client.get(LIST)
    with CaptureQueriesContext(connection) as few:
        pages.text(admin_client.get(LIST))
    for _ in range(20):
        new_run()
    with CaptureQueriesContext(connection) as many:
        pages.text(admin_client.get(LIST))

    assert len(many) == len(few)


def test_a_site_that_shows_no_approvals_links_to_none(
    rf: Any, admin_user: Any, new_run: NewRun, monkeypatch: pytest.MonkeyPatch
):
    run = new_run(owner="a")
    asked(run)
    monkeypatch.setattr(admin.site, "is_registered", lambda model: model is not Approval)

    [model_admin] = [each for model, each in admin.site._registry.items() if model is AgentRun]

    assert model_admin.approval_links(run) == "refund (pending)"  # type: ignore[attr-defined]
