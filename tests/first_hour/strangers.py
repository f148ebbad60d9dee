"""Four strangers, a trade each, type what README and the pages say, in an empty home, until they have what they came for.

``python tests/first_hour/strangers.py`` runs them, prints what each command cost and writes benchmarks/results/first_hour.md.
What they bring are the sentences of the package, as files of their own. Installing is the first command, which is counted
and not run: tests/test_install.py installs.
"""

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent.parent
ENGLISH = ROOT / "structpred" / "data" / "english"
RESULT = ROOT / "benchmarks" / "results" / "first_hour.md"
INSTALL = "python -m pip install structpred"
#: settings of whoever runs this that a stranger has not
DROPPED = ("PYTHON", "STRUCTPRED", "XDG", "NUMBA", "COV")
_BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
_NAME = re.compile(r"\bNER=([BI]-\w+)")


class Typed(NamedTuple):
    """A command as typed. page: where it stands, from the root. wanted: a pattern of what it must print."""

    command: str
    page: str
    wanted: str


class Done(NamedTuple):
    """What a command did: exit code, wall and CPU seconds, and what it printed."""

    code: int
    seconds: float
    cpu: float
    out: str
    err: str

    @property
    def lines(self) -> int:
        """How many lines came."""
        return len((self.out + self.err).splitlines())


#: trade -> its commands after installing
TRADES: dict[str, tuple[Typed, ...]] = {
    "tagging": (
        Typed("structpred demo tagger", "README.md", r"\[[A-Z]\w+( \w+)* (PER|LOC|ORG)\]"),
        Typed("structpred train chain train.txt -o ner.spz", "README.md", r"wrote ner\.spz: \d+ features, 7 labels"),
        Typed("structpred evaluate ner.spz test.txt", "README.md", r"\nall +\d+ "),
        Typed("structpred explain ner.spz test.txt --sample 3 --position 5", "docs/howto/tagging.md", r"adds  value"),
    ),
    "parsing": (
        Typed('structpred demo parser "The mayor opened a library in Leeds."', "structpred/cli/demo.py", r"\nopened +root\n"),
        Typed("structpred train pipeline train.conllu -o en.spz", "docs/howto/parsing.md", r"wrote en\.spz"),
        Typed("structpred predict en.spz news.txt --text > news.conllu", "docs/howto/parsing.md", r"^$"),
        Typed("structpred evaluate en.spz test.conllu", "docs/howto/parsing.md", r"UAS"),
    ),
    "operations research": (
        Typed("python knapsacks.py", "docs/howto/i_have_a_solver.md", r"^True\n$"),
        Typed("structpred demo paths", "structpred/cli/demo.py", r"\d % .* SPO\+"),
    ),
    "research": (
        Typed("structpred bench bmrm-lower-bound", "docs/howto/how_far_from_the_optimum.md", r"\nmet +Theorem \d"),
        Typed("python entities.py", "README.md", r"\nprimal .*, dual .*, gap .*\("),
        Typed("structpred check-oracle own_oracle:MatchingOracle", "docs/howto/add_an_oracle.md", r"\w"),
    ),
}


ABOUT = """# The first hour of four trades

`python tests/first_hour/strangers.py`: commands as README and the pages have them, in an empty home and a new folder, on the
sentences of the package. CPU seconds are those of the command and its children: the first time, when kernels are compiled, and
later. Seconds are those of a wall clock, later, on a machine that others use. Lines are those printed, later. Installing is
counted and not run. The model of knapsacks is the first Python of
[I have a solver](../../docs/howto/i_have_a_solver.md): {n} lines.

| trade | | command | CPU s, first | CPU s | seconds | lines |
|---|---|---|---|---|---|---|
"""


def first_block(page: str) -> str:
    """The first Python of a page."""
    found = _BLOCK.search((ROOT / page).read_text(encoding="utf-8"))
    assert found is not None, page
    return found[1]


def bring(folder: Path) -> None:
    """The files that the strangers have: a treebank, columns with names, a text, and code copied from the pages."""
    for part in ("train", "test"):
        shutil.copy(ENGLISH / f"{part}.conllu", folder)
        blocks = (ENGLISH / f"{part}.conllu").read_text(encoding="utf-8").strip().split("\n\n")
        sentences = ([line.split("\t") for line in block.split("\n") if line[0] != "#"] for block in blocks)
        columns = ("".join(f"{row[1]} {(_NAME.findall(row[9]) or ['O'])[0]}\n" for row in rows) for rows in sentences)
        (folder / f"{part}.txt").write_text("\n".join(columns), encoding="utf-8")
    (folder / "news.txt").write_text("The mayor opened a library in Leeds. Anna Keller left Oslo on Monday.\n")
    (folder / "knapsacks.py").write_text(first_block("docs/howto/i_have_a_solver.md"))
    (folder / "entities.py").write_text(first_block("README.md"))
    (folder / "own_oracle.py").write_text(first_block("docs/howto/add_an_oracle.md"))


def programs(folder: Path) -> Path:
    """A folder with `structpred` and `python` as an installation makes them, of this tree and this interpreter."""
    folder.mkdir()
    for name, module in (("python", ""), ("structpred", " -m structpred.cli")):
        (folder / name).write_text(f'#!/bin/sh\nexec "{sys.executable}"{module} "$@"\n')
        (folder / name).chmod(0o755)
    return folder


def typed(command: str, folder: Path, home: Path, path: Path, tree: Path) -> Done:
    """Run a command line in a shell, in `folder`, with a home of its own. tree: where the package is."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    found = f"{path}{os.pathsep}{os.environ['PATH']}"
    env = {**kept, "HOME": str(home), "PATH": found, "PYTHONPATH": str(tree), "MPLBACKEND": "Agg"}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    after, seconds = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Done(done.returncode, seconds, cpu, done.stdout, done.stderr)


def hour(trade: str, folder: Path, *, cold: bool = False) -> list[Done]:
    """All commands of a trade, one after the other, in an empty home and a folder with what the stranger has.

    cold: with a copy of the package that has no compiled kernels, as after installing.
    """
    tree = folder / "tree" if cold else ROOT
    if cold:
        shutil.copytree(ROOT / "structpred", tree / "structpred", ignore=shutil.ignore_patterns("__pycache__"))
    home, work = folder / "home", folder / "work"
    home.mkdir()
    work.mkdir()
    bring(work)
    path = programs(folder / "bin")
    return [typed(one.command, work, home, path, tree) for one in TRADES[trade]]


def main() -> None:
    """Run all of them, print a line for each command, and write the table."""
    rows = []
    for trade, commands in TRADES.items():
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            first, again = hour(trade, Path(folder), cold=True), hour(trade, Path(other))
        rows.append(f"| {trade} | 1 | `{INSTALL}` | | | | |")
        for k, (one, new, did) in enumerate(zip(commands, first, again, strict=True), start=2):
            shown = f"`{one.command}`" + "".join(f", exit code {run.code}" for run in (new, did) if run.code)
            rows.append(f"| | {k} | {shown} | {new.cpu:.1f} | {did.cpu:.1f} | {did.seconds:.1f} | {did.lines} |")
            print(rows[-1], flush=True)
        sums = [sum(run.cpu for run in first), sum(run.cpu for run in again), sum(run.seconds for run in again)]
        cost = " | ".join(f"{total:.1f}" for total in sums)
        rows.append(f"| | | **{len(again) + 1} commands** | {cost} | {sum(run.lines for run in again)} |")
    n = len(first_block("docs/howto/i_have_a_solver.md").strip().splitlines())
    RESULT.write_text(f"{ABOUT.format(n=n)}{chr(10).join(rows)}\n", encoding="utf-8")
    print(f"wrote {RESULT}")


if __name__ == "__main__":
    main()
