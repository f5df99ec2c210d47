"""The pages: who may see them, and what each shows.

Whoever opens a page needs the key that the terminal shows, for other users of the machine reach 127.0.0.1 too. What
starts something needs a token of the form besides, and comes from these pages. Reports are foreign content: they stand
in a frame without an origin, which can leave this server neither by itself nor by a click; there the lab's own scripts
run, and no others. A browser gives the frame no cookie when it goes from one report to the next, so it has a key of its
own in its address, with which nothing but files below results/ can be read.
"""

import os
import secrets
import traceback
from collections.abc import Callable
from dataclasses import dataclass, fields
from hmac import compare_digest
from pathlib import Path
from typing import Any, BinaryIO, Self
from urllib.parse import quote

from flask import Flask, Response, abort, jsonify, redirect, request, send_from_directory
from markupsafe import Markup
from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.wrappers import Response as AnyResponse
from werkzeug.wsgi import wrap_file

from analysis import formatting
from analysis.reports import index, rendering
from formats.safe_files import names_below, open_below
from lab import paths, terminal
from lab.errors import BadInput, LabError
from lab.lessons import exercises
from lab.lessons.drill import evidence, incident
from lab.lessons.drill.faults import CAUSES, LEVELS, PLACES, Drill
from lab.reading import markdown
from lab.scenarios import places
from lab.scenarios.catalogue import load_catalogue
from lab.serve import commands
from lab.serve.commands import Started
from lab.serve.live_run import RunAtWork

_HERE = Path(__file__).parent
_PAGES = Path(rendering.__file__).parent
_DOCUMENTS = {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE", "NOTICE"}
_FOLDERS = {"docs", "scenarios", "examples"}
_TEXTS = {"", ".csv", ".json", ".jsonl", ".log", ".md", ".txt", ".yaml", ".yml"}
_PAGE = ".html"
_IMAGES = {".gif": "image/gif", ".png": "image/png", ".svg": "image/svg+xml"}
_OWN = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; frame-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_FOREIGN = (
    "sandbox{scripts}; default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'self'"
)
# Without scripts a sandbox takes from a page what would lead its reader elsewhere after a while, too.
_ALONE = _FOREIGN.format(scripts="")
_FRAMED = f"{_FOREIGN.format(scripts=' allow-scripts')}; script-src "
_FRAMES = "/framed/<key>/<path:path>"
_RUNS_SHOWN = 10
_FORM_BYTES_MAX = 64 << 10
# Has a page's policy, which names its scripts.
_HEAD_BYTES = 8 << 10


@dataclass(frozen=True)
class Keys:
    """The keys that this server asks for.

    Attributes:
        entry: of a browser, once in the address and then as a cookie.
        form: of whatever starts something.
        frame: of a frame that shows a file below results/, in its address.
    """

    entry: str
    form: str
    frame: str

    @classmethod
    def made(cls) -> Self:
        """Draw them."""
        return cls(*(secrets.token_urlsafe() for _ in fields(cls)))


def make_app(keys: Keys, started: Started) -> Flask:
    """Make the application."""
    app = Flask("connlab", static_folder=None)
    # Any other name that leads here is of somebody who wants to read with the user's browser.
    app.config |= {"TRUSTED_HOSTS": ["127.0.0.1", "localhost"], "MAX_CONTENT_LENGTH": _FORM_BYTES_MAX}
    shown = _Shown(keys, started)
    app.before_request(lambda: _admit(keys))
    app.after_request(_guarded)
    app.register_error_handler(HTTPException, shown.failed)
    app.register_error_handler(Exception, shown.broken)
    app.register_error_handler(BadInput, shown.refused)
    app.register_error_handler(LabError, shown.refused)
    routes: dict[str, Callable[..., Any]] = {
        "/": shown.home,
        "/live": shown.live,
        "/live.json": shown.live_figures,
        "/drill": shown.drills,
        "/drill/<level>/<seed>": shown.drill,
        "/pages/<path:path>": shown.document,
        "/results/<path:path>": shown.result,
        _FRAMES: framed,
        "/favicon.ico": lambda: Response(status=204),
        "/static/<name>": static,
    }
    for rule, view in routes.items():
        app.add_url_rule(rule, view_func=view, endpoint=rule, methods=["GET"])
    app.add_url_rule("/start", view_func=shown.start, methods=["POST"])
    return app


def _cookie() -> str:
    return f"connlab-{request.host.rpartition(':')[2]}"


def _admit(keys: Keys) -> AnyResponse | None:
    """Let in who has the key; the address loses it, so that no projector shows it."""
    if request.path.startswith("/static/") or request.path == "/favicon.ico":
        return None
    if request.endpoint == _FRAMES:
        if not compare_digest((request.view_args or {})["key"].encode(), keys.frame.encode()):
            abort(403, "This frame is of an earlier server. Load its page again.")
        return None
    given = request.args.get("key")
    if given is not None and request.method == "GET" and compare_digest(given.encode(), keys.entry.encode()):
        answer = redirect(request.path, 303)
        answer.set_cookie(_cookie(), keys.entry, httponly=True, samesite="Lax")
        return answer
    if not compare_digest(request.cookies.get(_cookie(), "").encode(), keys.entry.encode()):
        abort(403, "Open the address that 'connlab serve' printed in its terminal: it has the key.")
    if request.method == "POST":
        origin = request.headers.get("Origin")
        if origin is not None and origin != request.host_url.rstrip("/"):
            abort(403, "This form comes from another page.")
        if not compare_digest(request.form.get("token", "").encode(), keys.form.encode()):
            abort(403, "This form is of an earlier server. Load its page again.")
    return None


def _guarded(answer: Response) -> Response:
    headers = {
        "Content-Security-Policy": _OWN,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "same-origin",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Cache-Control": "no-store",
    }
    for name, value in headers.items():
        answer.headers.setdefault(name, value)
    return answer


def static(name: str) -> Response:
    """Return a file of the lab's own."""
    return send_from_directory(
        *{
            "echarts.js": (_PAGES / "vendor", "echarts.min.js"),
            "page.css": (_PAGES / "static", "page.css"),
            "page.js": (_PAGES / "static", "page.js"),
        }.get(name, (_HERE / "static", name))
    )


def framed(key: str, path: str) -> AnyResponse:
    """Return a file below results/ to a frame; as a page of its own it has the frame around it."""
    del key  # `_admit` has looked at it
    if request.headers.get("Sec-Fetch-Dest") != "iframe":
        return redirect(f"/results/{quote(path)}", 303)
    return _file(paths.RESULTS, path, _FRAMED + " ".join(rendering.script_hashes()))


def _file(root: Path, path: str, policy: str) -> Response:
    suffix = Path(path).suffix
    file = _opened(root, path)
    answer = Response(wrap_file(request.environ, file), direct_passthrough=True)
    answer.call_on_close(file.close)
    answer.headers["Content-Security-Policy"] = policy
    # A host name that is looked up is a message to its name server.
    answer.headers["X-DNS-Prefetch-Control"] = "off"
    if suffix == _PAGE:
        answer.mimetype = "text/html"
    elif suffix in _IMAGES:
        answer.mimetype = _IMAGES[suffix]
    elif suffix in _TEXTS:
        answer.mimetype = "text/plain"
    else:
        answer.mimetype = "application/octet-stream"
        answer.headers["Content-Disposition"] = "attachment"
    return answer


def _opened(root: Path, path: str) -> BinaryIO:
    try:
        return open_below(root, path)
    except OSError:
        raise NotFound("There is no such file here. Links are not followed.") from None


class _Shown:
    """The pages of the lab's own."""

    def __init__(self, keys: Keys, started: Started) -> None:
        self._keys = keys
        self._started = started
        self._at_work = RunAtWork()
        self._templates = rendering.make_environment(_HERE / "templates", {"number": formatting.format_value})

    def home(self) -> str:
        """Return lessons, the newest runs, comparisons."""
        runs = [one for one in index.newest_runs(paths.RESULTS, _RUNS_SHOWN) if not one.scenario.startswith("drill-")]
        comparisons = index.list_comparisons(paths.RESULTS)
        return self._page("home", runs=runs, catalogue=load_catalogue(), comparisons=comparisons)

    def live(self) -> str:
        """Return the run at work, and the command that was started last."""
        return self._page("live")

    def live_figures(self) -> Response:
        """Return the figures of the run at work and of that command as JSON, for the page's script."""
        command = {
            "shown": self._started.shown,
            "at_work": self._started.at_work,
            "code": self._started.code,
            "lines": list(self._started.lines),
        }
        return jsonify({"run": self._at_work.look(), "command": command if self._started.shown else None})

    def drills(self) -> AnyResponse | str:
        """Return the page where a drill is chosen, or drawn."""
        if "level" not in request.args:
            return self._page("drills", levels=LEVELS)
        seed = request.args.get("seed") or str(secrets.randbelow(10_000))
        number, level = commands.parse_drill(seed, request.args["level"])
        return redirect(f"/drill/{level}/{number}", 303)

    def drill(self, level: str, seed: str) -> str:
        """Return a drill: its evidence, what more costs, the answer, and what came of it."""
        drill = incident.draw_drill(*commands.parse_drill(seed, level))
        state = incident.load_state(drill)
        if state is None:
            return self._page("drill", drill=drill, state=None)
        run = evidence.SeenRun(paths.RESULTS / state.run, drill.path)
        asked = {name: piece for name, piece in evidence.MORE.items() if name in state.asked}
        results = [
            "\n".join(
                incident.format_result(drill, state, incident.judge(drill, state, each), paths.RESULTS / each.run)
            )
            for each in state.answers
        ]
        return self._page(
            "drill",
            drill=drill,
            state=state,
            evidence="\n".join(evidence.format_pieces(run, {**evidence.GIVEN, **asked})),
            more={name: piece for name, piece in evidence.MORE.items() if name not in state.asked},
            causes=CAUSES,
            places=PLACES,
            results=results if incident.is_solved(drill, state) else results and [_unsolved(drill, state)],
            reports=[f"/results/{each}/report.html" for each in (state.run, *(one.run for one in state.answers))]
            if incident.is_solved(drill, state)
            else [],
        )

    def result(self, path: str) -> Response | str:
        """Return a file below results/, as foreign content: a page stands in a frame."""
        if Path(path).suffix != _PAGE:
            return _file(paths.RESULTS, path, _ALONE)
        with _opened(paths.RESULTS, path) as file:
            of_this_lab = rendering.is_of_this_lab(file.read(_HEAD_BYTES).decode(errors="replace"))
        source = f"/framed/{self._keys.frame}/{quote(path)}"
        return self._page("framed", path=path, source=source, of_this_lab=of_this_lab)

    def document(self, path: str) -> Response | str:
        """Return a document, a picture of it, or the list of a folder."""
        first = path.partition("/")[0]
        if first not in _FOLDERS and path not in _DOCUMENTS:
            abort(404, f"Only documents are shown here; {path} lies in the lab's folder.")
        if not path.endswith(".md"):
            try:
                names = names_below(paths.ROOT, path.rstrip("/"))
            except OSError:
                return _file(paths.ROOT, path, _ALONE)
            return self._page("folder", path=path.rstrip("/"), names=names)
        with _opened(paths.ROOT, path) as file:
            text = file.read().decode(errors="replace")
        slug = Path(path).parent.name if path.startswith("scenarios/") and path.endswith("/README.md") else None
        lesson = slug if slug in places.slugs() else None
        return self._page(
            "document",
            title=markdown.title(text),
            text=markdown.html(text),
            lesson=lesson,
            exercises=_exercises(lesson) if lesson else [],
        )

    def start(self) -> AnyResponse:
        """Start the command that a form asks for."""
        arguments = commands.parse_form(request.form)
        self._started.start(arguments)
        return redirect("/live", 303)

    def refused(self, error: BadInput | LabError) -> tuple[str, int]:
        """Return why something cannot be done."""
        return self._page("failed", what="Not done", why=str(error)), 400

    def failed(self, error: HTTPException) -> tuple[str, int]:
        """Return why there is no page."""
        return self._page("failed", what=error.name, why=error.description or ""), error.code or 500

    def broken(self, error: Exception) -> tuple[str, int]:
        """Return that the lab itself is wrong; the terminal has where, if it is asked for."""
        why = f"internal error: {type(error).__name__}: {error}"
        debug = os.environ.get("CONNLAB_DEBUG") == "1"
        terminal.problem("".join(traceback.format_exception(error)) if debug else f"connlab: {why}")
        return self._page("failed", what="Internal error", why=f"{why}\nhint: CONNLAB_DEBUG=1 shows where"), 500

    def _page(self, name: str, **context: Any) -> str:  # noqa: ANN401 # whatever a template names
        token = Markup(f'<input type="hidden" name="token" value="{self._keys.form}">')  # noqa: S704 # drawn here
        return self._templates.get_template(f"{name}.html").render(context, token=token)


def _unsolved(drill: Drill, state: incident.DrillState) -> str:
    """Return what came of the last answer, without what the drill was: who has not found it goes on."""
    return "\n".join(incident.format_score(incident.judge(drill, state, state.answers[-1])))


def _exercises(slug: str) -> list[dict[str, Any]]:
    """Return those that a run can judge: their numbers, and whether the learner finds the knob."""
    try:
        found = exercises.load_exercises(places.find(slug))
    except BadInput:
        return []
    return [{"name": f"{slug}/{number}", "open": one.is_open} for number, one in enumerate(found, 1) if not one.by_hand]
