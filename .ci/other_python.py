"""Install, `structpred doctor` and tests on another Python: ``python .ci/other_python.py PYTHON [TESTS ...]``.

PYTHON makes a virtual environment, pip installs structpred into it with what its tests need (wheels only), the doctor judges the
environment, and pytest runs the fast tests of this checkout, or those that are named, against the installed package. It ends with
1 at the first step that fails.

    python .ci/other_python.py python3.14 tests/test_imports.py tests/trainers/test_sgd.py
    python .ci/other_python.py python3.11 --pins oldest --dist dist/structpred-0.1.0-py3-none-any.whl

`--record FILE` adds a row to a table in Markdown, benchmarks/results/platforms.md for one: Python, versions, what the tests said.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: where numba and scikit-learn put what they build each night
NIGHTLY = (
    "https://pypi.anaconda.org/numba/label/dev/simple",
    "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple",
)
SHOWN = (
    "import importlib.metadata as m, platform, sys; "
    "print(platform.python_version(), *(f'{name} {m.version(name)}' for name in sys.argv[1:]), sep=', ')"
)


def dependencies() -> list[str]:
    """The names of what structpred asks of an environment, without its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [re.split(r"[><=]", one)[0] for one in project["dependencies"]]


def environment() -> dict[str, str]:
    """What the commands find set."""
    # the installed package is what is tried: neither the checkout nor a folder of somebody's is to take its place
    return {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}


def attempt(name: str, *command: str | Path) -> int:
    """Run a command in the checkout, and say how long it took; what it prints is shown as it comes."""
    print(f"== {name}: {' '.join(map(str, command))}", flush=True)
    start = time.monotonic()
    code = subprocess.run(list(map(str, command)), cwd=ROOT, stdin=subprocess.DEVNULL, env=environment(), check=False).returncode
    print(f"-- {name}: exit {code} after {time.monotonic() - start:.0f} s", flush=True)
    return code


def step(name: str, *command: str | Path) -> None:
    """A command without which the next ones mean nothing."""
    if attempt(name, *command):
        sys.exit(1)


def install(python: Path, given: argparse.Namespace, folder: Path) -> None:
    """Install the archive or wheel that was given, else the checkout."""
    pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--only-binary", ":all:")
    what = f"{given.dist.resolve() if given.dist else ROOT}[{given.extras}]".removesuffix("[]")
    pins: list[str | Path] = []
    if given.pins == "oldest":
        # the lower bounds of pyproject.toml themselves, those of the extras, too, unless two of them need more of one another
        constraints = folder / "oldest.txt"
        extras = [part for extra in given.extras.split(",") if extra for part in ("--extra", extra)]
        lowest = ("--resolution", "lowest-direct", "--only-binary", ":all:", "--python", python, *extras)
        step("uv", *pip, "uv")
        step(
            "oldest versions",
            python,
            "-m",
            "uv",
            "pip",
            "compile",
            "--quiet",
            *lowest,
            "pyproject.toml",
            "--output-file",
            constraints,
        )
        pins = ["--constraint", constraints]
    step("install", *pip, *pins, what)
    if given.pins == "development":
        indices = [part for url in NIGHTLY for part in ("--extra-index-url", url)]
        step("development versions", *pip, "--pre", "--upgrade", *indices, "llvmlite", "numba", "scikit-learn")


def versions(python: Path) -> str:
    """Python and the libraries as they are installed."""
    command = [str(python), "-P", "-c", SHOWN, *dependencies(), "structpred"]
    found = subprocess.run(command, stdout=subprocess.PIPE, env=environment(), check=True, text=True).stdout.strip()
    print(f"== versions: {found}", flush=True)
    return found


def row(given: argparse.Namespace, found: str, report: Path, seconds: float) -> str:
    """A line of the record: pins, versions, tests passed, failed (errors among them) and skipped, CPU seconds."""
    suite = next(ET.parse(report).getroot().iter("testsuite")).attrib
    failed, skipped = int(suite["failures"]) + int(suite["errors"]), int(suite["skipped"])
    passed = int(suite["tests"]) - failed - skipped
    python, _, libraries = found.partition(", ")
    return f"| {python} | {given.pins} | {libraries} | {passed} | {failed} | {skipped} | {seconds:.0f} |\n"


def run_tests(scripts: Path, given: argparse.Namespace, found: str, folder: Path) -> int:
    """The tests, and the row of the record; what pytest ended with."""
    report = folder / "report.xml"
    before = os.times()
    # not `python -m pytest`: that would import the package from the checkout
    code = attempt("tests", scripts / "pytest", "-m", "not slow", "-rfEs", f"--junitxml={report}", *given.tests)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    if given.record and report.exists():
        with given.record.open("a", encoding="utf-8") as record:
            record.write(row(given, found, report, seconds))
    return code


def options() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="the interpreter: a name on the path, or a path")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files of tests (default: all, without the slow ones)")
    parser.add_argument("--dist", type=Path, help="source archive or wheel to install (default: this checkout)")
    parser.add_argument("--extras", default="test", help='extras to install, "" for none (default: test)')
    parser.add_argument("--pins", choices=("newest", "oldest", "development"), default="newest", help="versions of dependencies")
    parser.add_argument("--record", type=Path, help="a table in Markdown to add a row on this run to")
    parser.add_argument("--no-tests", action="store_true", help="install and doctor only")
    return parser


def main() -> None:
    """Run the steps one after the other."""
    given = options().parse_intermixed_args()  # names of tests may stand before and after options
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        step("environment", given.python, "-m", "venv", folder / "venv")
        scripts = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python = scripts / "python"
        install(python, given, folder)
        found = versions(python)
        step("doctor", scripts / "structpred", "doctor")
        if not given.no_tests and run_tests(scripts, given, found, folder):
            sys.exit(1)
    print("all steps passed")


if __name__ == "__main__":
    main()
