"""Every table of docs/benchmarks.md again, at one commit: ``python benchmarks/everything.py [--only NAME ...] [--list]``.

Each program runs by itself, one after another, and what it prints goes to ``out/benchmarks/NAME.txt``, below a heading with the
commit, the machine and its load before and after. A program whose file is already there for this commit is left out, so a run
that was interrupted goes on. The whole takes some hours; `--quick` gives the programs that have it their shorter form.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from measure import HERE, ONE_THREAD, ROOT, machine

#: programs that are no comparison of their own
HELPERS = ("measure", "everything", "before_after", "digests", "interrupts", "model_files")
#: these use as many threads as they say
OWN_THREADS = ("threads",)


def programs() -> dict[str, list[str]]:
    """The command of each table: the files of this folder, and the experiments of the papers."""
    files = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in HELPERS)
    from structpred.experiments.experiment import experiments

    shell = [sys.executable, "-c", "from structpred.cli import main; main()", "bench"]
    return {
        **{name: [sys.executable, str(HERE / f"{name}.py")] for name in files},
        **{f"bench-{name}": [*shell, name] for name in sorted(experiments())},
    }


def commit() -> str:
    """The short name of the commit, with a plus where files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def has_quick(name: str) -> bool:
    """Whether the program has a shorter form; every experiment has."""
    return name.startswith("bench-") or '"--quick"' in (HERE / f"{name}.py").read_text()


def run(name: str, command: list[str], folder: Path, heading: str) -> bool:
    """Run one program; whether it ended well. The file gets its name last, so that half a run is not taken for a whole."""
    environment = os.environ if name in OWN_THREADS else {**os.environ, **ONE_THREAD}
    part, begun, load = folder / f"{name}.part", time.monotonic(), os.getloadavg()[0]
    with part.open("w") as out:
        print(heading, file=out, flush=True)
        done = subprocess.run(command, cwd=HERE, env=environment, stdout=out, stderr=subprocess.PIPE, text=True)
        print(f"\nload {load:.1f} before, {os.getloadavg()[0]:.1f} after; {time.monotonic() - begun:.0f} s", file=out)
    if done.returncode == 0:
        part.replace(folder / f"{name}.txt")
    else:
        print(f"{name}: exit {done.returncode}\n{done.stderr[-2000:]}", file=sys.stderr)
    return done.returncode == 0


def main() -> None:
    """Run what is asked for; the exit code says whether all ended well."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names as --list prints them")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    known = programs()
    if arguments.list:
        print("\n".join(known))
        return
    if unknown := sorted(set(arguments.only or ()) - set(known)):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    heading = f"commit {commit()}, {machine()}" + (", --quick" if arguments.quick else "")
    folder = ROOT / "out" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in arguments.only or known:
        file = folder / f"{name}.txt"
        if file.exists() and file.read_text().startswith(heading + "\n"):
            continue
        print(name, flush=True)
        command = [*known[name], "--quick"] if arguments.quick and has_quick(name) else known[name]
        if not run(name, command, folder, heading):
            failed.append(name)
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
