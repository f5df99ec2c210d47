from pathlib import Path

import pytest

from lab.scenarios import sysctls


@pytest.fixture
def old_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("net/ipv4/tcp_tw_reuse", "net/ipv4/conf/default/rp_filter"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    monkeypatch.setattr(sysctls, "PROC_SYS", tmp_path)


@pytest.mark.usefixtures("old_kernel")
def test_a_sysctl_that_the_kernel_lacks_is_answered_with_the_nearest() -> None:
    assert sysctls.missing_sysctl("net.ipv4.tcp_tw_resue", "1") == (
        "this kernel has no sysctl 'net.ipv4.tcp_tw_resue'",
        "did you mean 'net.ipv4.tcp_tw_reuse'?",
    )


@pytest.mark.usefixtures("old_kernel")
def test_an_older_kernel_that_behaves_as_asked_needs_no_sysctl() -> None:
    assert sysctls.missing_sysctl("net.ipv4.tcp_syn_linear_timeouts", "0") is None
    assert sysctls.missing_sysctl("net.ipv4.tcp_syn_linear_timeouts", "4") is not None


@pytest.mark.usefixtures("old_kernel")
def test_a_role_s_interface_is_looked_up_as_the_kernel_s_default() -> None:
    assert sysctls.missing_sysctl("net.ipv4.conf.eth0.rp_filter", "1") is None


def test_what_the_model_computes_with_is_recorded_in_every_run() -> None:
    assert set(sysctls.IN_A_NEW_NAMESPACE) <= set(sysctls.RECORDED)
