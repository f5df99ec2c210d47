"""examples/servers: each server is in the matrix, and declares what limits it."""

from lab import paths
from lab.series import matrices

SERVERS = paths.ROOT / "examples" / "servers"


def test_the_matrix_has_each_server_with_its_own_backlog() -> None:
    planned = matrices.plan_matrix(str(SERVERS / "who-queues-where.yaml"))
    limits = {
        cell.resolved.slug: cell.resolved.roles["web"].limiting_knobs().get("backlog")
        for cell in planned.cells.values()
    }
    # Go's is the kernel's.
    others = (file.parent.name for file in SERVERS.glob("*/scenario.yaml"))
    assert limits == {**dict.fromkeys(others, "web.backlog"), "go": None}
