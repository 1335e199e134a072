"""Sites of a project's own, and classes of its own."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.test import RequestFactory
from django.urls import include, path, reverse

from mcp_client_app.admin import ServerConfigAdmin, ToolCallAdmin, register
from mcp_client_app.models import ServerConfig, ServerState, ToolCall, WorkerProcess
from tests.admin import pages

pytestmark = pytest.mark.django_db


class CarefulServerAdmin(ServerConfigAdmin):
    """What the documentation shows."""

    list_display = ("name", "state")
    patience = 2.0


own_site = admin.AdminSite(name="operations")
register(own_site, server_admin=CarefulServerAdmin)
urlpatterns = [path("admin/", admin.site.urls), path("operations/", own_site.urls), path("", include([]))]


def test_the_default_site_has_all_models():
    for model in (ServerConfig, ServerState, ToolCall, WorkerProcess):
        assert admin.site.is_registered(model)
    assert isinstance(admin.site.get_model_admin(ToolCall), ToolCallAdmin)


@pytest.mark.urls("tests.admin.test_sites")
def test_a_site_of_the_projects_own_shows_its_own_class_and_links_to_itself(admin_client):
    row = ServerConfig.objects.create(name="one", command="npx")
    assert isinstance(own_site.get_model_admin(ServerConfig), CarefulServerAdmin)
    base = reverse("operations:mcp_client_app_serverconfig_changelist")
    pages_of_site = [
        base,
        f"{base}import/",
        f"{base}{row.pk}/change/",
        f"{base}{row.pk}/offers/",
    ]
    for address in pages_of_site:
        page = pages.text(admin_client.get(address))
        assert not re.findall(r'(?:href|action)="/admin/', page), address
    response = admin_client.post(f"{base}{row.pk}/disconnect/")
    assert response.url == f"{base}{row.pk}/change/"


def test_registering_again_replaces():
    site = admin.AdminSite(name="again")
    register(site)
    register(site, server_admin=CarefulServerAdmin)
    assert isinstance(site.get_model_admin(ServerConfig), CarefulServerAdmin)


@pytest.mark.parametrize("page", ["changelist", "add", "import", "offers"])
def test_no_page_has_a_script_or_style_of_its_own_within(admin_client, page):
    row = ServerConfig.objects.create(name="one", command="npx", env={"A": "b"})
    html = pages.text(admin_client.get(pages.url(page, row if page == "offers" else None)))
    assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>", html) == []
    assert re.findall(r"<[^>]+\son[a-z]+=", html) == []
    ours = html.partition('id="content-main"')[2]
    assert re.findall(r"<style|\sstyle=", ours) == []


def test_the_admin_can_be_asked_without_a_registry():
    model_admin = ServerConfigAdmin(ServerConfig, admin.site)
    assert model_admin.has_connect_permission(_anonymous()) is False


def _anonymous():
    from django.contrib.auth.models import AnonymousUser

    request = RequestFactory().get("/")
    request.user = AnonymousUser()
    return request
