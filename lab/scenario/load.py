"""How long a load takes, by its knobs."""

from __future__ import annotations

from lab.scenario.knobs import Declared

# In slow_clients and half_open, the users come so long after the others (k6/lib/users.js).
_OTHERS_FIRST_MS = 1_000


def own_ms(load: Declared) -> int:
    """Give what a user's calls take, with the pauses between them, if it waits for nothing else."""
    taken: int = load.calls * load.handler_delay + (load.calls - 1) * load.think_time
    return taken


def takes_ms(load: Declared, user_ms: int) -> int:
    """Give how long the load takes, if its last user takes so long."""
    users_ms = (load.users - 1) * load.arrival_gap + user_ms
    taken: dict[str, int] = {
        "users": users_ms,
        "tcp": users_ms,
        "slow_clients": _OTHERS_FIRST_MS + max(users_ms, load.header_duration),
        "half_open": max(_OTHERS_FIRST_MS + users_ms, load.half_open_duration),
        "spike": load.duration + load.handler_delay,
        "long_polling": load.ramp_half + load.ramp_full + load.ramp_hold + load.ramp_down,
        "sequential": load.requests * load.handler_delay,
        # k6 knows how long a script takes (own_script).
        "script": 0,
    }
    return taken[load.workload]
