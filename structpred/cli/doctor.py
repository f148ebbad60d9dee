"""`structpred doctor`: is this installation valid? Versions, solvers, the kernel cache, the data; one verdict per line."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import click

import structpred
from structpred.cli.options import general_options
from structpred.cli.session import EXIT_DATA
from structpred.runtime.compiled import find_cache
from structpred.runtime.dependencies import installed_version, solver_clash

Verdict = Literal["ok", "missing", "broken"]

# distribution, module to import, and the extra it belongs to (none: structpred cannot work without it)
LIBRARIES: tuple[tuple[str, str, str | None], ...] = (
    ("numpy", "numpy", None), ("scipy", "scipy", None), ("numba", "numba", None), ("scikit-learn", "sklearn", None),
    *((name, name, "solvers") for name in ("ortools", "cvxpy", "highspy")), ("matplotlib", "matplotlib", "plot"),
)  # fmt: skip
SOLVERS = ("cvxpy", "ortools")
TIMEOUT = 300.0  # seconds for one child process; a first import from a cold disk can be slow

# Run in child processes: a broken library may end its process, and the order of imports is what is being tried.
_SOLVE = {
    "cvxpy": """
import cvxpy as cp
x = cp.Variable(2)
problem = cp.Problem(cp.Minimize(cp.sum(x)), [x >= 0, x[0] + 2 * x[1] >= 4])
problem.solve(solver=cp.{solver})
assert abs(problem.value - 2.0) < 1e-5, problem.value
""",
    "ortools": """
from ortools.math_opt.python import mathopt
model = mathopt.Model()
x, y = model.add_variable(lb=0.0), model.add_variable(lb=0.0)
model.add_linear_constraint(x + 2 * y >= 4.0)
model.minimize(x + y)
result = mathopt.solve(model, mathopt.SolverType.GLOP)
assert abs(result.objective_value() - 2.0) < 1e-6, result.termination
""",
}


@dataclass(frozen=True)
class Finding:
    """One line of the diagnosis: what was looked at, the verdict, what was seen, and what to do about it ("" if nothing)."""

    name: str
    verdict: Verdict
    detail: str
    advice: str = ""
    required: bool = True


def diagnose() -> list[Finding]:
    """Look at everything structpred needs. Starts a few child processes; takes some seconds."""
    libraries = [_library(*entry) for entry in LIBRARIES]
    found = Finding("structpred", "ok", structpred.__version__)
    return [_python(), found, *libraries, *_clash(), *_solver_orders(), _kernel_cache(), _data()]


def is_sound(findings: Sequence[Finding]) -> bool:
    """Whether structpred can do its work here: nothing is broken, and nothing required is missing."""
    return not any(f.verdict == "broken" or (f.verdict == "missing" and f.required) for f in findings)


def render(findings: Sequence[Finding]) -> str:
    """The diagnosis as text: one line a finding, what to do below it, and the outcome at the end."""
    width = max(len(f.name) for f in findings)
    lines = []
    for f in findings:
        optional = " (optional)" if f.verdict == "missing" and not f.required else ""
        lines.append(f"{f.verdict + optional:<18} {f.name:<{width}}  {f.detail}")
        if f.advice:
            lines.append(f"{'':<18} {'':<{width}}  -> {f.advice}")
    failed = "structpred does not work in this environment; see above."
    lines.append("Everything that structpred needs is there and works." if is_sound(findings) else failed)
    return "\n".join(lines)


def _python() -> Finding:
    detail = f"{platform.python_version()} ({platform.system()} {platform.machine()}, {sys.executable})"
    if sys.version_info < (3, 11):  # noqa: UP036 - run in a Python that is too old, doctor has to say so
        return Finding("python", "broken", detail, "structpred needs Python 3.11 or newer")
    return Finding("python", "ok", detail)


def _library(distribution: str, module: str, extra: str | None) -> Finding:
    package = "structpred" if extra is None else f"structpred[{extra}]"
    advice = f"python -m pip install '{package}'"
    found = installed_version(distribution)
    if found is None:
        return Finding(distribution, "missing", "not installed", advice, required=extra is None)
    problem = _run(f"import {module}")
    if problem:
        return Finding(distribution, "broken", f"{found}: {problem}", f"python -m pip install --force-reinstall '{package}'")
    return Finding(distribution, "ok", found)


def _clash() -> list[Finding]:
    """Whether the installed versions are compatible; nothing where one of the two is not installed."""
    highspy, ortools = installed_version("highspy"), installed_version("ortools")
    if highspy is None or ortools is None:
        return []
    message = solver_clash(highspy, ortools)
    if message is None:
        return [Finding("highspy beside ortools", "ok", "the installed versions are compatible")]
    problem, advice = message.split(": ", 1)
    return [Finding("highspy beside ortools", "broken", problem, advice)]


def _solver_orders() -> list[Finding]:
    """Solve a tiny linear program with both libraries in one process, in both import orders."""
    if any(installed_version(name) is None for name in SOLVERS):
        advice = "python -m pip install 'structpred[solvers]'"
        return [Finding("solvers together", "missing", "needs both cvxpy and ortools", advice, required=False)]
    solver, found = "CLARABEL" if installed_version("highspy") is None else "HIGHS", []
    for order in (SOLVERS, SOLVERS[::-1]):
        name, problem = ", then ".join(order), _run("\n".join(_SOLVE[one].replace("{solver}", solver) for one in order))
        fine = Finding(name, "ok", "both solve a small linear program in one process")
        broken = Finding(name, "broken", problem, "python -m pip install 'structpred[solvers]' in a fresh environment")
        found.append(broken if problem else fine)
    return found


def _kernel_cache() -> Finding:
    location = find_cache()
    detail = f"{location.folder} ({location.reason})"
    if not location.lasting:
        advice = "set NUMBA_CACHE_DIR to a folder that you alone can write, or every process compiles again for some seconds"
        return Finding("kernel cache", "missing", detail, advice, required=False)
    return Finding("kernel cache", "ok", detail)


def _data() -> Finding:
    named = os.environ.get("STRUCTPRED_DATA")
    advice = "set STRUCTPRED_DATA to the folder of data sets; only tests and benchmarks on real data need it"
    if not named:
        return Finding("data folder", "missing", "STRUCTPRED_DATA is not set", advice, required=False)
    folder = Path(named)
    if not folder.is_dir():
        return Finding("data folder", "missing", f"{folder} is not a folder", advice, required=False)
    sets = sum(1 for entry in folder.iterdir() if entry.is_dir())
    return Finding("data folder", "ok", f"{folder} ({sets} entries)")


def _run(code: str) -> str:
    """Run code in a fresh Python of this environment; "" if it ended well, else its last line of output."""
    command = [sys.executable, "-P", "-c", code]  # -P: a numpy.py in the working directory is not the user's numpy
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return f"no answer within {TIMEOUT:.0f} s"
    if done.returncode == 0:
        return ""
    if done.returncode < 0:
        return f"the process was ended by signal {-done.returncode}"
    return (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]


@click.command(short_help="Check the installation.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@general_options
def doctor(as_json: bool) -> None:
    """Check Python, the libraries, the solvers in both import orders, the kernel cache and the data folder.

    Takes some seconds, because solvers are tried in separate processes. Exit code 1 if something needed is missing or broken.
    """
    found = diagnose()
    ok = is_sound(found)
    click.echo(json.dumps({"ok": ok, "findings": [asdict(f) for f in found]}) if as_json else render(found))
    if not ok:
        raise click.exceptions.Exit(EXIT_DATA)
