"""The lab's own scenarios, as far as they can be judged without running them."""

from pathlib import Path

import pytest

from lab import paths
from lab.console import listing
from lab.outcomes import run_and_judge
from lab.scenarios import forecast
from lab.scenarios.places import slugs
from lab.scenarios.resolve import resolve
from lab.series import arms, matrices


@pytest.mark.parametrize("slug", slugs())
def test_a_scenario_resolves_with_its_arms_and_names_figures_that_they_have(slug: str) -> None:
    assert run_and_judge.resolve_checked(slug).scenario.predictions


@pytest.mark.parametrize("slug", slugs())
def test_each_of_its_presets_resolves(slug: str) -> None:
    for preset in resolve(slug).scenario.presets:
        resolved = resolve(slug, preset=preset)
        assert not resolved.scenario.arms or arms.plan_arms(resolved, []).cells


@pytest.mark.parametrize("slug", slugs())
def test_each_of_its_predictions_applies_to_settings_of_its_own(slug: str) -> None:
    applies: dict[str, bool] = {}
    for cell in arms.resolve_variants(resolve(slug)):
        for prediction in (stated.prediction for stated in cell.predictions):
            held = forecast.applies(prediction, cell) is True
            applies[prediction.id] = held or applies.get(prediction.id, False)
    assert [name for name, once in applies.items() if not once] == []


# What the advice on a scenario, and the exercises of its lesson, set; and the predictions that are then about nothing.
@pytest.mark.parametrize(
    ("place", "overrides", "kept_out"),
    [
        # A queue of two may overflow for a moment, though there are connections for all.
        ("accept-queue-overflow", "backend.max_connections=103", "queue overflows syns-per-failure syns-of-each"),
        # Places become free while users still try.
        ("accept-queue-overflow", "backend.keep_alive_timeout=5s", "overflows syns-per-failure syns-of-each causes"),
        ("accept-queue-overflow", "backend.max_connections=2; backend.accept_count=3; load.users=9", ""),
        ("accept-queue-four-users", "backend.max_connections=4", "causes"),
        ("accept-queue-healthy", "backend.threads_max=1; backend.threads_min_spare=1", "response unexplained"),
        ("abort-on-overflow/full-1", "backend.max_connections=23", "drops silence same-count"),
        ("abort-on-overflow/race-1", "backend.max_connections=60", "drops resets one-overflow-each"),
        (
            "gateway-pool-too-small",
            "gateway.max_idle_conns_per_host=600; gateway.max_idle_conns=600",
            "ports-used-once churn failed time-wait",
        ),
        ("gateway-pool-too-small", "gateway.disable_keep_alives=true", "ports-used-once time-wait closed-by-gateway"),
        ("gateway-pool-too-small", "kernel.gateway.net.ipv4.tcp_tw_reuse=1", "ports-used-once churn failed time-wait"),
        ("backend-restart/three-backends", "nginx.proxy_next_upstream_tries=1", "the-next-one"),
        (
            "backend-restart/one-backend",
            "backend.instances=2",
            "bad-gateway refused attempts as-long-as-nothing-listens",
        ),
        ("connection-per-request/kept", "nginx.keepalive_requests=30", "kept"),
        ("tw-recycle-gone/client-closes", "kernel.k6.net.ipv4.tcp_tw_reuse=1", "ports-held"),
        ("abort-on-overflow/race-1", "kernel.backend.net.ipv4.tcp_abort_on_overflow=0", "resets one-overflow-each"),
        ("haproxy-full-queue/fails-fast", "haproxy.timeout_connect=3500ms", "fails-fast a-try-is-a-connection"),
        ("haproxy-maxconn-queue/proxy", "haproxy.timeout_queue=2s", "served-in-turn"),
        ("haproxy-maxconn-queue/kernel", "haproxy.timeout_connect=900ms", "served kernel-overflows"),
        ("slow-clients/through-nginx", "nginx.client_header_timeout=3s", "all-served unseen"),
        ("gateway-pool-sized", "gateway.idle_conn_timeout=1s", "served one-each reused kept no-dial-failed"),
        ("haproxy-full-queue/retried", "load.handler_delay=4s", "retried"),
        ("proxy-hides-full-queue/fails-fast", "backend.instances=3", "fails-fast same-story-at-the-kernel"),
        ("nginx-backlog/small-backlog", "nginx.listen_backlog=300", "full waited-in-the-queue knocked-again"),
        ("one-port/one-port", 'kernel.k6.net.ipv4.ip_local_port_range="32768 60999"', "failed-at-once"),
        ("overflows-counted-back/five-syns", "load.connect_timeout=1s", "counted-back five overflows"),
        (
            "overflows-counted-back/five-syns",
            "backend.keep_alive_timeout=1s",
            "failed counted-back five overflows causes",
        ),
        (
            "connection-per-request-four-clients/fin-timeout-60",
            "load.keep_alive=true",
            "a-connection-each closed-by-nginx time-wait",
        ),
        ("gateway-pool-throughput/small-pool", "load.users=1", "churn"),
        ("keep-alive-paths/no-keep-alive", "load.keep_alive=true", "a-connection-each"),
        ("keep-alive-paths/direct", "backend.max_keep_alive_requests=100", "one-connection"),
        ("keep-alive-to-servers/haproxy-never", "haproxy.http_reuse=always", "a-connection-for-a-first-request reset"),
        (
            "nginx-backlog/small-backlog",
            "load.connect_timeout=900ms",
            "nobody-fails knocked-again dropped-and-sent-again",
        ),
        ("one-port/one-port", "load.closes_first=server", "one-each no-address failed-at-once time-wait"),
        ("one-port-reuse/never", "load.closes_first=server", "as-before same-gauge"),
        ("spike-upstream-keepalive/kept", "nginx.proxy_http_version=1.0", "servers-rid-of-time-wait"),
        (
            "stale-keep-alive/tomcat-first",
            "nginx.proxy_next_upstream=error timeout non_idempotent",
            "stale bad-gateway not-tried-again",
        ),
        (
            "threads-or-virtual-threads/virtual-threads",
            "backend.accept_count=1",
            "at-once all-accepted nobody-waits causes",
        ),
        ("who-closes-first/client-closes", "load.closes_first=server", "client-first waits-at-the-client"),
        ("overflows-counted-back/three-syns", "backend.max_connections=103", "counted-back three overflows"),
        (
            "somaxconn-caps-accept-count/capped",
            "backend.max_connections=60",
            "kernel-has-the-last-word less-than-asked queue-full overflows",
        ),
        (
            "somaxconn-caps-accept-count/as-asked",
            "backend.max_connections=60",
            "kernel-has-the-last-word queue-has-room",
        ),
        ("long-polling-at-scale/too-many", "load.ramp_half=500ms; load.ramp_full=500ms", "failed"),
        ("spike-through-nginx", "nginx.worker_connections=2408", "too-few-connections"),
        ("spike-through-nginx", "load.rate_per_second=100", "too-few-connections"),
        ("spike-through-nginx", "load.handler_delay=100ms", "two-for-each too-few-connections"),
        ("stale-keep-alive/tomcat-first", "nginx.upstream_keepalive_timeout=1s", "stale bad-gateway tomcat-closes"),
        ("syn-queue/no-cookies", "kernel.backend.net.ipv4.tcp_syncookies=1", "users-shut-out dropped-syns"),
        ("threads-or-virtual-threads/threads", "backend.threads_max=300", "first-wave all-busy"),
        ("threads-or-virtual-threads/threads-for-all", "load.users=301", "at-once nobody-waits"),
        ("throughput-alone/few", "backend.threads_max=20", "throughput"),
        ("time-wait-limit/limited", "load.calls=60", "flat the-rest"),
    ],
)
def test_what_an_advice_or_an_exercise_takes_the_ground_from_is_not_applicable(
    place: str, overrides: str, kept_out: str
) -> None:
    slug, _, arm = place.partition("/")
    settings = overrides.split("; ")
    cell = arms.resolve_arm(resolve(slug), settings, arm) if arm else resolve(slug, settings)
    stated = [one.prediction for one in cell.predictions]
    assert {one.id for one in stated if forecast.applies(one, cell) is False} == set(kept_out.split())
    assert all(forecast.applies(one, cell) is not None for one in stated)


def test_a_matrix_s_exercise_takes_the_ground_from_its_predictions(tmp_path: Path) -> None:
    """What the text of burst-places does: a handler of 300 ms, which is done before the last of 40 users comes."""
    text = (paths.SCENARIOS / "matrices" / "burst-places.yaml").read_text()
    file = tmp_path / "burst-300ms.yaml"
    file.write_text(text.replace("handler_delay: 1s", "handler_delay: 300ms"))
    for name, planned in matrices.plan_matrix(str(file)).cells.items():
        stated = {one.prediction.id: one.prediction for one in planned.resolved.predictions}
        applies = not name.endswith("users-40") or name.startswith("accept-count-20-max-connections-20-")
        assert forecast.applies(stated["failed"], planned.resolved) is applies, name
        assert forecast.applies(stated["served"], planned.resolved) is applies, name


def test_the_overflow_s_figures_are_those_of_the_published_experiment() -> None:
    known = forecast.known_before_run(
        resolve("accept-queue-overflow"),
        ("model.users_served", "model.users_failed", "model.syns_per_failed_dial", "model.listen_drops"),
    )
    assert list(known.values()) == [3, 100, 5, 500]


def test_the_overflow_s_predictions_follow_overrides() -> None:
    overrides = ["backend.max_connections=2", "backend.accept_count=3", "load.users=9"]
    known = forecast.known_before_run(
        resolve("accept-queue-overflow", overrides), ("model.users_served", "model.users_failed", "model.listen_drops")
    )
    assert list(known.values()) == [6, 3, 15]


def test_the_four_users_wait_for_one_another() -> None:
    known = forecast.known_before_run(
        resolve("accept-queue-four-users"), ("model.response_ms.list", "model.users_failed")
    )
    assert known == {"model.response_ms.list": [1000, 21_800, 42_600], "model.users_failed": 1}


@pytest.mark.parametrize("slug", slugs())
def test_the_load_s_length_is_estimated(slug: str) -> None:
    resolved = resolve(slug)
    least_s = forecast.minimum_load_s(resolved)
    # k6 alone knows how long a script takes.
    assert (0 < least_s < 300) != (resolved.scenario.own_load is not None)
    assert forecast.expected_load_s(resolved) in (None, least_s)


def test_where_the_model_is_silent_no_length_is_promised() -> None:
    assert forecast.expected_load_s(resolve("accept-queue-healthy")) == 2.02
    for slug in ("connection-per-request", "spike-through-nginx", "one-port", "slow-clients", "syn-queue"):
        assert forecast.expected_load_s(resolve(slug)) is None
        assert listing.summarize(resolve(slug))["load_s"] is None


def test_what_the_files_of_a_run_tell_is_not_known_before_it() -> None:
    names = ("model.failed_dials_syns.min", "model.failed_dials_syns.max", "model.syns_per_failed_dial")
    assert forecast.known_before_run(resolve("accept-queue-overflow"), names) == {"model.syns_per_failed_dial": 5}
