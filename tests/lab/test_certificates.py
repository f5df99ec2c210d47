"""The CA of a run: whom it signs for, and what each container gets of it."""

import base64
import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from lab.engines.container_settings import role_environment
from lab.errors import BadInput
from lab.scenarios.certificates import Authority, certificates_for
from lab.scenarios.topology import topology_of
from tests.lab.support import MINIMAL, THROUGH_NGINX, Make, resolving


def files_of(packed: str) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed)), mode="r:gz") as archive:
        return {one.name: archive.extractfile(one).read() for one in archive.getmembers()}  # type: ignore[union-attr]


def openssl(*arguments: str | Path) -> str:
    return subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(("key", "kind"), [("ecdsa", "id-ecPublicKey"), ("rsa", "rsaEncryption")])
def test_a_certificate_is_for_its_names_and_by_the_run_s_ca(tmp_path: Path, key: str, kind: str) -> None:
    with Authority() as authority:
        (tmp_path / "ca.pem").write_bytes(authority.certificate)
        (tmp_path / "leaf.pem").write_bytes(authority.issue(["nginx", "10.0.0.7"], key)[0])
    said = openssl("x509", "-in", tmp_path / "leaf.pem", "-noout", "-text")

    assert "DNS:nginx, IP Address:10.0.0.7" in said
    assert f"Public Key Algorithm: {kind}" in said
    assert "OK" in openssl("verify", "-CAfile", tmp_path / "ca.pem", "-verify_hostname", "nginx", tmp_path / "leaf.pem")


def test_a_path_without_tls_has_no_ca(effective: Make) -> None:
    resolved = effective()

    assert certificates_for(resolved, topology_of(resolved)) == {}


def test_each_container_gets_what_it_needs_and_the_ca_s_key_goes_nowhere(effective: Make) -> None:
    resolved = effective("nginx.tls=true", text=THROUGH_NGINX)
    topology = topology_of(resolved)
    made = certificates_for(resolved, topology)

    assert {instance: set(files_of(packed)) for instance, packed in made.items()} == {
        "k6-1": {"ca.pem"},
        "nginx": {"ca.pem", "server.pem", "server.key"},
    }
    assert b"PRIVATE" not in files_of(made["k6-1"])["ca.pem"]
    client = role_environment(resolved, topology, "k6-1", made)
    assert client["CONNLAB_TARGETS"] == "https://nginx:8080"
    assert "K6_INSECURE_SKIP_TLS_VERIFY" not in client


def test_a_user_s_file_gets_a_certificate_with_the_key_that_the_scenario_says(tmp_path: Path) -> None:
    home = tmp_path / "shop"
    home.mkdir()
    (home / "nginx.conf").write_text(
        "events { }\nhttp { server { listen 443 ssl; ssl_certificate a.pem; ssl_certificate_key a.key;"
        " location / { proxy_pass http://app:3000; } } }\n"
    )
    own = "path: [k6, nginx, backend]\nnginx: {config: ./nginx.conf, tls_key: rsa}"
    found = resolving(home, MINIMAL.replace("path: [k6, backend]", own))()
    (tmp_path / "a.pem").write_bytes(files_of(certificates_for(found, topology_of(found))["nginx"])["a.pem"])
    assert "rsaEncryption" in openssl("x509", "-in", tmp_path / "a.pem", "-noout", "-text")


def test_versions_of_tls_that_exclude_each_other_are_refused(effective: Make) -> None:
    with pytest.raises(BadInput, match=r"nginx.tls_min \(TLSv1.3\) is newer than nginx.tls_max \(TLSv1.2\)"):
        effective("nginx.tls=true", "nginx.tls_min=TLSv1.3", "nginx.tls_max=TLSv1.2", text=THROUGH_NGINX)


@pytest.mark.parametrize("proxy", ["nginx", "haproxy", "gateway"])
def test_a_proxy_trusts_the_backends_behind_it_by_their_name(effective: Make, proxy: str) -> None:
    text = THROUGH_NGINX.replace("nginx", proxy)
    resolved = effective("backend.tls=true", "backend.instances=2", text=text)
    topology = topology_of(resolved)
    made = certificates_for(resolved, topology)

    assert {instance: set(files_of(packed)) for instance, packed in made.items()} == {
        proxy: {"ca.pem"},
        "backend-1": {"ca.pem", "server.pem", "server.key"},
        "backend-2": {"ca.pem", "server.pem", "server.key"},
    }
    assert role_environment(resolved, topology, proxy, made)["CONNLAB_UPSTREAM_TLS"] == "backend"


def test_http2_of_clients_needs_tls(effective: Make) -> None:
    with pytest.raises(BadInput, match=r"nginx\.http2 is set, but the clients' connections have no TLS"):
        effective("nginx.http2=true", text=THROUGH_NGINX)
    effective("nginx.http2=true", "nginx.tls=true", text=THROUGH_NGINX)


@pytest.mark.parametrize("knob", ["haproxy.server_http2", "gateway.upstream_http2"])
def test_http2_to_servers_needs_servers_that_take_it(effective: Make, knob: str) -> None:
    text = THROUGH_NGINX.replace("nginx", knob.partition(".")[0])
    with pytest.raises(BadInput, match="is set, and the backend does not take HTTP/2"):
        effective(f"{knob}=true", text=text)
    effective(f"{knob}=true", "backend.http2=true", text=text)


def test_a_workload_that_speaks_no_tls_is_refused(effective: Make) -> None:
    with pytest.raises(BadInput, match="the workload tcp speaks plain HTTP only, and nginx takes TLS"):
        effective("nginx.tls=true", "load.workload=tcp", text=THROUGH_NGINX)


def test_resumption_without_tls_is_refused(effective: Make) -> None:
    with pytest.raises(BadInput, match=r"load\.tls_resumption is set, but the clients' connections have no TLS"):
        effective("load.tls_resumption=true")
