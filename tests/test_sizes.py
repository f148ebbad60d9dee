"""What keeps the code readable: the sizes of files and functions, and tests that ask by public names."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
PACKAGE = TESTS.parent / "structpred"

MAX_LINES = 400
MAX_FUNCTION_LINES = 80
MAX_PARAMETERS = 15  # of a function; so many may have more:
MAX_WIDE_FUNCTIONS = 5
#: what tests import of private modules that are no kernels, and private attributes that they read or replace: none is to be added
MAX_PRIVATE_IMPORTS, MAX_PRIVATE_ATTRIBUTES = 19, 61
#: names with a low line that Python itself, or a notebook, documents
DOCUMENTED = {"_replace", "_asdict", "_fields", "_make", "_repr_html_", "_exit"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def trees(root: Path) -> Iterator[tuple[str, str, ast.Module]]:
    """Name, text and syntax tree of each file below `root`."""
    for path in sorted(root.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        yield path.relative_to(root).as_posix(), text, ast.parse(text)


@cache  # reading all files takes seconds
def measured(root: Path) -> tuple[list[str], list[str]]:
    """The files and bodies of functions below `root` that are too long, and the functions with more than MAX_PARAMETERS
    parameters, self and cls not counted; one sentence each."""
    large, wide = [], []
    for file, text, tree in trees(root):
        if (lines := len(text.splitlines())) > MAX_LINES:
            large.append(f"{file}: {lines} lines, {MAX_LINES} at most")
        for node in ast.walk(tree):
            if isinstance(node, Function):
                first = node.body[1] if ast.get_docstring(node) is not None and len(node.body) > 1 else node.body[0]
                if (n := (node.end_lineno or 0) - first.lineno + 1) > MAX_FUNCTION_LINES:
                    large.append(f"{file}:{node.lineno}: the body of {node.name} has {n} lines, {MAX_FUNCTION_LINES} at most")
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                if (n := sum(one.arg not in ("self", "cls") for one in given)) > MAX_PARAMETERS:
                    wide.append(f"{file}: {node.name} has {n} parameters")
    return large, wide


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in DOCUMENTED


def private(root: Path) -> tuple[list[str], list[str]]:
    """What files below `root` know of the package that is private: imports of modules and names, kernels apart; and attributes
    that they read, or replace by name, and that are not of their own making."""
    imports, attributes = [], []
    for file, _, tree in trees(root):
        nodes = [*ast.walk(tree)]
        names = [f"{node.module}.{alias.name}" for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names]
        names += [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        ours = [name for name in names if name.startswith("structpred") and "_kernels" not in name]
        imports += [f"{file}: {name}" for name in ours if any(map(_is_private, name.split(".")))]
        own = {node.name for node in nodes if isinstance(node, Function | ast.ClassDef)}
        own |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)}
        own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        read = [(node.attr, node.lineno) for node in nodes if isinstance(node, ast.Attribute)]
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "setattr" and len(node.args) > 1:
                words = [one.value for one in node.args[:2] if isinstance(one, ast.Constant)]
                read += [(word.split(".")[-1], node.lineno) for word in words if isinstance(word, str)]
        attributes += [f"{file}:{line}: {name}" for name, line in read if _is_private(name) and name not in own]
    return imports, attributes


def test_files_and_functions_are_of_readable_size() -> None:
    """A file has at most 400 lines, also of tests; the body of a function of the package at most 80."""
    long = [path.name for path in TESTS.rglob("*.py") if len(path.read_text(encoding="utf-8").splitlines()) > MAX_LINES]
    found = measured(PACKAGE)[0] + long
    assert not found, "\n" + "\n".join(found)


def test_few_functions_have_many_parameters(tmp_path: Path) -> None:
    """At most a handful of functions take more than fifteen parameters: what goes together is passed as one tuple or object."""
    assert len(found := measured(PACKAGE)[1]) <= MAX_WIDE_FUNCTIONS, found
    names = ", ".join(f"x{k}" for k in range(MAX_PARAMETERS))
    (tmp_path / "a.py").write_text(
        f"def f({names}): ...\nclass A:\n    def g(self, {names}): ...\n    def h(self, {names}, *, y): ...\n"
    )
    assert measured(tmp_path)[1] == ["a.py: h has 16 parameters"]


def test_tests_ask_by_public_names(tmp_path: Path) -> None:
    """Tests hold promises to users: of what is private they may know kernels, and no more than they do."""
    imports, attributes = private(TESTS)
    assert len(imports) <= MAX_PRIVATE_IMPORTS, "\n" + "\n".join(imports)
    assert len(attributes) <= MAX_PRIVATE_ATTRIBUTES, "\n" + "\n".join(attributes)
    lines = "from structpred.a._b_kernels import c", "from structpred.a import _d", "import structpred.a._e", "def _f(): ..."
    (tmp_path / "a.py").write_text("\n".join([*lines, "x._f()", "x._g", "patch.setattr(x, '_h', 1)", "x.__dict__, x._replace"]))
    assert private(tmp_path) == (["a.py: structpred.a._d", "a.py: structpred.a._e"], ["a.py:6: _g", "a.py:7: _h"])


@pytest.mark.parametrize(("source", "expected"), [
    ("x = 1\n" * 401, "401 lines, 400 at most"), ("def f():\n" + "    x = 1\n" * 81, "the body of f has 81 lines"),
])  # fmt: skip
def test_what_is_too_large_is_caught(tmp_path: Path, source: str, expected: str) -> None:
    """A made-up file that is too long, or has a function that is, gives one sentence, which names the file and the rule."""
    (tmp_path / "a.py").write_text(source)
    (found,) = measured(tmp_path)[0]
    assert found.startswith("a.py")
    assert expected in found
