"""The Python blocks of a page, what they print, and whether that is what the page shows below them."""

import ast
import math
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
_BLOCK = re.compile(r"```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?", re.DOTALL)
_NUMBER = r"(?<![\w.])-?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?(?!\w)"
_MARK = "\x1e"  # printed after each block


class Block(NamedTuple):
    """Python of a page, the output that the page shows below it (None where it shows none), and where both are."""

    code: str
    output: str | None
    span: tuple[int, int]


def blocks(text: str) -> list[Block]:
    """The Python blocks of a page, in order."""
    return [Block(found["code"], found["output"], found.span()) for found in _BLOCK.finditer(text)]


def needing(libraries: set[str], found: list[Block]) -> list[Block]:
    """The blocks that import one of these libraries, or use a name that such a block binds."""
    needy, lost = [], set[str]()
    for block in found:
        nodes = list(ast.walk(ast.parse(block.code)))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        aliases = [alias for node in imports for alias in node.names]
        modules = [alias.name for alias in aliases] + [node.module or "" for node in imports if isinstance(node, ast.ImportFrom)]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        bound |= {(alias.asname or alias.name).partition(".")[0] for alias in aliases}
        bound |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        paths = [name.split(".") for name in modules]
        imported = {part for path in paths for part in (path if path[0] == "structpred" else path[:1])}
        if imported & libraries or lost & ({node.id for node in names} - bound):
            needy.append(block)
            lost |= bound
        else:
            lost -= bound
    return needy


def running(page: Path, missing: set[str]) -> list[Block]:
    """The blocks of a page that run without these libraries, in order."""
    found = blocks(page.read_text(encoding="utf-8"))
    left_out = needing(missing, found)
    return [block for block in found if block not in left_out]


def printed(found: list[Block], page: Path, folder: Path) -> list[str]:
    """What each of these blocks of a page prints: run one after the other in one fresh process, where warnings are errors."""
    code = "\n".join(f"{block.code}\nprint({_MARK!r}, end='')" for block in found)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    command = [sys.executable, "-P", "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, f"{page}: {done.stderr}"
    return done.stdout.split(_MARK)[:-1]


def agrees(shown: str, found: str) -> bool:
    """Whether a page may show this for what was printed.

    `...` stands for any text, white space for any other. Whole numbers must be equal if they are below 50, and may else differ by
    2 %; others may differ by 5 % or by one in the last place that is shown, because machines round differently.
    """
    pieces = re.split(rf"(\.\.\.|\s+|{_NUMBER})", shown.strip())
    pattern, expected = "", []
    for piece in pieces:
        if piece == "...":
            pattern += ".*?"
        elif piece.isspace():
            pattern += r"\s+"
        elif re.fullmatch(_NUMBER, piece):
            pattern += rf"({_NUMBER})"
            expected.append(piece)
        else:
            pattern += re.escape(piece)
    match = re.fullmatch(pattern, found.strip(), re.DOTALL)
    return match is not None and all(map(_close, expected, match.groups()))


def _close(shown: str, found: str) -> bool:
    decimals = len(shown.partition("e")[0].partition(".")[2])
    if not decimals and "e" not in shown:
        return abs(float(shown) - float(found)) <= (0.02 * float(shown) if float(shown) >= 50 else 0.0)
    last_place = 0.0 if "e" in shown else 1.01 * 10.0**-decimals
    return math.isclose(float(shown), float(found), rel_tol=0.05, abs_tol=max(last_place, 1e-6))


def differences(page: Path, folder: Path, missing: set[str]) -> list[str]:
    """A text for each block that prints something else than the page shows, of those that run without the missing libraries."""
    text, own = page.read_text(encoding="utf-8"), running(page, missing)
    wrong = []
    for block, found in zip(own, printed(own, page, folder), strict=True):
        if not agrees(block.output or "", found):
            line = text[: block.span[0]].count("\n") + 1
            wrong.append(f"{page.name}:{line} shows\n{block.output or '(nothing)'}\nand prints\n{found}")
    return wrong


def refreshed(page: Path, folder: Path) -> str:
    """The text of a page with what its blocks print now; an output that agrees stays as it is."""
    text = page.read_text(encoding="utf-8")
    for block, found in reversed(list(zip(blocks(text), printed(blocks(text), page, folder), strict=True))):
        if not agrees(block.output or "", found):
            lines = found.rstrip().strip("\n")
            output = f"\n\n```text\n{lines}\n```" if lines else ""
            text = f"{text[: block.span[0]]}```python\n{block.code}```{output}{text[block.span[1] :]}"
    return text
