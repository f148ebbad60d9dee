"""Long pages become short ones, with a list of them in their place: a page for each class, module or topic of the changes."""

import ast
import html
import importlib
import inspect
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: packages whose public names get pages of their own
NAMES = ("structpred", "models", "layers", "io", "evaluation")
#: packages whose modules do
MODULES = (
    "core", "data", "features", "nonconvex", "objectives", "oracles", "projections", "rows", "slack", "task", "trainers",
)  # fmt: skip
_TOPIC = re.compile(r"^(?![#\s-])(.+)\n\n((?:[ -].*\n|\n(?=[ -]))+)", re.MULTILINE)
_BLOCK = re.compile(r"^::: (structpred\.\S+)\n((?:    .*\n)*)\n?", re.MULTILINE)


def place_of(package: str, name: str) -> str:
    """Where the page of a dotted name is."""
    return f"reference/{package}/{_short(package, name)}.md"


def _short(package: str, name: str) -> str:
    """A dotted name without that of its package."""
    return name.removeprefix("structpred." if package == "structpred" else f"structpred.{package}.")


def modules(package: str) -> dict[str, str]:
    """The public modules of a package with the first lines of their docstrings."""
    found = {}
    for path in sorted((ROOT / "structpred" / package).rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        if not any(part.startswith("_") for part in parts):
            found[".".join(parts)] = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return found


def split(package: str) -> dict[str, tuple[str, str]]:
    """(the text of its page, a line about it) for each name or module of a package."""
    if package in MODULES:
        return {
            name: (f"::: {name}\n    options:\n      heading_level: 1\n", _line(doc)) for name, doc in modules(package).items()
        }
    text = (ROOT / "docs" / "reference" / f"{package}.md").read_text(encoding="utf-8")
    pages = {}
    for name, options in _BLOCK.findall(text + "\n"):
        block = "\n".join([f"::: {name}", options.rstrip("\n") or "    options:", "      heading_level: 1", ""])
        module, _, own = name.rpartition(".")
        thing = getattr(importlib.import_module(module), own)
        pages[name] = (block, _line(inspect.getdoc(thing) or "" if callable(thing) else ""))
    return pages


def listed(package: str, text: str) -> str:
    """The text of a package's page with a list of its pages in place of what is on them."""
    lines = "".join(
        f"- [{_short(package, name)}]({package}/{Path(place_of(package, name)).name}): {line}\n"
        for name, (_, line) in split(package).items()
    )
    if package in MODULES:
        return f"{text.replace('show_submodules: true', 'show_submodules: false').rstrip()}\n\n{lines}"
    return "\n\n".join([_BLOCK.sub("", text + "\n").rstrip(), lines])


def topics(changes: str) -> dict[str, tuple[str, str]]:
    """(the topic, the text of its page) by place, for each topic of the history of changes."""
    found = {}
    for topic in _TOPIC.finditer(changes + "\n"):
        version = re.findall(r"^## (\S+?),?(?: |$)", changes[: topic.start()], re.MULTILINE)[-1]
        name = re.sub(r"\W+", "-", topic[1].lower())
        found[f"changes/{version}-{name}.md"] = (topic[1], f"# {version}: {topic[1]}\n\n{topic[2]}")
    return found


def history(changes: str) -> str:
    """The history of changes with a link in place of each topic."""
    places = {topic: place for place, (topic, _) in topics(changes).items()}

    def line(topic: re.Match[str]) -> str:
        return f"- [{topic[1]}]({places[topic[1]]}): {len(re.findall('^- ', topic[2], re.MULTILINE))}\n"

    return re.sub(r"^(- .*\n)\n(?=- )", r"\1", _TOPIC.sub(line, changes + "\n"), flags=re.MULTILINE)


def _line(doc: str) -> str:
    """The first line of a docstring, in which no character is markup."""
    return re.sub(r"([*_\[\]`|$\\])", r"\\\1", html.escape(doc.partition("\n")[0], quote=False))
