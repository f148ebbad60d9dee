"""Notebooks as pages: what is written, the code, and the outputs that are kept in examples/ (`make notebooks` makes them)."""

import html
import json
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: the pages, and the notebooks that they show
PAGES = {f"notebooks/{path.stem}.md": path for path in sorted(EXAMPLES.glob("*.ipynb"))}


def as_page(path: Path) -> str:
    """The Markdown of a notebook's page, with a link to the notebook below its title."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    first, *rest = (_cell(cell) for cell in cells)
    title, _, more = first.partition("\n")
    return "\n\n".join([title, f"[The notebook](../examples/{path.name})", more.strip(), *rest]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    return "\n\n".join([f"```python\n{source}\n```", *map(_output, cell["outputs"])])


def _output(output: dict[str, Any]) -> str:
    """One output as a box that scrolls by itself. Markdown takes a line that is empty for the end of a box."""
    data = output.get("data", {})
    drawn = data.get("text/html") or data.get("image/svg+xml")
    text = "".join(output.get("text") or data.get("text/plain", ""))
    shown = "".join(drawn) if drawn else f"<pre>{html.escape(text, quote=False).rstrip()}</pre>"
    return '<div class="output" tabindex="0">' + shown.replace("\n\n", "\n&#8203;\n") + "</div>"
