"""What a release is made with: workflows, recipe, site, hooks and rules say what pyproject.toml and the Makefile say."""

import importlib.util
import re
import shlex
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import structpred

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="a source archive has no workflows")

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
PYTHONS = [one.rpartition(" ")[2] for one in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", one)]
WORKFLOWS = ["nightly", "release", "tests"]
COMMIT = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


def text(name: str) -> str:
    """A file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def workflow(name: str) -> dict[Any, Any]:
    """A workflow; YAML reads its key `on` as the truth value."""
    found: dict[Any, Any] = yaml.safe_load(text(f".github/workflows/{name}.yml"))
    return found


def steps(name: str) -> list[dict[str, Any]]:
    """All steps of all jobs of a workflow."""
    return [step for job in workflow(name)["jobs"].values() for step in job.get("steps", [])]


@pytest.fixture(scope="module")
def other_python() -> ModuleType:
    """The program that the workflows run."""
    spec = importlib.util.spec_from_file_location("other_python", ROOT / ".ci" / "other_python.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_these_are_all_workflows() -> None:
    """No workflow is left out below."""
    assert sorted(path.stem for path in (ROOT / ".github" / "workflows").iterdir()) == WORKFLOWS


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_only_read_and_runs_fixed_actions(name: str) -> None:
    """Each may read the repository and no more, keeps no credentials, runs actions by their commit, and ends in time."""
    found = workflow(name)
    assert found["permissions"] == {"contents": "read"}
    for job in found["jobs"].values():
        assert "uses" in job or 0 < job["timeout-minutes"] <= 90
    actions = [step for step in steps(name) if "uses" in step]
    assert [step["uses"] for step in actions if not COMMIT.fullmatch(step["uses"])] == []
    for step in actions:
        assert "actions/checkout" not in step["uses"] or step["with"]["persist-credentials"] is False


def test_the_matrix_is_what_pyproject_promises() -> None:
    """Every Python of the classifiers on three systems; the oldest libraries on the oldest, the source archive on the newest."""
    jobs = workflow("tests")["jobs"]
    matrix = jobs["test"]["strategy"]["matrix"]
    assert matrix["python"] == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    assert [one.partition("-")[0] for one in matrix["os"]] == ["ubuntu", "macos", "windows"]
    more = {(one["python"], one["pins"], one["dist"]) for one in matrix["include"]}
    assert more == {(PYTHONS[0], "oldest", "whl"), (PYTHONS[-1], "newest", "tar.gz")}
    assert workflow("nightly")["jobs"]["development"]["strategy"]["matrix"]["python"] == [PYTHONS[0], PYTHONS[-1]]
    for job in ("lint", "build"):
        assert [step["with"]["python-version"] for step in jobs[job]["steps"] if "setup-python" in step.get("uses", "")] == [
            PYTHONS[0]
        ]
    assert PYPROJECT["tool"]["mypy"]["python_version"] == PYTHONS[0]
    assert PYPROJECT["tool"]["ruff"]["target-version"] == f"py{PYTHONS[0].replace('.', '')}"


def test_the_tests_run_on_the_archive_that_was_checked() -> None:
    """One job builds archive and wheel, has twine check both, and hands them on; the others take them from there."""
    jobs = workflow("tests")["jobs"]
    commands = [step.get("run", "").partition("  #")[0].strip() for step in jobs["build"]["steps"]]
    assert commands.index("python -m build") < commands.index("python -m twine check --strict dist/*")
    assert [step["with"]["path"] for step in jobs["build"]["steps"] if "upload-artifact" in step.get("uses", "")] == ["dist/"]
    for job in (jobs["test"], workflow("release")["jobs"]["publish"]):
        assert job["needs"] in ("build", "tests")
        assert [step["with"]["name"] for step in job["steps"] if "download-artifact" in step.get("uses", "")] == ["dist"]


def test_the_oldest_pins_are_the_lower_bounds(other_python: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--pins oldest` resolves pyproject.toml, with the extras that are asked for, to its lower bounds, and installs these."""
    steps: list[list[str]] = []
    monkeypatch.setattr(other_python, "step", lambda name, *command: steps.append(list(map(str, command))))
    given = other_python.options().parse_intermixed_args(["python", "--pins", "oldest", "--extras", "test,plot"])
    other_python.install(Path("python"), given, tmp_path)
    resolve, install = " ".join(steps[-2]), steps[-1]
    assert resolve.startswith("python -m uv pip compile ")
    assert "--resolution lowest-direct" in resolve
    assert "--extra test --extra plot pyproject.toml" in resolve
    assert install[install.index("--constraint") + 1] == steps[-2][steps[-2].index("--output-file") + 1]
    assert install[-1] == f"{ROOT}[test,plot]"


def test_the_program_for_debian_says_what_it_takes() -> None:
    """Without a release of Debian it makes nothing, ends with 2, and prints its first comment."""
    done = subprocess.run(["bash", ROOT / ".ci" / "debian_python"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (2, "")
    assert done.stdout.startswith("The Python of another release of Debian")
    assert "set -e" not in done.stdout


def test_a_run_is_a_row_of_the_record(other_python: ModuleType, tmp_path: Path) -> None:
    """Errors count as failures; what neither failed nor was skipped has passed."""
    report = tmp_path / "report.xml"
    report.write_text('<testsuites><testsuite tests="20" failures="2" errors="1" skipped="4"/></testsuites>', encoding="utf-8")
    given = other_python.options().parse_intermixed_args(["python"])
    row = other_python.row(given, "3.14.1, numpy 2.5.0, scipy 1.18.0", report, 300.6)
    assert row == "| 3.14.1 | newest | numpy 2.5.0, scipy 1.18.0 | 13 | 3 | 4 | 301 |\n"


def commands_of(name: str) -> list[list[str]]:
    """The calls of other_python.py in a workflow, with the variables of their job filled in."""
    found = []
    for job in workflow(name)["jobs"].values():
        matrix = job.get("strategy", {}).get("matrix", {})
        names = {key.upper(): one[0] for key, one in matrix.items() if isinstance(one, list) and isinstance(one[0], str)}
        names["TESTS"] = " ".join(named_for_windows()) if "TESTS" in job.get("env", {}) else ""
        for step in job.get("steps", []):
            if "other_python.py" in step.get("run", ""):
                found.append(shlex.split(re.sub(r"\$(\w+)", lambda match, names=names: names[match[1]], step["run"])))
    return found


def named_for_windows() -> list[str]:
    """The tests that the workflow runs there."""
    found = re.search(r"'windows-latest' && '([^']+)' \|\| 'tests'", workflow("tests")["jobs"]["test"]["env"]["TESTS"])
    assert found is not None
    return found[1].split()


@pytest.mark.parametrize(("name", "pins"), [("tests", "newest"), ("nightly", "development")])
def test_the_program_takes_what_the_workflows_give_it(name: str, pins: str, other_python: ModuleType) -> None:
    """Its path and all options are right, and so are the names of tests."""
    (command,) = commands_of(name)
    assert (command[0], ROOT / command[1]) == ("python", Path(str(other_python.__file__)))
    given = other_python.options().parse_intermixed_args(command[2:])
    assert (given.python, given.pins, given.no_tests) == ("python", pins, False)
    assert all((ROOT / one).exists() for one in given.tests)


def test_names_of_tests_stand_before_or_after_options(other_python: ModuleType) -> None:
    """Both orders mean the same."""
    parse = other_python.options().parse_intermixed_args
    assert vars(parse(["python", "a.py", "b.py", "--pins", "oldest"])) == vars(
        parse(["python", "--pins", "oldest", "a.py", "b.py"])
    )


def test_the_named_for_windows_ask_for_nothing_of_posix() -> None:
    """None imports a module, or names a signal or call, that Windows lacks."""
    posix = re.compile(
        r"^\s*(?:import|from) (?:fcntl|resource|pty|pwd|grp)\b|SIGKILL|os\.(?:fork|kill|getuid|symlink)\b|symlink_to|/proc/", re.M
    )
    files = [
        file for one in named_for_windows() for file in ([ROOT / one] if one.endswith(".py") else (ROOT / one).rglob("*.py"))
    ]
    assert len(files) > 20
    assert [file.name for file in files if posix.search(file.read_text(encoding="utf-8"))] == []
    assert posix.search(text("tests/storage/test_locks.py"))


def test_a_tag_publishes_what_was_tested_and_needs_no_password() -> None:
    """Only a tag of a version publishes, after all tests, by the workflow's identity; no other job has one, none a secret."""
    release = workflow("release")
    assert release[True] == {"push": {"tags": ["v*"]}}
    assert release["jobs"]["tests"] == {"uses": "./.github/workflows/tests.yml"}
    publish = release["jobs"]["publish"]
    assert (publish["needs"], publish["environment"], publish["permissions"]) == ("tests", "release", {"id-token": "write"})
    last = publish["steps"][-1]
    assert last["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert "with" not in last
    assert "workflow_call" in workflow("tests")[True]
    for name in WORKFLOWS:
        assert not re.search(r"password|secrets\.|token:", text(f".github/workflows/{name}.yml").replace("id-token:", ""))
        identities = [job for job, found in workflow(name)["jobs"].items() if "permissions" in found]
        assert identities == (["publish"] if name == "release" else [])


def test_the_night_is_scheduled() -> None:
    """Development versions are tried each night, and by hand."""
    triggers = workflow("nightly")[True]
    assert set(triggers) == {"schedule", "workflow_dispatch"}
    assert re.fullmatch(r"\d+ \d+ \* \* \*", triggers["schedule"][0]["cron"])


def test_the_recipe_asks_for_what_pyproject_asks_for() -> None:
    """Requirements, build tool, commands and names of the conda package are those of the archive that it is made from."""
    recipe = yaml.safe_load(text("recipe/recipe.yaml"))

    def conda(requirement: str) -> str:
        return re.sub(r"(?=[<>=])", " ", requirement, count=1)

    wanted = [f"python {PROJECT['requires-python']}", *map(conda, PROJECT["dependencies"])]
    assert recipe["requirements"]["run"] == wanted
    assert recipe["requirements"]["host"] == [f"python {PYTHONS[0]}.*", "pip", *map(conda, PYPROJECT["build-system"]["requires"])]
    assert recipe["build"]["python"]["entry_points"] == [f"{name} = {place}" for name, place in PROJECT["scripts"].items()]
    assert recipe["package"] == {"name": PROJECT["name"], "version": "${{ version }}"}
    assert recipe["about"]["license"] == PROJECT["license"]
    assert [recipe["about"]["license_file"]] == PROJECT["license-files"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert all(importlib.util.find_spec(name) for name in recipe["tests"][0]["python"]["imports"])


def test_one_version() -> None:
    """The package, the citation and the recipe have the version of pyproject.toml, and the list of changes has a part on it."""
    version = PROJECT["version"]
    assert yaml.safe_load(text("CITATION.cff"))["version"] == version
    assert yaml.safe_load(text("recipe/recipe.yaml"))["context"]["version"] == version
    assert structpred.__version__ == version
    assert f"## {version}" in text("CHANGELOG.md")


def test_the_site_is_built_with_its_own_extra() -> None:
    """Read the Docs takes mkdocs.yml, the extra `docs` and a Python that is supported, and a warning fails it as it does here."""
    found = yaml.safe_load(text(".readthedocs.yaml"))
    assert found["version"] == 2
    assert found["build"]["tools"]["python"] in PYTHONS
    assert found["mkdocs"] == {"configuration": "mkdocs.yml", "fail_on_warning": True}
    (install,) = found["python"]["install"]
    assert install == {"method": "pip", "path": ".", "extra_requirements": ["docs"]}
    assert "docs" in PROJECT["optional-dependencies"]


def test_the_hooks_run_what_the_makefile_runs() -> None:
    """`pre-commit` calls the same three commands as `make lint` and the continuous integration, on the whole tree."""
    (local,) = yaml.safe_load(text(".pre-commit-config.yaml"))["repos"]
    assert local["repo"] == "local"
    assert all(hook["language"] == "system" and not hook["pass_filenames"] for hook in local["hooks"])
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", text("Makefile"), re.M)
    assert recipe is not None
    made = [line.strip().replace("$(BIN)", ".venv/bin") for line in recipe[1].splitlines()]
    assert [hook["entry"] for hook in local["hooks"]] == made
    assert re.findall(r'^part "(?:style|formatting|types)" (.*)$', text(".ci/run"), re.M) == made


@pytest.mark.parametrize("name", ["bug", "question", "wish"])
def test_an_issue_form_asks_for_something(name: str) -> None:
    """A form has a name, a description and fields with names of their own, the first of which has to be filled in."""
    form = yaml.safe_load(text(f".github/ISSUE_TEMPLATE/{name}.yml"))
    assert form["name"]
    assert form["description"]
    fields = [one for one in form["body"] if one["type"] != "markdown"]
    assert len({one["id"] for one in fields}) == len(fields)
    assert fields[0]["validations"]["required"] is True
    assert all(one["attributes"]["label"].endswith("?") for one in fields)


def test_the_form_for_bugs_asks_the_doctor_and_sends_hostile_files_elsewhere() -> None:
    """Whoever reports a bug is asked for `structpred doctor`, and told where a vulnerability is reported."""
    form = text(".github/ISSUE_TEMPLATE/bug.yml")
    assert "structpred doctor" in form
    assert "SECURITY.md" in form
    assert yaml.safe_load(text(".github/ISSUE_TEMPLATE/config.yml")) == {"blank_issues_enabled": True}


def test_the_support_window_is_that_of_pyproject() -> None:
    """CONTRIBUTING.md names the first and last Python and the oldest numba, below the heading that SECURITY.md points to."""
    part = text("CONTRIBUTING.md").partition("## Versions that are supported\n")[2].partition("\n## ")[0]
    assert f"Python {PYTHONS[0]} to {PYTHONS[-1]}" in part
    (numba,) = (one.partition(">=")[2] for one in PROJECT["dependencies"] if one.startswith("numba"))
    assert f"numba {numba} or newer" in part
    assert "CONTRIBUTING.md#versions-that-are-supported" in text("SECURITY.md")


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md"])
def test_reports_go_through_the_repository(name: str) -> None:
    """The rules send reports to the repository's private form; they name no person, address or host."""
    page = text(name)
    assert "Report a vulnerability" in " ".join(page.split())
    assert not re.search(r"@|https?:|www\.", page)
