"""The licence stands whole in the tree, and NOTICE names every file that is not the lab's own."""

import hashlib
import re
from pathlib import Path

import pytest

from lab import paths

# The digest of the text as the Apache Software Foundation publishes it.
APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"

VENDORED = sorted(file for file in paths.ROOT.glob("analysis/*/vendor/*") if file.is_file())


def test_the_licence_is_the_whole_text_as_published() -> None:
    assert hashlib.sha256((paths.ROOT / "LICENSE").read_bytes()).hexdigest() == APACHE_2_0


@pytest.mark.parametrize("file", VENDORED, ids=lambda file: file.name)
def test_notice_names_every_vendored_file(file: Path) -> None:
    assert str(file.relative_to(paths.ROOT)) in (paths.ROOT / "NOTICE").read_text()


def test_notice_repeats_the_notice_of_what_is_vendored() -> None:
    notice = (paths.ROOT / "NOTICE").read_text()
    for file in paths.ROOT.glob("analysis/*/vendor/*.NOTICE"):
        assert [line for line in file.read_text().splitlines() if line not in notice] == []


@pytest.mark.parametrize("dockerfile", sorted(paths.ROOT.glob("*/Dockerfile")), ids=lambda file: file.parent.name)
def test_a_role_s_image_says_under_which_licences_it_is(dockerfile: Path) -> None:
    [said] = re.findall(r'(?m)^LABEL org\.opencontainers\.image\.licenses="(.*)"$', dockerfile.read_text())
    links_k6 = dockerfile.parent.name == "k6"
    assert said == "AGPL-3.0-only" if links_k6 else said.startswith("Apache-2.0 AND ")
