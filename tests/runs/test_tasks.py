"""Celery's tasks: a run is executed once, whatever the broker does; and what is said without Celery."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from celery.exceptions import Retry
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo, FunctionModel

from mcp_client_app import services, tasks
from mcp_client_app.agents.loop import close_agents_loop
from mcp_client_app.conf import app_settings
from mcp_client_app.datatypes import RunStatus
from mcp_client_app.models import AgentConfig, AgentRun
from tests.agents.scripts import says, scripted
from tests.runs.conftest import NewRun, asked, fresh, give_up
from tests.stored import run_process

pytestmark = pytest.mark.django_db(transaction=True)


def greeter() -> Any:
    return scripted(says("Hello."))


def robbed() -> FunctionModel:
    """A model during whose answer another worker takes the run over."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        await sync_to_async(AgentRun.objects.update)(lease_owner="another")
        return says("Hello.")

    return FunctionModel(answer)


@pytest.fixture
def queued(new_run: NewRun, settings: Any, mcp_manager: Any) -> Any:
    """A run in the background that a worker can execute."""
    names = ("greeter", "robbed")
    settings.MCP_CLIENT_MODELS = {f"scripted:{name}": f"{__name__}.{name}" for name in names}
    AgentConfig.objects.update(model="scripted:greeter")
    run = new_run()
    services.submit(run)
    yield run
    close_agents_loop()


def test_a_task_executes_its_run(queued: AgentRun):
    tasks.run_agent(str(queued.pk))

    row = fresh(queued)
    assert (row.state, row.text, row.attempts) == (RunStatus.COMPLETED, "Hello.", 1)


@pytest.mark.parametrize("status", [status for status in RunStatus if status.is_final or status.is_paused])
def test_a_task_that_is_delivered_again_does_nothing(queued: AgentRun, status: RunStatus):
    services.claim(queued.pk, "a")
    if status.is_paused:
        asked(queued)
        services.pause(queued.pk, "a", status, messages=[])
    else:
        services.finish(queued.pk, "a", status)
    before = AgentRun.objects.values().get()

    tasks.run_agent(str(queued.pk))

    assert AgentRun.objects.values().get() == before


def test_the_task_of_a_run_that_is_gone_does_nothing(queued: AgentRun):
    AgentRun.objects.all().delete()

    tasks.run_agent(str(queued.pk))


def test_a_task_looks_again_when_the_lease_of_another_worker_is_over(queued: AgentRun):
    services.claim(queued.pk, "a")
    AgentRun.objects.update(lease_until=timezone.now() + timedelta(seconds=600))

    with pytest.raises(Retry) as caught:
        tasks.run_agent.apply((str(queued.pk),), throw=True)

    assert 600 <= int(str(caught.value.when)) <= 602
    assert fresh(queued).lease_owner == "a"
    # In the end it is left to whoever looks at it.
    tasks.run_agent.apply((str(queued.pk),), retries=tasks.RETRIES, throw=True)
    assert fresh(queued).state is RunStatus.RUNNING


def test_a_task_goes_on_with_a_run_whose_worker_is_gone(queued: AgentRun):
    services.claim(queued.pk, "a")
    give_up(queued)

    tasks.run_agent(str(queued.pk))

    assert (fresh(queued).state, fresh(queued).attempts) == (RunStatus.COMPLETED, 2)


def test_a_task_whose_run_is_taken_over_leaves_it_to_the_other_worker(queued: AgentRun):
    AgentConfig.objects.update(model="scripted:robbed")

    tasks.run_agent(str(queued.pk))

    row = fresh(queued)
    assert (row.state, row.lease_owner, row.text) == (RunStatus.RUNNING, "another", "")


def test_a_run_of_a_worker_without_the_library_for_agents_ends(queued: AgentRun):
    printed = run_process(
        f"""
from mcp_client_app import tasks
from mcp_client_app.exceptions import ConfigurationError
try:
    tasks.run_agent({str(queued.pk)!r})
except ConfigurationError as error:
    print(error)
""",
        before="import sys\nsys.modules['pydantic_ai'] = None\n",
    )

    row = fresh(queued)
    assert (row.state, row.code) == (RunStatus.FAILED, "configuration")
    assert (
        row.detail == printed.strip() == "Agents need pydantic-ai; install 'django-mcp-client-app[agents]'."
    )


def test_a_run_of_a_model_that_nobody_knows_ends(queued: AgentRun):
    AgentConfig.objects.update(model="nobody:knows")

    tasks.run_agent(str(queued.pk))

    row = fresh(queued)
    assert (row.state, row.code) == (RunStatus.FAILED, "configuration")
    assert "nobody" in row.detail


def test_tidying_up_is_a_task(new_run: NewRun):
    run, old = new_run(), new_run(owner="a")
    services.finish(old.pk, "a", RunStatus.COMPLETED)
    give_up(run)

    report = tasks.reap(older_than=0)

    assert report == {"runs": {str(run.pk): "failed"}, "approvals": 0, "deleted": 2}


def test_a_broker_that_is_away_is_told(db: None):
    printed = run_process(
        """
from celery import Celery
Celery("nowhere", broker="redis://127.0.0.1:1/0")
from mcp_client_app import tasks
from mcp_client_app.exceptions import BackendUnavailableError
try:
    tasks.submit_run("id")
except BackendUnavailableError as error:
    print(error)
"""
    )

    assert printed == "Celery's broker cannot be reached; try again later.\n"


def test_without_celery_the_module_says_what_is_missing(db: None):
    printed = run_process(
        """
from mcp_client_app import tasks
from mcp_client_app.exceptions import ConfigurationError
for use in (tasks.submit_run, tasks.run_agent, tasks.run_agent.delay, tasks.reap):
    try:
        use("id")
    except ConfigurationError as error:
        print(error.field, error)
""",
        before="import sys\nsys.modules['celery'] = sys.modules['kombu'] = None\n",
    )

    line = (
        "MCP_CLIENT_RUN_BACKEND MCP_CLIENT_RUN_BACKEND: Celery is not installed; "
        "install 'django-mcp-client-app[celery]'."
    )
    assert printed.splitlines() == [line] * 4


@pytest.mark.parametrize("value", ["threads", "", "no path"])
def test_a_backend_that_cannot_be_meant_is_refused(settings: Any, value: str):
    settings.MCP_CLIENT_RUN_BACKEND = value

    with pytest.raises(ImproperlyConfigured, match="MCP_CLIENT_RUN_BACKEND must be 'thread', 'celery'"):
        _ = app_settings.RUN_BACKEND
