"""What a new user waits for: ``python benchmarks/first_minute.py [REVISION ...]``.

Each revision is cloned to a folder of its own, with an empty home folder, no virtual environment and no compiled kernels;
packages come from where pip is set up to look. There README's set-up commands and first example run, then `make demo` in a second
clone, each in a terminal. Printed are CPU and wall seconds of each command, the longest time without output, and the output with
the second at which each line came.
"""

import os
import pty
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from measure import ROOT, machine, scratch_folder, table, verdict

#: what a fresh machine may take for one of the two ways in
BUDGET = 60.0
#: settings of whoever runs this that a new user has not
DROPPED = ("PYTHON", "NUMBA", "STRUCTPRED", "XDG", "VIRTUAL_ENV", "OMP", "MAKE", "MFLAGS")


#: what moves a terminal's cursor, and characters of progress that are written over
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|.\x08")


class Run(NamedTuple):
    """One command: CPU and wall seconds, the longest silence, and the lines with the seconds at which they came."""

    command: str
    cpu: float
    wall: float
    silence: float
    lines: list[tuple[float, str]]


def run(command: list[str], folder: Path, home: Path) -> Run:
    """Run a command in a terminal of its own, in `folder`, without what concerns Python, numba or us in the environment."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(DROPPED)}
    environment = {**kept, "HOME": str(home), "TERM": "dumb", "COLUMNS": "130"}
    reader, terminal = pty.openpty()
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=terminal, stdout=terminal, stderr=terminal, close_fds=True
    )
    os.close(terminal)
    lines, silence, last, line = [], 0.0, 0.0, ""
    for at, text in pieces(reader, start):
        silence, last = max(silence, at - last), at
        *ended, line = (line + CONTROL.sub("", text)).split("\n")
        lines += [(at, one.rstrip("\r").rpartition("\r")[2]) for one in ended if one.strip()]
    if process.wait():
        raise SystemExit(f"{' '.join(command)} failed:\n" + "\n".join(line for _, line in lines))
    after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic() - start
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(" ".join(command), cpu, wall, max(silence, wall - last), lines)


def pieces(reader: int, start: float) -> list[tuple[float, str]]:
    """What comes from a terminal until it is closed, and when."""
    found = []
    while True:
        try:
            data = os.read(reader, 1 << 16)
        except OSError:  # how Linux says that nobody holds the other end
            data = b""
        if not data:
            os.close(reader)
            return found
        found.append((time.monotonic() - start, data.decode(errors="replace")))


def clone(revision: str, folder: Path) -> Path:
    """A new clone at this revision."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder)], check=True)
    subprocess.run(["git", "checkout", "-q", revision], cwd=folder, check=True)
    return folder


def first_minute(revision: str) -> dict[str, list[Run]]:
    """The two ways in: README's commands with its first example, and the demo."""
    scratch = scratch_folder()
    readme, home = clone(revision, scratch / "readme"), scratch / "home"
    home.mkdir()
    code = re.search(r"```python\n(.*?)```", (readme / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    (readme / "first.py").write_text(code[1], encoding="utf-8")
    python = ".venv/bin/python"
    commands = [[sys.executable, "-m", "venv", ".venv"], [python, "-m", "pip", "install", "."], [python, "first.py"]]
    runs = {"README": [run(command, readme, home) for command in commands]}
    shutil.rmtree(home)
    home.mkdir()
    runs["make demo"] = [run(["make", "demo"], clone(revision, scratch / "demo"), home)]
    shutil.rmtree(scratch)
    return runs


def main() -> None:
    """Print the figures and what was printed."""
    for revision in sys.argv[1:] or ["HEAD"]:
        print(f"\nThe first minute of {revision} ({machine()})\n")
        ways = first_minute(revision)
        rows = [
            [way, one.command.replace(sys.executable, "python"), f"{one.cpu:.1f}", f"{one.wall:.1f}", f"{one.silence:.1f}"]
            for way, runs in ways.items()
            for one in runs
        ]
        print(table(["way in", "command", "CPU s", "wall s", "longest silence, s"], rows) + "\n")
        for way, runs in ways.items():
            total = sum(one.cpu for one in runs)
            print(verdict(f"{way}: at most {BUDGET:.0f} CPU seconds with the install", total <= BUDGET, f"{total:.1f} s"))
        for runs in ways.values():
            for one in runs:
                print(f"\n$ {one.command}")
                print("\n".join(f"{at:6.1f}  {line}" for at, line in one.lines))


if __name__ == "__main__":
    main()
