"""The fixtures of the lab's own tests."""

from tests.lab import conftest

_nobody_looks_seldom = conftest._nobody_looks_seldom  # noqa: SLF001 # every test of the lab has it
_samplers_are_awaited_by_nobody = conftest._samplers_are_awaited_by_nobody  # noqa: SLF001 # as above
_own_scenarios = conftest._own_scenarios  # noqa: SLF001 # as above
effective, elsewhere, write_scenario = conftest.effective, conftest.elsewhere, conftest.write_scenario
remembered = conftest.remembered
