"""What the builds fetch is checked against what is written down here, and no option that does so gets lost."""

import re

from lab import paths

BACKEND = paths.ROOT / "backend"
SUMS = BACKEND / ".mvn" / "checksums" / "checksums.sha256"
POST_PROCESSOR = "-Daether.artifactResolver.postProcessor.trustedChecksums"


def test_maven_refuses_what_has_no_checksum_or_another_one() -> None:
    """Maven itself was seen to refuse both; it reads these options wherever it is called in the backend's folder."""
    options = (BACKEND / ".mvn" / "maven.config").read_text().split()
    assert {"--strict-checksums", f"{POST_PROCESSOR}=true", f"{POST_PROCESSOR}.failIfMissing=true"} <= set(options)
    assert not [option for option in options if "record" in option]
    dockerfile = (BACKEND / "Dockerfile").read_text()
    assert dockerfile.index("COPY .mvn .mvn") < dockerfile.index("mvn --batch-mode")


def test_the_checksums_are_of_artifacts_and_name_no_host() -> None:
    lines = SUMS.read_text().splitlines()
    assert all(re.fullmatch(r"[0-9a-f]{64}  [\w.+-]+(/[\w.+-]+)+\.(pom|jar)", line) for line in lines)
    names = [line.split()[1] for line in lines]
    assert len(set(names)) == len(names) > 100
    parent = r"<artifactId>spring-boot-starter-parent</artifactId>\s*<version>(.+?)</version>"
    version = re.search(parent, (BACKEND / "pom.xml").read_text())
    assert version is not None
    boot = "org/springframework/boot/spring-boot-starter-parent"
    assert f"{boot}/{version[1]}/spring-boot-starter-parent-{version[1]}.pom" in names, "run: make checksums"
