"""What installing structpred asks of a machine: wheels only, Python 3.11 or newer, and make."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
#: what stands at the top for people; Windows may check them out as files of text
LINKS = ("models", "oracles")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
NO_INDEX = ("Connection", "Temporary failure in name resolution", "Max retries", "timed out")


def pip(*arguments: str, cwd: Path = ROOT) -> None:
    """Run pip; skips the test where the package index cannot be reached, fails it for any other error."""
    done = subprocess.run([*PIP, *arguments], capture_output=True, text=True, timeout=1800, cwd=cwd, check=False)
    if done.returncode and any(sign in done.stderr for sign in NO_INDEX):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run make as if by hand, also when make runs the tests (its own settings would be handed down)."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "MFLAGS"}
    return subprocess.run(["make", *arguments], capture_output=True, text=True, cwd=ROOT, timeout=1800, env=env, check=False)


def requirements() -> list[str]:
    """What structpred needs to run, with its solvers, pictures and clusters."""
    extras = PROJECT["optional-dependencies"]
    return [*PROJECT["dependencies"], *extras["solvers"], *extras["plot"], *extras["distributed"]]


@pytest.mark.slow
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_every_dependency_has_wheels(python: str, tmp_path: Path) -> None:
    """On each supported Python the dependencies resolve to wheels alone: nobody has to compile anything."""
    resolve(python, requirements(), tmp_path)


@pytest.mark.slow
def test_the_libraries_of_the_bridges_have_wheels(tmp_path: Path) -> None:
    """So do the libraries of structpred.bridges on the newest Python, for which wheels come last."""
    extras = PROJECT["optional-dependencies"]
    resolve("3.14", [one for name in ("pandas", "datasets", "spacy", "nltk") for one in extras[name]], tmp_path)


def resolve(python: str, wanted: list[str], folder: Path) -> None:
    """Let pip find wheels of these requirements and of all that they need."""
    report = folder / "report.json"
    options = ["--dry-run", "--ignore-installed", "--only-binary", ":all:", "--python-version", python, "--target", str(folder)]
    pip("install", *options, "--report", str(report), *wanted)
    assert report.stat().st_size > 0


@pytest.mark.slow
def test_the_wheel_is_pure_python_and_complete(tmp_path: Path) -> None:
    """The wheel is for any platform, carries every module and the type marker, and nothing but the package."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    tracked = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, cwd=ROOT, check=False)
    if tracked.returncode:
        pytest.skip("needs a git checkout")
    pip("wheel", "--no-deps", "--quiet", "--wheel-dir", str(tmp_path), ".")
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.endswith("-py3-none-any.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    files = {name for name in names if ".dist-info/" not in name}
    assert {name.split("/")[0] for name in files} == {"structpred"}
    assert {name for name in tracked.stdout.split("\0") if name.startswith("structpred/") and (ROOT / name).exists()} <= files
    assert not [name for name in files if "__pycache__" in name]


IMPORT_ALL = """
import importlib, sys
from structpred.errors import DependencyError
OPTIONAL = "cvxpy dask datasets distributed highspy matplotlib nltk ortools pandas pyarrow spacy torch".split()
for name in sys.stdin.read().split():
    try:
        importlib.import_module(name)
    except ImportError as error:
        if not isinstance(error, DependencyError) and str(error.name).partition(".")[0] not in OPTIONAL:
            raise
import structpred
print(structpred.__file__)
"""


@pytest.mark.slow
@pytest.mark.parametrize("links", [True, False])
def test_a_release_has_every_module_and_installs_from_its_source(links: bool, tmp_path: Path) -> None:
    """`python -m build` gives an archive and a wheel with every module of the tree, with and without the links at its top, and
    neither has the links; all modules import from a new environment."""
    pytest.importorskip("build", reason="build is not installed")
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    tree, out, venv = tmp_path / "tree", tmp_path / "out", tmp_path / "venv"
    shutil.copytree(
        ROOT, tree, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", ".hypothesis")
    )
    for name in LINKS:
        assert not (tree / name).exists() or (tree / name).is_symlink()
        if not links:
            (tree / name).unlink(missing_ok=True)
    done = run([sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(tree)])
    assert done.returncode == 0, done.stderr
    wanted = {path.relative_to(tree).as_posix() for path in (tree / "structpred").rglob("*.py")}
    (archive,), (wheel,) = out.glob("*.tar.gz"), out.glob("*.whl")
    with tarfile.open(archive) as file:
        inside = {name.partition("/")[2] for name in file.getnames()}
    assert wanted == {name for name in inside if name.startswith("structpred/") and name.endswith(".py")}
    assert wanted == {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
    assert not {name.partition("/")[0] for name in inside} & {*LINKS}

    run([sys.executable, "-m", "venv", "--without-pip", str(venv)]).check_returncode()
    python = venv / "bin" / "python"
    # libraries come from here; an editable installation in the same folder does not, because its .pth file is not read
    (site,) = venv.glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries))
    offline = ["--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed", "--quiet"]
    pip("--python", str(python), "install", *offline, str(archive), cwd=tmp_path)
    modules = sorted(name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in wanted)
    done = run([str(python), "-c", IMPORT_ALL], "\n".join(name for name in modules if not name.endswith("__main__")))
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(site)
    assert "structpred" in run([str(venv / "bin" / "structpred"), "--version"]).stdout


def run(command: list[str], given: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program outside the tree, so that nothing of the tree is imported by chance."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        command, input=given, capture_output=True, text=True, cwd=ROOT.anchor, timeout=1800, env=env, check=False
    )


def test_the_solver_pins_hold() -> None:
    """highspy is capped below 1.15, which clashes with OR-Tools, and both solvers stay in the range tried together."""
    pins = PROJECT["optional-dependencies"]["solvers"]
    assert "highspy>=1.14,<1.15" in pins
    assert "cvxpy>=1.9.3,<2" in pins
    assert "ortools>=9.15.6755,<9.16" in pins


def test_the_solvers_are_no_runtime_dependency() -> None:
    """structpred itself asks for neither solver: chains and their trainers work without them."""
    assert not [one for one in PROJECT["dependencies"] if one.startswith(("ortools", "cvxpy", "highspy"))]


@pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="a source archive has no links at its top")
def test_the_folders_people_extend_stand_at_the_top() -> None:
    """`oracles` and `models` at the top of the project are relative links into the package."""
    for name in LINKS:
        link = ROOT / name
        assert link.is_symlink()
        assert link.readlink() == Path("structpred") / name


def test_nothing_is_built_from_the_links_at_the_top() -> None:
    """The archive takes its files from folders and files by name, and the wheel from the package: a link is in neither list."""
    targets = PYPROJECT["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"] == {"packages": ["structpred"]}
    taken = targets["sdist"]["only-include"]
    assert not {*taken} & {*LINKS}
    assert [name for name in taken if not (ROOT / name).exists() or (ROOT / name).is_symlink()] == []


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("CANDIDATES=no-such-python", "structpred needs Python 3.11 or newer"),
        ("PYTHON=no-such-python", "no-such-python cannot be used"),
    ],
)
def test_make_says_when_there_is_no_python(setting: str, said: str, tmp_path: Path) -> None:
    """Without a usable Python `make install` fails with a sentence that says what is needed, and leaves nothing behind."""
    done = make("install", setting, f"VENV={tmp_path / 'venv'}")
    assert done.returncode != 0
    assert said in done.stderr
    assert not (tmp_path / "venv").exists()


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_installs_once(tmp_path: Path) -> None:
    """`make install` has nothing to do when the stamp is newer than pyproject.toml."""
    stamp = tmp_path / "venv" / ".installed"
    stamp.parent.mkdir()
    stamp.touch()
    done = make("-n", "install", f"VENV={stamp.parent}")
    assert done.returncode == 0
    assert "pip" not in done.stdout
