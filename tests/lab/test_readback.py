"""A setting that did not take stops the run, and the message names knob, asked and found."""

import json
import re
from contextlib import AbstractContextManager, nullcontext

import pytest

from lab.errors import BadInput, LabError
from lab.runs.readback import read_back
from lab.runs.run_context import RunContext
from tests.lab.engine import InMemoryDocker
from tests.lab.support import MINIMAL, THROUGH_NGINX, Open, yaml_with
from tests.lab.test_readback_parser import PRINTED

SYSCTLS = {"net.core.somaxconn": "4096", "net.ipv4.tcp_syn_retries": "6"}
SETTINGS = {
    "acceptCount": 1,
    "maxConnections": 8192,
    "maxThreads": 200,
    "minSpareThreads": 10,
    "keepAliveTimeoutMs": 20_000,
    "maxKeepAliveRequests": 100,
    "connectionTimeoutMs": 20_000,
    "virtualThreads": False,
    "tls": False,
    "http2": False,
}

GATEWAY_SETTINGS = {
    "maxIdleConns": 100,
    "maxIdleConnsPerHost": 2,
    "maxConnsPerHost": 0,
    "idleConnTimeoutMs": 90_000,
    "disableKeepAlives": False,
    "dialTimeoutMs": 30_000,
    "responseHeaderTimeoutMs": 0,
    "serverIdleTimeoutMs": 0,
    "serverReadHeaderTimeoutMs": 0,
    "tls": False,
    "tlsHandshakeTimeoutMs": 10_000,
    "tlsClientSessionCache": 0,
    "http2": False,
    "http2MaxConcurrentStreams": 250,
    "upstreamHttp2": False,
}
# With the knobs' defaults.
NGINX_CONF = yaml_with(
    PRINTED,
    {
        "worker_processes auto": "worker_processes 1",
        "multi_accept on": "multi_accept off",
        "proxy_http_version 1.1": "proxy_http_version 1.0",
        'upgrade; "" "";': 'upgrade; "" "close";',
        "max_fails=3 fail_timeout=15s": "max_fails=1 fail_timeout=10s",
        " reuseport": "",
    },
)


def namespace(
    *,
    limit: int = 1,
    sysctls: dict[str, str] | None = None,
    address: str = "0.0.0.0",  # noqa: S104 # as the kernel says it
) -> str:
    listeners = [{"address": address, "port": 8080, "depth": 0, "limit": limit, "drops": 0}]
    return json.dumps(
        {"sysctls": sysctls or SYSCTLS, "listeners": listeners, "addresses": ["172.18.0.2"], "kernel": "6.18"}
    )


@pytest.fixture
def context(opened: Open) -> RunContext:
    return opened("kernel.k6.net.ipv4.tcp_syn_retries=6")


def back(context: RunContext) -> None:
    read_back(context.engine, context.resolved, context.topology, context.manifest, context.places)


SHOWN = {"oldest": "TLSv1.2", "newest": "TLSv1.3", "tickets": True, "http2": False}
TLS_SETTINGS = {
    "tls": True,
    "tlsMin": "TLSv1.2",
    "tlsMax": "TLSv1.3",
    "tlsSessionTickets": True,
    "tlsSessionCache": 20_480,
}


@pytest.mark.parametrize(
    ("settings", "shown", "message"),
    [
        ({}, {}, None),
        ({}, {"tickets": None}, None),
        ({}, {"newest": "TLSv1.2"}, "backend.tls_max on backend-1: asked TLSv1.3, found TLSv1.2"),
        ({}, {"http2": True}, "backend.http2 on backend-1: asked false, found true"),
        ({"tlsMax": "TLSv1.2"}, {}, "backend.tls_max on backend-1: asked TLSv1.3, found TLSv1.2"),
    ],
)
def test_handshakes_and_the_program_s_own_word_must_both_show_the_tls_that_was_asked(
    opened: Open,
    fake_docker: InMemoryDocker,
    settings: dict[str, object],
    shown: dict[str, object],
    message: str | None,
) -> None:
    context = opened("backend.tls=true")
    fake_docker.says("* inspect *", namespace())
    fake_docker.says("* http *", json.dumps({"settings": {**SETTINGS, **TLS_SETTINGS, **settings}}))
    fake_docker.says("* tls --oldest TLSv1.2 127.0.0.1:8080", json.dumps({**SHOWN, **shown}))
    if message is None:
        back(context)
        return
    with pytest.raises(LabError, match="settings did not take") as stopped:
        back(context)
    assert message in str(stopped.value)


def test_a_sysctl_that_a_prediction_names_is_read_back_too(opened: Open, fake_docker: InMemoryDocker) -> None:
    text = yaml_with(
        MINIMAL, {"client.requests.ok == load.users": "sysctl.backend.exists.net.ipv4.tcp_tw_recycle == 0"}
    )
    context = opened(text=text)
    fake_docker.says("* inspect *", namespace())
    fake_docker.says("* http *", json.dumps({"settings": SETTINGS}))
    back(context)
    asked = [call for call in fake_docker.calls if " inspect " in call]
    assert asked
    assert all("--sysctl net.ipv4.tcp_tw_recycle" in call for call in asked)


def test_what_took_is_recorded(context: RunContext, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("* inspect *", namespace())
    fake_docker.says("* http *", json.dumps({"settings": SETTINGS}))
    back(context)
    record = context.manifest
    assert record.knobs["backend.accept_count"].read_back == 1
    assert record.knobs["kernel.k6.net.ipv4.tcp_syn_retries"].read_back == "6"
    assert record.sysctls["k6-1"] == SYSCTLS
    assert record.listeners["backend-1"][0].limit == 1
    assert record.addresses["backend-1"] == ["172.18.0.2"]


@pytest.mark.parametrize(
    ("inspected", "settings", "message"),
    [
        (
            namespace(limit=50),
            SETTINGS,
            "backend.accept_count on backend-1: the listen queue's limit should be 1, and is 50",
        ),
        (namespace(), {**SETTINGS, "acceptCount": 100}, "backend.accept_count on backend-1: asked 1, found 100"),
        (
            namespace(),
            {**SETTINGS, "keepAliveTimeoutMs": 60_000},
            "keep_alive_timeout on backend-1: asked 20s, found 1m",
        ),
        (
            namespace(sysctls={**SYSCTLS, "net.ipv4.tcp_syn_retries": "5"}),
            SETTINGS,
            "kernel.k6.net.ipv4.tcp_syn_retries on k6-1: asked 6, found 5",
        ),
        (
            namespace(sysctls={**SYSCTLS, "net.ipv4.tcp_syn_retries": ""}),
            SETTINGS,
            "kernel.k6.net.ipv4.tcp_syn_retries on k6-1: asked 6, found nothing in it",
        ),
    ],
)
def test_what_did_not_take_stops_the_run(
    context: RunContext, fake_docker: InMemoryDocker, inspected: str, settings: dict[str, object], message: str
) -> None:
    fake_docker.says("* inspect *", inspected)
    fake_docker.says("* http *", json.dumps({"settings": settings}))
    with pytest.raises(LabError, match="settings did not take") as stopped:
        back(context)
    assert message in str(stopped.value)


OWN = """\
schema: 1
title: A shop
question: Who is served?
path: [k6, shop]
services:
  shop:
    image: acme/shop:1
    knobs:
      queue: {env: SHOP_QUEUE, default: 1, limit: backlog}
      fixed: {default: 3, limit: connections}
knobs:
  load: {workload: users, users: 3, path: /}
predictions:
  - {id: served, description: All are served., expression: client.users.served == 3}
"""


def test_a_service_that_listens_for_itself_alone_is_refused_with_its_place(
    opened: Open, fake_docker: InMemoryDocker
) -> None:
    context = opened(text=OWN)
    fake_docker.says("* inspect *", namespace(address="127.0.0.1"))
    with pytest.raises(BadInput, match=r"shop-1 listens on 127\.0\.0\.1 port 8080 alone, .*; let it listen on 0"):
        back(context)


def test_a_service_whose_backlog_did_not_take_is_said_with_its_variable(
    opened: Open, fake_docker: InMemoryDocker
) -> None:
    context = opened(text=OWN)
    fake_docker.says("* inspect *", namespace(limit=50))
    with pytest.raises(LabError, match=r"be 1, and is 50 \(\S+:9; does the program read SHOP_QUEUE\?\)"):
        back(context)


@pytest.mark.parametrize(
    ("limit", "ending"),
    [
        (7, nullcontext()),
        (
            50,
            pytest.raises(LabError, match="accept_count on backend-1: the listen queue's limit should be 7, and is 50"),
        ),
    ],
)
def test_somaxconn_cuts_the_backlog(
    opened: Open, fake_docker: InMemoryDocker, limit: int, ending: AbstractContextManager[object]
) -> None:
    capped = opened("backend.accept_count=50")
    fake_docker.says("* inspect *", namespace(limit=limit, sysctls={**SYSCTLS, "net.core.somaxconn": "7"}))
    fake_docker.says("* http *", json.dumps({"settings": {**SETTINGS, "acceptCount": 50}}))
    with ending:
        back(capped)


@pytest.fixture
def proxied(opened: Open, fake_docker: InMemoryDocker) -> Open:
    """Read a run through nginx back; nginx printed this configuration, and none if it is None."""

    def go(*overrides: str, printed: str | None = NGINX_CONF) -> RunContext:
        through = opened(*overrides, text=THROUGH_NGINX)
        fake_docker.says("*-nginx collector inspect *", namespace(limit=511))
        fake_docker.says("* inspect *", namespace())
        fake_docker.says("* http *", json.dumps({"settings": SETTINGS}))
        if printed is not None:
            through.places.role("nginx", "nginx.conf").write_text(printed)
        back(through)
        return through

    return go


def test_what_took_at_nginx_is_recorded(proxied: Open) -> None:
    record = proxied().manifest
    found = {knob: record.knobs[f"nginx.{knob}"].read_back for knob in ("worker_connections", "proxy_connection")}
    assert found == {"worker_connections": 512, "proxy_connection": "close"}
    assert (record.knobs["nginx.listen_backlog"].read_back, record.listeners["nginx"][0].limit) == (511, 511)
    assert record.knobs["nginx.addresses"].read_back == 1


@pytest.mark.parametrize(
    ("overrides", "printed", "message"),
    [
        ([], NGINX_CONF.replace("512", "64"), "nginx.worker_connections on nginx: asked 512, found 64"),
        (["nginx.worker_connections=64"], NGINX_CONF, "nginx.worker_connections on nginx: asked 64, found 512"),
        (["nginx.addresses=2"], NGINX_CONF, "nginx.addresses on nginx: asked 2, found 1"),
        (
            ["nginx.listen_backlog=77"],
            NGINX_CONF.replace("backlog=511", "backlog=77"),
            "nginx.listen_backlog on nginx: the listen queue's limit should be 77, and is 511",
        ),
        (
            [],
            NGINX_CONF.replace("multi_accept off;\n", ""),
            "nginx does not report all of its settings: nginx.multi_accept missing",
        ),
        ([], None, "nginx left no settings to read back: "),
    ],
)
def test_what_did_not_take_at_nginx_stops_the_run(
    proxied: Open, overrides: list[str], printed: str | None, message: str
) -> None:
    with pytest.raises(LabError, match=re.escape(message)):
        proxied(*overrides, printed=printed)


def test_virtual_threads_have_no_pool_to_read_back(opened: Open, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("* inspect *", namespace())
    without_pool = {**SETTINGS, "virtualThreads": True, "maxThreads": None, "minSpareThreads": None}
    fake_docker.says("* http *", json.dumps({"settings": without_pool}))
    virtual = opened("backend.virtual_threads=true")
    back(virtual)
    assert virtual.manifest.knobs["backend.virtual_threads"].read_back is True
    assert virtual.manifest.knobs["backend.threads_max"].read_back is None


def test_a_server_that_tells_nothing_stops_the_run(context: RunContext, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("* inspect *", namespace())
    fake_docker.says("* http *", '{"settings": {}}')
    with pytest.raises(LabError, match=r"backend-1 does not report all of its settings: backend\.accept_count"):
        back(context)


def test_the_gateway_tells_its_settings_too(opened: Open, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("* inspect *", namespace())
    fake_docker.says("* http */actuator/*", json.dumps({"settings": SETTINGS}))
    fake_docker.says("* http */gateway", json.dumps({"settings": GATEWAY_SETTINGS}))
    text = yaml_with(MINIMAL, {"[k6, backend]": "[k6, gateway, backend]"})
    proxied = opened("gateway.max_idle_conns_per_host=200", text=text)
    with pytest.raises(LabError) as stopped:
        back(proxied)
    assert "gateway.max_idle_conns_per_host on gateway: asked 200, found 2" in str(stopped.value)
    assert "max_idle_conns on" not in str(stopped.value)
    assert proxied.manifest.knobs["gateway.idle_conn_timeout"].read_back == 90_000


def test_a_garbled_answer_stops_the_run(context: RunContext, fake_docker: InMemoryDocker) -> None:
    fake_docker.says("* inspect *", "Segmentation fault")
    with pytest.raises(LabError, match="did not answer with JSON: 'Segmentation fault'"):
        back(context)
