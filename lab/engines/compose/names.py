"""What the parts of a run are called and labelled in Docker."""

PROJECT = "connlab"
RUN_LABEL = "connlab.run"


def container_name(service: str) -> str:
    """Name a service's container; `docker exec` finds it so without asking Compose."""
    return f"{PROJECT}-{service}"
