"""Every knob of the lab: name, default, unit, range and meaning. The defaults stand here and nowhere else.

A knob's name is `<group>.<field>`; inside the lab a duration is a whole number of milliseconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from lab.scenario.knob_types import (
    Duration,
    HttpVersion,
    RequestLimit,
    RetryConditions,
    Seconds,
    SysctlValue,
    UrlPath,
    Workers,
)

Role = Literal["k6", "nginx", "gateway", "backend"]
ROLES: tuple[Role, ...] = ("k6", "nginx", "gateway", "backend")
# One of these may stand between the client and the backends, and sees both hops.
PROXIES: tuple[Role, ...] = ("nginx", "gateway")
Workload = Literal["users", "spike", "long_polling", "sequential", "tcp", "slow_clients", "half_open"]

# In slow_clients and half_open, the users come so long after the others (k6/lib/users.js).
OTHERS_FIRST_MS = 1_000

KnobValue = int | bool | str


@dataclass(frozen=True)
class For:
    """Marks a knob of `load` that only some workloads read."""

    workloads: tuple[Workload, ...]


@dataclass(frozen=True)
class OfTheLab:
    """Marks a knob that shapes the topology: the lab itself reads it, and no program that runs there."""


_OfTheLab = OfTheLab()
_Users = For(("users", "tcp", "slow_clients", "half_open"))
_Spike = For(("spike",))
_LongPolling = For(("long_polling",))
_Sequential = For(("sequential",))
_Tcp = For(("tcp",))
_SlowClients = For(("slow_clients",))
_HalfOpen = For(("half_open",))
_Kept = For(("users", "spike", "long_polling", "sequential", "slow_clients", "half_open"))
_Delay = For(("users", "spike", "sequential", "tcp", "slow_clients", "half_open"))


class Group(BaseModel):
    """A group of knobs: unknown names are refused, and no value is silently turned into another type."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Backend(Group):
    """The Spring Boot service on Tomcat."""

    instances: Annotated[
        int,
        Field(ge=1, le=3, description="How many backends there are; without a proxy, all are targets of the load"),
        _OfTheLab,
    ] = 1
    accept_count: Annotated[
        int,
        Field(ge=1, le=1_000_000, description="Tomcat's acceptCount: the backlog it asks of listen(2); connections"),
    ] = 100
    max_connections: Annotated[
        int, Field(ge=1, le=1_000_000, description="Tomcat's maxConnections: connections that it takes at once")
    ] = 8192
    threads_max: Annotated[int, Field(ge=1, le=10_000, description="Tomcat's maxThreads: requests served at once")] = (
        200
    )
    threads_min_spare: Annotated[
        int, Field(ge=1, le=10_000, description="Tomcat's minSpareThreads: threads kept running")
    ] = 10
    keep_alive_timeout: Annotated[
        Duration, Field(ge=1, description="Tomcat's keepAliveTimeout: how long an idle connection is kept")
    ] = 20_000
    max_keep_alive_requests: Annotated[
        RequestLimit,
        Field(
            description="Tomcat's maxKeepAliveRequests: requests on one connection; 1 = no keep-alive, -1 = no limit",
        ),
    ] = 100
    connection_timeout: Annotated[
        Duration, Field(ge=1, description="Tomcat's connectionTimeout: how long it waits for a request's first line")
    ] = 20_000
    virtual_threads: Annotated[bool, Field(description="One virtual thread for each request instead of the pool")] = (
        False
    )
    heap_mb: Annotated[int, Field(ge=64, le=32_000, description="The JVM's heap, fixed (-Xms = -Xmx); MiB")] = 256
    admission_per_second: Annotated[
        int, Field(ge=1, le=1_000_000, description="Waiting room: users admitted in each second")
    ] = 50
    polling_period: Annotated[
        Duration, Field(ge=10, description="Waiting room: how long a user waits before asking again")
    ] = 5_000
    token_timeout: Annotated[
        Duration, Field(ge=10, description="Waiting room: a token that is not asked about for so long is abandoned")
    ] = 30_000
    max_tokens: Annotated[
        int, Field(ge=1, le=10_000_000, description="Waiting room: tokens it keeps; further users get 503")
    ] = 100_000


class Nginx(Group):
    """The reverse proxy; the defaults are nginx 1.26's own."""

    addresses: Annotated[
        int,
        Field(ge=1, le=2, description="Addresses under which it is reached; all are targets of the load"),
        _OfTheLab,
    ] = 1
    worker_processes: Annotated[Workers, Field(description="Worker processes, or 'auto' for one on each core")] = "1"
    worker_connections: Annotated[
        int, Field(ge=16, le=1_000_000, description="Connections of one worker; a proxied request takes two")
    ] = 512
    keepalive_timeout: Annotated[
        Duration, Field(ge=0, description="How long an idle client connection is kept; 0s closes after each answer")
    ] = 75_000
    keepalive_requests: Annotated[int, Field(ge=1, le=999_999_999, description="Requests on one client connection")] = (
        1000
    )
    listen_backlog: Annotated[
        int, Field(ge=1, le=1_000_000, description="The backlog nginx asks of listen(2); connections")
    ] = 511
    upstream_keepalive: Annotated[
        int, Field(ge=0, le=1_000_000, description="Idle connections to the backends that one worker keeps; 0 = none")
    ] = 0
    upstream_keepalive_timeout: Annotated[
        Duration, Field(ge=1, description="How long an idle connection to a backend is kept")
    ] = 60_000
    upstream_keepalive_requests: Annotated[
        int, Field(ge=1, le=999_999_999, description="Requests on one connection to a backend")
    ] = 1000
    proxy_http_version: Annotated[
        HttpVersion,
        Field(
            description="HTTP version towards the backends; "
            "1.0 keeps connections only where proxy_connection is keep-alive"
        ),
    ] = "1.0"
    proxy_connection: Annotated[
        Literal["close", "keep-alive", ""],
        Field(description="The Connection header towards the backends; empty = none is sent"),
    ] = "close"
    proxy_connect_timeout: Annotated[Duration, Field(ge=1, description="Connect time-out towards the backends")] = (
        60_000
    )
    proxy_read_timeout: Annotated[
        Duration, Field(ge=1, description="Longest wait between two reads of a backend's answer")
    ] = 60_000
    proxy_send_timeout: Annotated[
        Duration, Field(ge=1, description="Longest wait between two writes of a request to a backend")
    ] = 60_000
    proxy_next_upstream: Annotated[
        RetryConditions,
        Field(description="When a request goes on to the next backend: nginx's conditions, separated by spaces"),
    ] = "error timeout"
    proxy_next_upstream_tries: Annotated[
        int, Field(ge=0, le=100, description="Backends tried for one request; 0 = as many as there are")
    ] = 0
    max_fails: Annotated[
        int,
        Field(
            ge=0, le=1000, description="A worker's failed tries that leave one of several backends out; 0 = none does"
        ),
    ] = 1
    fail_timeout: Annotated[
        Seconds, Field(ge=1000, description="The time in which they must fall, and for which it is left out")
    ] = 10_000
    client_header_timeout: Annotated[Duration, Field(ge=1, description="Longest wait for a request's header")] = 60_000
    client_body_timeout: Annotated[
        Duration, Field(ge=1, description="Longest wait between two reads of a request's body")
    ] = 60_000
    send_timeout: Annotated[Duration, Field(ge=1, description="Longest wait between two writes to a client")] = 60_000
    reset_timedout_connection: Annotated[bool, Field(description="Close timed-out client connections with RST")] = False
    multi_accept: Annotated[bool, Field(description="Accept all waiting connections at each event")] = False
    reuseport: Annotated[bool, Field(description="A listening socket of its own for each worker")] = False


class Gateway(Group):
    """The reverse proxy on Go's net/http; the defaults are Go's own."""

    max_idle_conns: Annotated[
        int,
        Field(ge=0, le=1_000_000, description="Transport.MaxIdleConns: idle connections to all backends; 0 = no limit"),
    ] = 100
    max_idle_conns_per_host: Annotated[
        int,
        Field(ge=1, le=1_000_000, description="Transport.MaxIdleConnsPerHost: idle connections to one backend"),
    ] = 2
    max_conns_per_host: Annotated[
        int,
        Field(
            ge=0,
            le=1_000_000,
            description="Transport.MaxConnsPerHost: connections to one backend, further requests wait; 0 = no limit",
        ),
    ] = 0
    idle_conn_timeout: Annotated[
        Duration,
        Field(ge=0, description="Transport.IdleConnTimeout: how long an idle one is kept; 0s = no limit"),
    ] = 90_000
    disable_keep_alives: Annotated[
        bool, Field(description="Transport.DisableKeepAlives: a connection for each request instead of the pool")
    ] = False
    dial_timeout: Annotated[
        Duration, Field(ge=0, description="Dialer.Timeout: connect time-out towards the backends; 0s = the kernel's")
    ] = 30_000
    response_header_timeout: Annotated[
        Duration,
        Field(ge=0, description="Transport.ResponseHeaderTimeout: longest wait for an answer's header; 0s = no limit"),
    ] = 0
    server_idle_timeout: Annotated[
        Duration, Field(ge=0, description="Server.IdleTimeout: how long an idle client is kept; 0s = no limit")
    ] = 0


class Load(Group):
    """What k6 does, and to what."""

    workload: Annotated[Workload, Field(description="Which workload of k6/workloads runs")] = "users"
    instances: Annotated[
        int,
        Field(ge=1, le=8, description="k6 instances, each with an address of its own, sharing one workload"),
        _OfTheLab,
    ] = 1
    connect_timeout: Annotated[Duration, Field(ge=1, description="How long a client waits for a connection")] = 30_000
    request_timeout: Annotated[
        Duration, Field(ge=1, description="How long a client waits for an answer, connecting included")
    ] = 60_000
    keep_alive: Annotated[bool, Field(description="Keep connections; false = a new one for each request"), _Kept] = True
    max_duration: Annotated[
        Duration, Field(ge=1000, description="The workload is ended after this time at the latest")
    ] = 600_000
    dashboard: Annotated[
        bool, Field(description="Keep k6's own HTML report, too; it takes some of the rate that k6 can reach")
    ] = False
    method: Annotated[
        Literal["GET", "POST"],
        Field(description="How; POST, with an empty body, is what no client or proxy may send a second time unasked"),
        _Delay,
    ] = "GET"
    path: Annotated[UrlPath, Field(description="What is asked for"), _Delay] = "/api/delay"
    handler_delay: Annotated[
        Duration, Field(ge=0, le=600_000, description="How long the backend's handler takes"), _Delay
    ] = 0
    response_bytes: Annotated[
        int, Field(ge=0, le=10_485_760, description="The size of the answer's body; bytes"), _Delay
    ] = 0
    users: Annotated[
        int,
        Field(ge=1, le=100_000, description="Users, over all instances"),
        For(("users", "tcp", "slow_clients", "half_open", "long_polling")),
    ] = 1
    arrival_gap: Annotated[
        Duration, Field(ge=0, description="Each user arrives this long after the last; 0s = all at once"), _Users
    ] = 0
    calls: Annotated[int, Field(ge=1, le=1_000_000, description="Calls of each user, one after the other"), _Users] = 1
    think_time: Annotated[Duration, Field(ge=0, description="A user's pause between two calls"), _Users] = 0
    closes_first: Annotated[
        Literal["client", "server"],
        Field(description="Who closes a connection first, once its one request is answered"),
        _Tcp,
    ] = "client"
    slow_users: Annotated[
        int, Field(ge=1, le=10_000, description="Clients beside the users that take long over a header"), _SlowClients
    ] = 10
    header_interval: Annotated[
        Duration,
        Field(ge=1, description="How long after one line of its header such a client sends the next"),
        _SlowClients,
    ] = 1_000
    header_duration: Annotated[
        Duration, Field(ge=1, description="How long it takes from the first line to the last"), _SlowClients
    ] = 10_000
    half_open: Annotated[
        int,
        Field(ge=1, le=1_000, description="Connections beside the users whose handshake is never completed"),
        _HalfOpen,
    ] = 10
    half_open_duration: Annotated[
        Duration, Field(ge=1, description="How long they are held, from the load's begin"), _HalfOpen
    ] = 10_000
    rate_per_second: Annotated[
        int, Field(ge=1, le=1_000_000, description="Requests begun in each second, over all instances"), _Spike
    ] = 100
    duration: Annotated[Duration, Field(ge=1000, description="How long the spike lasts"), _Spike] = 1_000
    max_users: Annotated[
        int, Field(ge=1, le=100_000, description="Requests under way at once; k6 drops what exceeds it"), _Spike
    ] = 1000
    ramp_half: Annotated[
        Duration, Field(ge=0, description="Time in which the first half of the users arrive"), _LongPolling
    ] = 5_000
    ramp_full: Annotated[Duration, Field(ge=0, description="Time in which the other half arrive"), _LongPolling] = (
        20_000
    )
    ramp_hold: Annotated[
        Duration, Field(ge=0, description="Time for which all stay before they leave"), _LongPolling
    ] = 0
    ramp_down: Annotated[Duration, Field(ge=0, description="Time in which the users leave"), _LongPolling] = 5_000
    rejoin: Annotated[
        bool,
        Field(description="An admitted user queues again; false = it stays, holding its connection"),
        _LongPolling,
    ] = False
    requests: Annotated[int, Field(ge=1, le=10_000_000, description="Requests, one at a time"), _Sequential] = 1000

    @property
    def own_ms(self) -> int:
        """What a user's calls take, with the pauses between them, if it waits for nothing else."""
        return self.calls * self.handler_delay + (self.calls - 1) * self.think_time

    def takes_ms(self, user_ms: int) -> int:
        """How long the load takes, if its last user takes so long."""
        users_ms = (self.users - 1) * self.arrival_gap + user_ms
        return {
            "users": users_ms,
            "tcp": users_ms,
            "slow_clients": OTHERS_FIRST_MS + max(users_ms, self.header_duration),
            "half_open": max(OTHERS_FIRST_MS + users_ms, self.half_open_duration),
            "spike": self.duration + self.handler_delay,
            "long_polling": self.ramps_ms,
            "sequential": self.requests * self.handler_delay,
        }[self.workload]

    @property
    def ramps_ms(self) -> int:
        """How long the users of long_polling come, stay and leave."""
        return self.ramp_half + self.ramp_full + self.ramp_hold + self.ramp_down


class Capture(Group):
    """Packet captures: each hop once, at its server's end (a proxy sees both of its hops)."""

    mode: Annotated[
        Literal["headers", "handshakes", "off"],
        Field(description="headers = 128 bytes of each packet; handshakes = SYN, FIN and RST only"),
    ] = "headers"
    client: Annotated[
        Literal["off", "headers", "handshakes"], Field(description="The same at the client's end, besides")
    ] = "off"
    max_mb: Annotated[int, Field(ge=1, le=100_000, description="A capture ends at this size; MiB")] = 256


class Sampler(Group):
    """The collectors' samplers."""

    rate_hz: Annotated[int, Field(ge=1, le=100, description="Samples of the kernel's counters in each second")] = 10


class Knobs(Group):
    """All knobs, by group."""

    backend: Backend = Backend()
    nginx: Nginx = Nginx()
    gateway: Gateway = Gateway()
    load: Load = Load()
    capture: Capture = Capture()
    sampler: Sampler = Sampler()
    kernel: Annotated[
        dict[Role, dict[str, SysctlValue]],
        Field(description="Sysctls of a role's network namespace: role, then the sysctl's name (net.…)"),
    ] = Field(default_factory=dict)
