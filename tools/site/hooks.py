"""What MkDocs does beside mkdocs.yml: takes the documents from where they lie, with all that they link to."""

from __future__ import annotations

import posixpath
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
# What is made, and no file of the repository.
REPORT = "docs/example/report.html"
_LINK = re.compile(r"(?<=\]\()(?!https?:|mailto:|#)([^)\s#]+)")


def _listed() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if (ROOT / name).is_file()]


def _documents(listed: list[str]) -> list[str]:
    left_out = ("tests/", "lab/", "tools/")
    return [name for name in listed if name.endswith(".md") and not name.startswith(left_out)]


def _targets(document: str) -> Iterator[str]:
    for link in _LINK.findall((ROOT / document).read_text()):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(document), link))


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the navigation's lists of lessons and decisions."""
    listed = _documents(_listed())
    made = {
        "Lessons": [{name.split("/")[1]: name} for name in listed if re.fullmatch(r"scenarios/[^/]+/README\.md", name)],
        "Decisions": ["docs/adr/index.md", *(name for name in listed if name.startswith("docs/adr/"))],
    }

    def fill(entries: list[Any]) -> None:
        for entry in entries:
            for title, below in entry.items() if isinstance(entry, dict) else ():
                if title in made:
                    entry[title] = made[title]
                elif isinstance(below, list):
                    fill(below)

    fill(config.nav or [])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents, what they link to, and a list of the files of each folder that they link to."""
    listed = _listed()
    documents = _documents(listed)
    wanted = dict.fromkeys([*documents, REPORT])
    for target in {target: None for document in documents for target in _targets(document)}:
        below = [name for name in listed if name.startswith(f"{target}/") and "/." not in name]
        wanted.update(dict.fromkeys(below or [target]))
        if below and f"{target}/README.md" not in below:
            lines = [f"- [{name.removeprefix(f'{target}/')}]({name.removeprefix(f'{target}/')})" for name in below]
            text = "\n".join([f"# {target}", "", *lines, ""])
            files.append(File.generated(config, f"{target}/index.md", content=text))
    for name in wanted:
        if (ROOT / name).is_file():
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links to folders lead to their list of files, and what lessons fold away be read as Markdown."""
    document = page.file.src_uri

    def led(link: re.Match[str]) -> str:
        folder = posixpath.normpath(posixpath.join(posixpath.dirname(document), link[1]))
        if not (ROOT / folder).is_dir():
            return link[1]
        return f"{link[1].rstrip('/')}/{'README' if (ROOT / folder / 'README.md').is_file() else 'index'}.md"

    return _LINK.sub(led, markdown).replace("<details>", "<details markdown>")
