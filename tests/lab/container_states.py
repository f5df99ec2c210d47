"""What Docker says of containers: the answer of `docker inspect`, as the lab asks it, and events."""

import json

# When a container began that was made and never ran.
NEVER = "0001-01-01T00:00:00Z"


def state(service: str, *, error: str = "", running: bool = False, code: int = 0, **more: object) -> str:
    began = NEVER if error else "2026-01-31T12:00:00.5Z"
    content = {"Running": running, "ExitCode": code, "Error": error, "StartedAt": began, "OOMKilled": False, **more}
    return f"/connlab-run-{service} {json.dumps(content)}\n"


def event(action: str, **attributes: str) -> str:
    return json.dumps({"Action": action, "Actor": {"Attributes": attributes}})
