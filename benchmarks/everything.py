"""Every program behind docs/benchmarks.md, at one commit: ``python benchmarks/everything.py [--at COMMIT] [--only NAME ...]``.

Each program runs by itself, one after another, and what it prints goes to ``benchmarks/results/COMMIT/NAME.txt``, below a heading
with the machine and its load before and after. A program whose file is there already is left out, so a run that was interrupted
goes on. Experiments of papers also leave their figures in ``results/papers``, for ``claims.py``. The whole takes most of a
working day of one core: with `--at COMMIT` it goes on with the programs and the library as they were at that commit, whatever was
done since. `--quick` gives the programs that have it their shorter form.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from measure import HERE, ONE_THREAD, ROOT, machine

#: programs that are no comparison of their own
HELPERS = ("measure", "everything", "before_after", "claims", "digests", "interrupts", "model_files")
#: these use as many threads as they say
OWN_THREADS = ("threads",)
#: figures of whole runs of the papers' experiments, which claims.py reads
FIGURES = HERE / "results" / "papers"


def programs(root: Path) -> dict[str, list[str]]:
    """The command of each table: the files of the folder of benchmarks, and the experiments of the papers."""
    files = sorted(path.stem for path in (root / "benchmarks").glob("*.py") if path.stem not in HELPERS)
    from structpred.experiments.experiment import experiments

    shell = [sys.executable, "-c", "from structpred.cli import main; main()", "bench"]
    return {
        **{name: [sys.executable, str(root / "benchmarks" / f"{name}.py")] for name in files},
        **{f"bench-{name}": [*shell, name] for name in sorted(experiments())},
    }


def commit() -> str:
    """The short name of the commit, with a plus where files differ from it."""

    def git(*arguments: str) -> str:
        return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def at(name: str) -> Path:
    """A work tree of a commit, made where there is none."""
    tree = ROOT / "out" / "trees" / name
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree), name], cwd=ROOT, check=True)
    return tree


def has_quick(name: str, root: Path) -> bool:
    """Whether the program has a shorter form; every experiment has."""
    return name.startswith("bench-") or '"--quick"' in (root / "benchmarks" / f"{name}.py").read_text()


def run(name: str, command: list[str], root: Path, folder: Path, heading: str) -> bool:
    """Run one program of a work tree; whether it ended well. The file gets its name last: half a run is not taken for a whole."""
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, **({} if name in OWN_THREADS else ONE_THREAD), "PYTHONPATH": path}
    part, begun, load = folder / f"{name}.part", time.monotonic(), os.getloadavg()[0]
    with part.open("w") as out:
        print(heading, file=out, flush=True)
        done = subprocess.run(command, cwd=root / "benchmarks", env=environment, stdout=out, stderr=subprocess.PIPE, text=True)
        print(f"\nload {load:.1f} before, {os.getloadavg()[0]:.1f} after; {time.monotonic() - begun:.0f} s", file=out)
    if done.returncode == 0:
        part.write_text(part.read_text().replace(f"{root}{os.sep}", ""))  # where it ran is nobody's business
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
    parser.add_argument("--at", metavar="COMMIT", help="the short name of the commit whose programs are run, of whose library")
    arguments = parser.parse_args()
    name_of_commit = arguments.at or commit()
    root = ROOT if name_of_commit == commit() else at(name_of_commit)
    known = programs(root)
    if arguments.list:
        print("\n".join(known))
        return
    if unknown := sorted(set(arguments.only or ()) - set(known)):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(known)}")
    heading = machine() + (", --quick" if arguments.quick else "")
    folder = HERE / "results" / (name_of_commit + ("-quick" if arguments.quick else ""))
    folder.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in arguments.only or known:
        file = folder / f"{name}.txt"
        if file.exists():
            continue
        print(name, flush=True)
        command = [*known[name], "--quick"] if arguments.quick and has_quick(name, root) else known[name]
        kept, paper = ROOT / "out" / "papers" / folder.name / name, name.startswith("bench-") and root == ROOT
        if not run(name, [*command, "--output", str(kept)] if paper else command, root, folder, heading):
            failed.append(name)
        elif paper and not arguments.quick:
            shutil.copyfile(kept / "figures.json", FIGURES / f"{name.removeprefix('bench-')}.json")
    sys.exit(f"failed: {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
