"""Three servers of examples/servers: who takes how many, and where the others wait.

The three show the most of the ten. uvicorn takes everybody. Of gunicorn's users some wait in the server for a
thread, some in the accept queue, and the others get no connection. PHP-FPM's full queue stands behind nginx, which
answers with 504.
Their images are made of Debian's packages, in 40 s together where nothing is cached.
"""

from collections.abc import Callable

import pytest

from .conftest import ROOT, Run
from .test_scenarios import assert_reproduced

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("server", ["uvicorn", "gunicorn-gthread", "php-fpm"])
def test_a_server_takes_as_many_as_its_own_limits_say(run: Callable[..., Run], server: str) -> None:
    assert_reproduced(run(str(ROOT / "examples" / "servers" / server)))
