"""The CA of a run, and the certificates that it signs: for the lab's own TLS listeners, and for a user's proxy files.

`openssl` makes them, because every machine that trusts any CA has it: Debian's ca-certificates needs it. The CA's key
never leaves this process's temporary folder; a container gets the CA's certificate, its own certificate and its key.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Self

from lab.errors import LabError
from lab.scenarios.load_url import parse_address
from lab.scenarios.own_configuration import OwnConfiguration, find_configuration, pack_files
from lab.scenarios.resolved import ResolvedScenario
from lab.scenarios.topology import Topology

# What carries the packed files to a container; each entry point unpacks them into /tmp/connlab-tls.
VARIABLE = "CONNLAB_CERTIFICATES"
CA, CERTIFICATE, KEY = "ca.pem", "server.pem", "server.key"

OPENSSL = "openssl"
INSTALL_OPENSSL = "apt-get install openssl"

_DAYS = "7"
_TIMEOUT_S = 60
_KEYS: Mapping[str, tuple[str, ...]] = {
    "ecdsa": ("ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
    "rsa": ("rsa:2048",),
}
_LOOPBACK = ("localhost", "127.0.0.1")


class Authority:
    """A CA; as a context, it has a folder for its key and removes that at the end."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="connlab-ca-")
        self._home = Path(self._folder.name)
        self._issued = 0
        _openssl(
            *("req", "-x509", "-nodes", "-days", _DAYS, "-subj", "/CN=connlab", "-newkey", *_KEYS["ecdsa"]),
            *("-keyout", self._home / "ca.key", "-out", self._home / CA),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    @property
    def certificate(self) -> bytes:
        """Return the CA's certificate as PEM."""
        return (self._home / CA).read_bytes()

    def issue(self, names: Iterable[str], key: str = "ecdsa") -> tuple[bytes, bytes]:
        """Return a certificate for these names and addresses, and its key, as PEM."""
        self._issued += 1
        request, out, private, options = (
            self._home / f"{self._issued}.{end}" for end in ("csr", "pem", "key", "extensions")
        )
        listed = list(dict.fromkeys(names))
        alternatives = ",".join(f"{'DNS' if parse_address(name) is None else 'IP'}:{name}" for name in listed)
        options.write_text(f"subjectAltName={alternatives}\nextendedKeyUsage=serverAuth\n")
        # The subject is bounded to 64 characters; clients read the alternative names alone.
        _openssl(
            *("req", "-new", "-nodes", "-subj", f"/CN={listed[0][:64]}", "-newkey", *_KEYS[key]),
            *("-keyout", private, "-out", request),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-days", _DAYS, "-extfile", options, "-out", out),
            *("-CA", self._home / CA, "-CAkey", self._home / "ca.key", "-set_serial", str(self._issued)),
        )
        return out.read_bytes(), private.read_bytes()


def certificates_for(resolved: ResolvedScenario, topology: Topology) -> dict[str, str]:
    """Return what `VARIABLE` is for each instance that needs it; nothing, and no CA, if the path has no TLS.

    Raises:
        LabError: there is no `openssl`, or it fails.
    """
    wanted = {one: names for one in topology.all if (names := _files_wanted(resolved, topology, one)) is not None}
    if not wanted:
        return {}
    with Authority() as authority:
        return {instance: pack_certificates(authority, files) for instance, files in wanted.items()}


def pack_certificates(authority: Authority, files: Mapping[str, tuple[Iterable[str], str]]) -> str:
    """Return the packed files of one container: the CA's certificate, and each of these with its key beside it.

    Args:
        authority: what signs them.
        files: for each certificate's file, its names and the kind of its key.
    """
    packed = {CA: authority.certificate}
    for file, (names, key) in files.items():
        made, private = authority.issue(names, key)
        packed |= {file: made, KEY if file == CERTIFICATE else f"{file}.key": private}
    return pack_files(packed)


def made_for_configuration(
    certificates: Mapping[str, Iterable[str]], key: str = "ecdsa"
) -> dict[str, tuple[Iterable[str], str]]:
    """Return the certificates that a user's own configuration lacks, by their files, for `pack_certificates`."""
    return {PurePosixPath(path).name: (tuple(names) or _LOOPBACK[:1], key) for path, names in certificates.items()}


def settings_of_trial(own: OwnConfiguration) -> dict[str, str]:
    """Return the environment in which a program tests a configuration: a run makes other certificates."""
    settings = own.settings()
    if lacking := own.adaptation.certificates:
        with Authority() as authority:
            settings[VARIABLE] = pack_certificates(authority, made_for_configuration(lacking))
    return settings


def _files_wanted(
    resolved: ResolvedScenario, topology: Topology, instance: str
) -> dict[str, tuple[Iterable[str], str]] | None:
    """Return the certificates that an instance needs; empty where it needs the CA's alone, None for nothing."""
    role = topology.role_of(instance)
    if role in resolved.registry.services:
        return None
    if own := find_configuration(resolved, topology, role):
        lacking, kind = own.adaptation.certificates, resolved.scenario.configurations[role].tls_key
        return made_for_configuration(lacking, kind) if lacking else None
    declared = topology.roles[role]
    if declared.kind != "client" and declared.tls:
        second = topology.second_names.get(instance)
        names = [*topology.host_names(instance), *([second] if second else []), *_LOOPBACK]
        key = declared.listener.key
        return {CERTIFICATE: (names, str(resolved.values[declared.knob(key)]) if key else "ecdsa")}
    return {} if trusts_ca(resolved, topology, instance) else None


def trusts_ca(resolved: ResolvedScenario, topology: Topology, instance: str) -> bool:
    """Return whether an instance checks the certificates of the role behind it by the run's CA.

    The certificate of a service, or of a user's own configuration, may be its own, signed by nobody here.
    """
    following = topology.following(topology.role_of(instance))
    if following is None or not topology.roles[following].tls:
        return False
    return following not in resolved.registry.services and following not in resolved.scenario.configurations


def _openssl(*arguments: str | Path) -> None:
    program = shutil.which(OPENSSL)
    if program is None:
        raise LabError("the command 'openssl' is not installed; TLS needs it", hint=INSTALL_OPENSSL)
    command = [program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise LabError(f"'openssl {arguments[0]} …' failed: {done.stderr.strip()}")
