"""Install, `structpred doctor` and tests on another Python: ``python .ci/other_python.py PYTHON [TESTS ...]``.

PYTHON makes a virtual environment, pip installs structpred into it with what its tests need (wheels only), the doctor judges the
environment, and pytest runs the fast tests of this checkout, or those that are named, against the installed package. It ends with
1 at the first step that fails.

    python .ci/other_python.py python3.14 tests/test_imports.py tests/trainers/test_sgd.py
    python .ci/other_python.py python3.11 --pins oldest --dist dist/structpred-0.1.0-py3-none-any.whl
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
#: where numba and scikit-learn put what they build each night
NIGHTLY = (
    "https://pypi.anaconda.org/numba/label/dev/simple",
    "https://pypi.anaconda.org/scientific-python-nightly-wheels/simple",
)
SHOWN = "import importlib.metadata as m, sys; print(sys.version); [print(n, m.version(n)) for n in sys.argv[1:]]"


def oldest(requirements: Sequence[str]) -> list[str]:
    """The lower bounds as pins: `numpy>=2.0` becomes `numpy==2.0.*`, the newest repair of the oldest release."""
    found = [re.fullmatch(r"([\w.-]+)>=([\w.]+)", one) for one in requirements]
    if None in found:
        raise SystemExit(f"pyproject.toml: expected NAME>=VERSION for each dependency, got {list(requirements)}")
    return [f"{one[1]}=={one[2]}.*" for one in found if one is not None]


def dependencies() -> list[str]:
    """What structpred asks of an environment, without its extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return list(project["dependencies"])


def step(name: str, *command: str | Path) -> None:
    """Run a command in the checkout, and say how long it took; what it prints is shown as it comes."""
    print(f"== {name}: {' '.join(map(str, command))}", flush=True)
    start = time.monotonic()
    # the installed package is what is tried: neither the checkout nor a folder of somebody's is to take its place
    env = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    code = subprocess.run([str(part) for part in command], cwd=ROOT, stdin=subprocess.DEVNULL, env=env, check=False).returncode
    print(f"-- {name}: exit {code} after {time.monotonic() - start:.0f} s", flush=True)
    if code:
        sys.exit(1)


def install(python: Path, given: argparse.Namespace, folder: Path) -> None:
    """Install the archive or wheel that was given, else the checkout."""
    pip = (python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--only-binary", ":all:")
    what = f"{given.dist.resolve() if given.dist else ROOT}[{given.extras}]".removesuffix("[]")
    pins: list[str | Path] = []
    if given.pins == "oldest":
        constraints = folder / "oldest.txt"
        constraints.write_text("\n".join(oldest(dependencies())))
        pins = ["--constraint", constraints]
    step("install", *pip, *pins, what)
    if given.pins == "development":
        indices = [part for url in NIGHTLY for part in ("--extra-index-url", url)]
        step("development versions", *pip, "--pre", "--upgrade", *indices, "llvmlite", "numba", "scikit-learn")


def options() -> argparse.ArgumentParser:
    """What the command takes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("python", help="the interpreter: a name on the path, or a path")
    parser.add_argument("tests", nargs="*", default=["tests"], help="files of tests (default: all, without the slow ones)")
    parser.add_argument("--dist", type=Path, help="source archive or wheel to install (default: this checkout)")
    parser.add_argument("--extras", default="test", help='extras to install, "" for none (default: test)')
    parser.add_argument("--pins", choices=("newest", "oldest", "development"), default="newest", help="versions of dependencies")
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
        names = [re.split(r"[><=]", one)[0] for one in dependencies()]
        step("versions", python, "-P", "-c", SHOWN, *names, "structpred")
        step("doctor", scripts / "structpred", "doctor")
        if not given.no_tests:
            # not `python -m pytest`: that would import the package from the checkout
            step("tests", scripts / "pytest", "-m", "not slow", "-rs", *given.tests)
    print("all steps passed")


if __name__ == "__main__":
    main()
