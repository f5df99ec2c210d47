"""The documents keep up with the tree: their links lead somewhere."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    document
    for pattern in ("*.md", "*/*.md", "docs/adr/*.md", "scenarios/*/*.md")
    for document in ROOT.glob(pattern)
    if not document.is_relative_to(ROOT / "results") and not document.relative_to(ROOT).parts[0].startswith(".")
)
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(ROOT)))
def test_its_links_lead_somewhere(document: Path) -> None:
    links = {link for link in LINK.findall(document.read_text()) if "://" not in link}
    assert sorted(link for link in links if not (document.parent / link).exists()) == []
