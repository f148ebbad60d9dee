"""What importing structpred loads, and in which surroundings it still works; each promise in a fresh process."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import structpred

# the one that is imported: the tests of a release run against an installed one
PACKAGE = Path(importlib.util.find_spec("structpred").origin).parent
EXPENSIVE = ("numba", "cvxpy", "ortools", "sklearn", "matplotlib", "highspy", "safetensors", "dask", "distributed")

SOLVE_WITH_CVXPY = """
import cvxpy as cp
x = cp.Variable(3)
problem = cp.Problem(cp.Maximize(x @ [3.0, 2.0, 1.0]), [x >= 0, cp.sum(x) <= 2, x[0] <= 1])
for solver in (cp.HIGHS, cp.CLARABEL):
    problem.solve(solver=solver)
    assert abs(problem.value - 5.0) < 1e-5, (solver, problem.value)
"""
SOLVE_WITH_ORTOOLS = """
from ortools.linear_solver import pywraplp
from ortools.math_opt.python import mathopt
model = mathopt.Model()
x = [model.add_variable(lb=0.0, ub=1.0) for _ in range(3)]
model.add_linear_constraint(sum(x) <= 2.0)
model.maximize(3 * x[0] + 2 * x[1] + x[2])
assert abs(mathopt.solve(model, mathopt.SolverType.GLOP).objective_value() - 5.0) < 1e-6
old = pywraplp.Solver.CreateSolver("GLOP")
y = old.NumVar(0.0, 4.0, "y")
old.Maximize(2 * y)
assert old.Solve() == pywraplp.Solver.OPTIMAL and abs(old.Objective().Value() - 8.0) < 1e-6
"""


def fresh(code: str, env: dict[str, str] | None = None) -> str:
    """What a new Python process prints when it runs `code`; fails the test with its errors if it ends badly."""
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, stdin=subprocess.DEVNULL, env=env, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_structpred_is_light() -> None:
    """`import structpred` loads no compiler, solver, plotter, estimator library or cluster."""
    loaded = fresh("import sys, structpred; print(*sys.modules)").split()
    assert "structpred" in loaded
    assert [name for name in EXPENSIVE if name in loaded] == []


@pytest.mark.parametrize("package", ["structpred.bridges", "structpred.io", "structpred.layers", "structpred.models"])
def test_names_for_type_checkers_are_those_that_are_loaded(package: str) -> None:
    """What a lazy package imports under TYPE_CHECKING is what it offers, and what its star stands for."""
    module = importlib.import_module(package)
    assert sorted(module.__all__) == dir(module)


def test_an_estimator_loads_what_it_is_made_of() -> None:
    """Importing the chain labeler runs at most 110 files; slack, layers, readers and shards come when they are used."""
    code = "import sys, structpred.models.chain.labeler; print(*(getattr(m, '__file__', None) for m in sys.modules.values()))"
    loaded = [path for name in fresh(code).split() if (path := Path(name)).is_relative_to(PACKAGE)]
    assert PACKAGE / "models" / "chain" / "labeler.py" in loaded
    run = [path for path in loaded if len(ast.parse(path.read_text(encoding="utf-8")).body) > 1]  # more than a docstring
    assert len(run) <= 110, sorted(path.relative_to(PACKAGE).as_posix() for path in run)
    assert not {path.relative_to(PACKAGE).parts[0] for path in run} & {"slack", "layers", "io", "compat", "distributed"}


def test_the_estimators_are_names_of_the_package() -> None:
    """Every public name of structpred.models is one of structpred, the same object; importing the package loads none of them."""
    code = (
        "import sys, structpred; before = {*sys.modules}; import structpred.models as models\n"
        "assert models.__all__ and not {'structpred.models.base', 'structpred.models.files'} & before\n"
        "print(*(name for name in models.__all__ if getattr(structpred, name) is not getattr(models, name)))"
    )
    assert fresh(code).split() == []


@pytest.mark.parametrize("module", ["structpred", "structpred.cli"])
def test_the_package_runs_as_the_command(module: str) -> None:
    """`python -m structpred` is `structpred`."""
    command = [sys.executable, "-m", module, "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"structpred {structpred.__version__}\n", "")


@pytest.mark.slow
def test_no_module_loads_an_expensive_library_unasked() -> None:
    """Importing all modules but kernels, what compiles them, and those for PyTorch loads none of them, save sklearn by models."""
    compiling, bound = ("jit.py", "kernel_cache.py", "lanes.py"), ("torch", "nltk")  # the last two need their library
    modules = sorted(
        ".".join(("structpred", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if not path.name.endswith("_kernels.py")
        and path.name not in (*compiling, "__main__.py")
        and not {path.parent.name, path.stem} & {*bound}
    )
    code = f"import sys, importlib\nfor name in {modules!r}: importlib.import_module(name)\nprint(*sys.modules)"
    loaded = fresh(code).split()
    assert set(modules) <= set(loaded)
    assert [name for name in EXPENSIVE if name in loaded and name != "sklearn"] == []


@pytest.mark.slow
def test_cvxpy_then_ortools_both_solve() -> None:
    """cvxpy imported first, OR-Tools second, in one process: both solve (highspy 1.15 would break this)."""
    fresh(SOLVE_WITH_CVXPY + SOLVE_WITH_ORTOOLS + SOLVE_WITH_CVXPY)


@pytest.mark.slow
def test_ortools_then_cvxpy_both_solve() -> None:
    """OR-Tools imported first, cvxpy second, in one process: both solve, cvxpy with HiGHS too."""
    fresh(SOLVE_WITH_ORTOOLS + SOLVE_WITH_CVXPY + SOLVE_WITH_ORTOOLS)


@pytest.fixture
def read_only_copy(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A copy of the package none of whose folders can take a cache, and an environment without a home folder.

    A file stands where each __pycache__ would be made: that stops root too, whom permission bits do not.
    """
    copy = tmp_path / "site" / "structpred"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [copy, *(path for path in copy.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").touch()
    (tmp_path / "temp").mkdir()
    dropped = {"NUMBA_CACHE_DIR", "HOME", "USERPROFILE"}
    env = {name: value for name, value in os.environ.items() if name not in dropped}
    nowhere = str(copy / "__pycache__" / "below_a_file")
    return copy, {
        **env,
        "PYTHONPATH": str(copy.parent),
        "XDG_CACHE_HOME": nowhere,
        "LOCALAPPDATA": nowhere,
        "TMPDIR": str(tmp_path / "temp"),
    }


KERNEL = "{source}\n@njit(cache=True, nogil=True)\ndef twice(x):\n    return x + x\n"
CALL = (
    "import logging; logging.basicConfig(level=logging.INFO); from structpred.core._probe_kernels import twice; print(twice(21))"
)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the user's cache folder is not found through the environment")
def test_kernels_compile_where_nothing_can_be_written(read_only_copy: tuple[Path, dict[str, str]]) -> None:
    """Read-only and without a home, a kernel compiles and says so once; the second process takes it from a cache."""
    copy, env = read_only_copy
    (copy / "core" / "_probe_kernels.py").write_text(KERNEL.format(source="from structpred.runtime.jit import njit"))
    errors = f"import sys; sys.stderr = sys.stdout; {CALL}"
    first, second = fresh(errors, env), fresh(errors, env)
    assert first.splitlines()[-1] == second.splitlines()[-1] == "42"
    assert first.count("compiling kernels") == 1
    assert "compiling kernels" not in second
    assert any(Path(env["TMPDIR"]).rglob("*.nbc"))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the user's cache folder is not found through the environment")
def test_numba_alone_would_fail_there(read_only_copy: tuple[Path, dict[str, str]]) -> None:
    """The same kernel without our guard fails in the same surroundings: the test above tests something."""
    copy, env = read_only_copy
    (copy / "core" / "_probe_kernels.py").write_text(KERNEL.format(source="from numba import njit"))
    with pytest.raises(AssertionError, match="no locator available"):
        fresh(CALL, env)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the user's cache folder is not found through the environment")
def test_every_kernel_file_is_guarded(read_only_copy: tuple[Path, dict[str, str]]) -> None:
    """Each kernel file of the package loads in a read-only installation without a home, whichever is the first."""
    copy, env = read_only_copy
    for path in copy.rglob("_*_kernels.py"):
        fresh(f"import {'.'.join(path.relative_to(copy.parent).with_suffix('').parts)}", env)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("package", "names", "modules"),
    [
        (
            "structpred",
            {"Oracle", "FeatureMap", "Task", "check_oracle", "ChainLabeler", "load", "trainers", "oracles", "models"},
            {"Any", "logging", "core.task"},
        ),
        ("structpred.oracles", {"ChainOracle", "AssignmentOracle", "TreeMRF"}, {"chain", "Oracle"}),
        ("structpred.trainers", {"BCFW", "SGD", "LBFGS", "CoCoA"}, {"loop", "Trainer", "lazy_classes"}),
        ("structpred.layers", {"SPOPlus", "CRF", "SparseMAP"}, {"lazy_names", "TYPE_CHECKING"}),
        ("structpred.models", {"ChainLabeler", "DependencyParser", "load"}, {"FILES", "lazy_names", "TYPE_CHECKING"}),
    ],
)
def test_completion_offers_the_public_names(package: str, names: set[str], modules: set[str]) -> None:
    """`dir` of a package, before anything of it is used, gives names that can all be loaded, and nothing else."""
    code = f"import {package} as p; found = dir(p); [getattr(p, name) for name in found]; print(*found); print(*dir(p))"
    before, after = fresh(code).splitlines()
    assert before == after
    found = set(before.split())
    assert names <= found
    assert not modules & found
    assert not [name for name in found if name.startswith("_")]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("package", ["structpred", "structpred.oracles", "structpred.trainers", "structpred.layers"])
def test_a_name_that_is_not_there_is_an_attribute_error(package: str) -> None:
    """As of any module, and the import of it an ImportError."""
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Oracel'"):
        getattr(importlib.import_module(package), "Oracel")  # noqa: B009
