"""The outputs of the notebooks: `python tests/examples/notebooks.py [NAME ...]`, or `make notebooks`, writes them into examples/.

They are what a newcomer sees who has the package and no data sets, without times and all else that differs between machines.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted(path.name for path in (ROOT / "examples").glob("*.ipynb"))
#: a cell with this tag draws times: of its outputs only what it prints is kept
TIMED = "times"
_TABLE = re.compile(r"<table>(?:(?!<table>).)*?</table>", re.DOTALL)
_ROW, _CELL = re.compile(r"<tr>.*?</tr>", re.DOTALL), re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.DOTALL)
_COLUMNS = ("seconds", "cpu_seconds")
_TIMES = re.compile(r" in [\d.]+ s(?= |<|$)|\n *argmax takes [^\n]*? \(median\)")


def executed(name: str, folder: Path, data: Path | None = None) -> Any:
    """The notebook after a run in a kernel of its own, which leaves nothing outside of `folder`; an error in a cell is raised."""
    own = {"PYTHONPATH": ROOT, "STRUCTPRED_DATA": data or folder}
    own |= {name: folder / name for name in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR")}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update({name: str(value) for name, value in own.items()})
    try:
        notebook = nbformat.read(ROOT / "examples" / name, as_version=4)
        client = NotebookClient(notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
        return client.execute()
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def kept(notebook: Any) -> Any:
    """The notebook with the outputs that are kept of a run, in place."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            tags = cell.metadata.get("tags", [])
            cell.metadata = nbformat.from_dict({"tags": tags} if tags else {})
            cell.execution_count = None
            printed = "".join(one["text"] for one in cell.outputs if one.get("name") == "stdout")
            shown = [_rich(one) for one in cell.outputs if "data" in one and TIMED not in tags]
            streams = [nbformat.v4.new_output("stream", name="stdout", text=printed)] if printed else []
            cell.outputs = [*streams, *shown]
    return notebook


def _rich(output: Any) -> Any:
    """An output in one form, the richest, without times."""
    data = output["data"]
    kind = next(kind for kind in ("text/html", "image/svg+xml", "text/plain") if kind in data)
    return nbformat.v4.new_output("display_data", {kind: timeless(data[kind])})


def timeless(html: str) -> str:
    """A text without seconds: neither in sentences nor as columns of tables."""
    return _TABLE.sub(lambda table: _without_times(table[0]), _TIMES.sub("", html))


def _without_times(table: str) -> str:
    rows = _ROW.findall(table)
    timed = [i for i, cell in enumerate(_CELL.finditer(rows[0])) if cell[1] in _COLUMNS] if rows else []
    for row in rows if timed else []:
        cells = [found[0] for found in _CELL.finditer(row)]
        left = "".join(cell for i, cell in enumerate(cells) if i not in timed)
        table = table.replace(row, f"<tr>{left}</tr>", 1)
    return table


def main(names: list[str]) -> None:
    """Run the notebooks of these names, all without any, and keep their outputs in them."""
    for name in names or NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(kept(executed(name, Path(folder))), ROOT / "examples" / name)
        print(f"{name}: {(ROOT / 'examples' / name).stat().st_size // 1000} kB", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
