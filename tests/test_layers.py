"""The layers of docs/architecture.md, held by reading every import of the package, those inside functions included."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "structpred"

_BELOW_MODELS = {
    "errors", "runtime", "storage", "text", "core", "task", "rows", "contracts", "data", "projections", "io", "features",
    "oracles", "objectives", "layers", "slack", "trainers", "nonconvex",
}  # fmt: skip
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "runtime": {"errors"},
    "storage": {"runtime", "errors"},
    "text": {"errors"},
    "core": {"text", "runtime", "errors"},
    "task": {"core", "runtime", "errors"},
    "rows": {"task", "core", "runtime", "errors"},
    "data": {"storage", "runtime", "errors"},
    "projections": {"core", "runtime", "errors"},
    "io": {"data", "core", "storage", "text", "runtime", "errors"},
    "features": {"data", "task", "core", "runtime", "errors"},
    "oracles": {"core", "projections", "runtime", "errors"},
    "objectives": {"task", "rows", "core", "projections", "text", "runtime", "errors"},
    "layers": {"task", "core", "projections", "runtime", "errors"},
    "slack": {"task", "core", "runtime", "errors"},
    "trainers": {"task", "rows", "core", "objectives", "projections", "storage", "text", "runtime", "errors"},
    "nonconvex": {"core", "objectives", "projections", "slack", "text", "runtime", "errors"},
    "contracts": {"task", "rows", "core", "features", "oracles", "objectives", "layers", "trainers", "text", "runtime", "errors"},
    "fused": {"task", "core", "features", "oracles", "runtime", "errors"},  # it alone imports both, apart from models
    "models": _BELOW_MODELS,
    "evaluation": {"models", "data", "task", "core", "io", "text", "runtime", "errors"},
    "tuning": {"evaluation", "models", "trainers", "data", "core", "io", "storage", "text", "runtime", "errors"},
    "distributed": {"models", "trainers", "objectives", "data", "task", "core", "io", "storage", "runtime", "errors"},
    "compat": {"models", "data", "core", "io", "runtime", "errors"},
    "torch": {"layers", "oracles", "core", "runtime", "errors"},
    "bridges": {"models", "evaluation", "data", "core", "io", "text", "runtime", "errors"},
    "export": {"models", "oracles", "features", "data", "io", "storage", "runtime", "errors"},
    "experiments": _BELOW_MODELS | {"models", "evaluation"},
    "report": {"tuning", "evaluation", "core", "storage", "text", "errors"},
    "cli": _BELOW_MODELS
    | {"models", "evaluation", "tuning", "distributed", "compat", "bridges", "export", "experiments", "report", ""},
    "": _BELOW_MODELS | {"fused", "models", "evaluation"},  # structpred/__init__.py: the public names
}

# Libraries that are expensive to load or clash: the only files that may import them (a folder ends with a slash).
ONLY_IN = {
    "ortools": ("oracles/",),
    "highspy": ("oracles/",),
    "cvxpy": ("oracles/convex.py", "oracles/portfolio.py"),
    "torch": ("torch/",),
    "pandas": ("bridges/pandas.py",),
    "pyarrow": ("distributed/",),
    "datasets": ("bridges/datasets.py",),
    "spacy": ("bridges/spacy.py",),
    "nltk": ("bridges/nltk.py",),
    "pycrfsuite": ("compat/pycrfsuite.py",),
    "dask": ("distributed/",),
    "distributed": ("distributed/",),
    "numba": ("runtime/",),
}
# Loaded inside functions only, save in the named places.
LAZY = {
    "ortools": (),
    "highspy": (),
    "cvxpy": (),
    "matplotlib": (),
    "safetensors": (),
    "pandas": (),
    "pyarrow": (),
    "datasets": (),
    "spacy": (),
    "nltk": (),
    "pycrfsuite": (),
    "dask": (),
    "distributed": (),
    "numba": ("runtime/jit.py", "runtime/kernel_cache.py", "runtime/lanes.py"),
    "sklearn": ("models/linear/", "models/kernel_machine.py"),
}

# What no oracle imports: modules of the core that know more than part scores.
ABOVE_SCORES = ("structpred.core.feature_map", "structpred.core.costs")

ORACLE_ROOMS = (
    "chains",
    "trees",
    "fields",
    "solvers",
    "decisions",
    "composition",
)  # of private helpers; the oracles stand in front of them


class Import(NamedTuple):
    """One import: the file (relative to the package), the line, the module's full name, and whether it runs at import time."""

    file: str
    line: int
    module: str
    at_import_time: bool


@cache
def imports_of(path: Path, root: Path) -> tuple[Import, ...]:
    """Every import of a file: statements at any depth, and `import_module` or `__import__` of a constant name."""
    return tuple(_imports(path, root))


def _imports(path: Path, root: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(root).as_posix()
    within_functions = {
        id(inner)
        for outer in ast.walk(tree)
        if isinstance(outer, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for inner in ast.walk(outer)
    }
    for node in ast.walk(tree):
        for module in _modules(node, file):
            yield Import(file, node.lineno, module, id(node) not in within_functions and _called(node) != "later")


def _modules(node: ast.AST, file: str) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name != "structpred"]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "structpred":
        return [f"structpred.{node.attr}"]  # `import structpred` brings what is then used of it
    if isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            here = ["structpred", *file.split("/")[:-1]]
            base = ".".join(here[: len(here) - node.level + 1] + ([base] if base else []))
        # `from structpred import core` names a package, `from structpred import Oracle` a name of the package's own file
        return [f"{base}.{alias.name}" for alias in node.names]
    if (
        isinstance(node, ast.Call)
        and node.args
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ):
        return [node.args[0].value] if _called(node) in ("import_module", "__import__", "later") else []
    return []


def _called(node: ast.AST) -> str:
    """The name of the function that a call calls; nothing for what is no call. What `later` names is imported when it is used."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def package_of(file: str) -> str:
    """The layer of a file: its folder, `errors` for errors.py, `cli` for __main__.py, the empty name for __init__.py."""
    head = file.split("/")[0]
    return {"__init__.py": "", "__main__.py": "cli"}.get(head, head.removesuffix(".py"))


def _target(module: str) -> str | None:
    """The layer a module belongs to, None for other libraries."""
    parts = module.split(".")
    if parts[0] in ("oracles", "models"):  # the links at the top of the project are for people, not for imports
        return f"link {parts[0]}"
    if parts[0] != "structpred":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in MAY_IMPORT else ""


def violations(root: Path) -> list[str]:
    """Every broken rule of the tree below `root` (a folder laid out as structpred/), one sentence each."""
    found = []
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        if package_of(file) not in MAY_IMPORT:
            found.append(f"{file}: '{package_of(file)}' is in no row of the layer table")
            continue
        for one in imports_of(path, root):
            found += [f"{file}:{one.line}: imports {one.module}: {why}" for why in _broken_rules(one)]
    return found


def _broken_rules(one: Import) -> Iterator[str]:
    source, target = package_of(one.file), _target(one.module)
    if target is not None and target != source and target not in MAY_IMPORT[source] and one.module != "structpred.__version__":
        yield f"{source or 'structpred/__init__.py'} may not import {target or 'the package itself'}"
    if source == "oracles" and one.module.startswith(ABOVE_SCORES):
        yield "an oracle sees part scores, never features, losses or tasks"
    if target == source == "oracles" and _is_other_oracle(one):
        yield "no oracle imports another, save derived.py"
    name = Path(one.file).name
    if target is not None and _is_kernel_module(one.module) and one.at_import_time and not _is_kernel_file(name):
        yield "kernel modules load numba; import them inside functions"
    library = one.module.split(".")[0]
    if library in ONLY_IN and not _is_within(one.file, ONLY_IN[library]):
        yield f"{library} may be imported in {' and '.join(ONLY_IN[library])} only"
    if library in LAZY and one.at_import_time and not _is_within(one.file, LAZY[library]):
        yield f"{library} is imported inside functions only"
    if one.module.startswith(("structpred.runtime.jit", "structpred.runtime.lanes")) and not _is_kernel_file(name):
        yield "only _*_kernels.py compile"


def _is_other_oracle(one: Import) -> bool:
    if one.file in ("oracles/__init__.py", "oracles/derived.py", "oracles/second_order_tree.py"):  # the last is made of others
        return False
    rest = one.module.removeprefix("structpred.oracles").lstrip(".").split(".")[0]
    # kernels and shared helpers stand in rooms; oracles/mrf.py has no inference: the graph and the parent of its oracles;
    # those over a description, or over members, which are made with these, are the parents of those where they are known
    return rest not in ORACLE_ROOMS and rest not in ("mrf", "convex", "convex_points", "composed")


def _is_kernel_file(name: str) -> bool:
    return name.startswith("_") and name.endswith("_kernels.py")


def _is_kernel_module(module: str) -> bool:
    return any(part.startswith("_") and part.endswith("_kernels") for part in module.split("."))


def _is_within(file: str, places: tuple[str, ...]) -> bool:
    return any(file.startswith(place) if place.endswith("/") else file == place for place in places)


def files_imported(root: Path) -> dict[str, set[str]]:
    """For each file below `root` those that it imports, inside functions and for types only included."""
    files = {path.relative_to(root).as_posix() for path in root.rglob("*.py")}
    found: dict[str, set[str]] = {file: set() for file in files}
    for file in files:
        for one in imports_of(root / file, root):
            parts = one.module.split(".")
            if parts[0] != "structpred" or one.module == "structpred.__version__":
                continue
            for end in range(len(parts), 0, -1):  # the longest part of the name that is a file
                stem = "/".join(parts[1:end])
                if (known := {f"{stem}.py", f"{stem}/__init__.py".lstrip("/")} & files) and file not in known:
                    found[file] |= known
                if known:
                    break
    return found


def circles(root: Path) -> list[set[str]]:
    """The largest sets of files that all import each other, directly or through others."""
    imported = files_imported(root)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        left = list(imported[start])
        while left:
            if (file := left.pop()) not in seen:
                seen.add(file)
                left += imported[file]
        return seen

    after = {file: reached(file) for file in imported}
    around = [frozenset(other for other in after[file] if file in after[other]) for file in imported if file in after[file]]
    return [set(circle) for circle in sorted(set(around), key=sorted)]


def test_no_files_import_each_other() -> None:
    """Files can be read one after the other: no file imports, directly or through others, a file that imports it."""
    assert circles(PACKAGE) == []


def test_a_circle_is_caught(tmp_path: Path) -> None:
    """Files that import each other are found: through others, in functions, for types only; one that imports nothing is not."""
    (tmp_path / "core").mkdir()
    for name, source in {
        "a": "from structpred.core import b",
        "b": "def f():\n    from structpred.core.c import x",
        "c": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .a import y\nimport structpred.core.d",
        "d": "import structpred\nx = structpred.__version__",
    }.items():
        (tmp_path / "core" / f"{name}.py").write_text(source)
    assert circles(tmp_path) == [{"core/a.py", "core/b.py", "core/c.py"}]


def test_the_package_keeps_its_layers() -> None:
    """Each file of the package imports only what its row of the layer table allows."""
    found = violations(PACKAGE)
    assert not found, "\n" + "\n".join(found)


def test_numba_is_used_by_its_public_side() -> None:
    """One file names what numba does not document; its events are documented, though they lie in numba.core."""
    seen = {
        (one.file, one.module.split(".")[2])
        for path in PACKAGE.rglob("*.py")
        for one in imports_of(path, PACKAGE)
        if one.module.startswith("numba.core.")
    }
    assert ("runtime/compiled.py", "event") in seen
    assert {file for file, module in seen if module != "event"} == {"runtime/kernel_cache.py"}


def test_the_walk_sees_the_package() -> None:
    """The walk reads real files and real imports, so that an empty list of violations means something."""
    seen = [one for path in PACKAGE.rglob("*.py") for one in imports_of(path, PACKAGE)]
    assert any(one.file == "runtime/jit.py" and one.module == "numba.njit" and one.at_import_time for one in seen)
    assert any(one.file == "runtime/compiled.py" and one.module == "numba.core.event" and not one.at_import_time for one in seen)


BAD = {
    "trainers/a.py": ("def f():\n    from structpred.oracles.chain import ChainOracle\n", "trainers may not import oracles"),
    "core/i.py": ("from structpred.fused import pair_of\n", "core may not import fused"),
    "oracles/fuse.py": ("def f():\n    from structpred.fused.chains import x\n", "oracles may not import fused"),
    "oracles/sees.py": ("from structpred.core.feature_map import FeatureMap\n", "an oracle sees part scores, never features"),
    "slack/a.py": ("from structpred.models import ChainLabeler\n", "slack may not import models"),
    "nonconvex/a.py": ("import structpred.io.columns\n", "nonconvex may not import io"),
    "oracles/tree.py": ("from structpred.objectives import losses\n", "oracles may not import objectives"),
    "oracles/eisner.py": ("from structpred.oracles.chain import x\n", "no oracle imports another"),
    "oracles/mst.py": ("from .chain import x\n", "no oracle imports another"),
    "oracles/sibling.py": ("from . import chain\n", "no oracle imports another"),
    "oracles/lp.py": ("def f():\n    import cvxpy\n", "cvxpy may be imported in oracles/convex.py and oracles/portfolio.py only"),
    "oracles/convex.py": ("import cvxpy\n", "cvxpy is imported inside functions only"),
    "models/a.py": ("def f():\n    from ortools.math_opt.python import mathopt\n", "ortools may be imported in oracles/ only"),
    "models/b.py": ("from structpred.cli.main import main\n", "models may not import cli"),
    "models/c.py": ("import oracles.chain\n", "models may not import link oracles"),
    "core/a.py": ("def f():\n    import numba\n", "numba may be imported in runtime/ only"),
    "core/_b_kernels.py": ("from numba import njit\n", "numba may be imported in runtime/"),
    "core/c.py": ("from structpred.core._b_kernels import f\n", "kernel modules load numba"),
    "core/d.py": ("from structpred import Oracle\n", "core may not import the package itself"),
    "core/h.py": ("import structpred\nx = structpred.models\n", "core may not import models"),
    "core/j.py": (
        "from structpred.runtime.lazy_names import later\nk = later('structpred.models')\n",
        "core may not import models",
    ),
    "core/e.py": ("def f():\n    from structpred.runtime.jit import njit\n", "only _*_kernels.py compile"),
    "core/g.py": ("import importlib\nimportlib.import_module('structpred.models')\n", "core may not import models"),
    "io/a.py": ("if True:\n    import sklearn\n", "sklearn is imported inside functions only"),
    "report/a.py": ("import matplotlib.pyplot as plt\n", "matplotlib is imported inside functions only"),
    "report/b.py": ("from ..models import chain\n", "report may not import models"),
    "errors.py": ("from structpred.core import x\n", "errors may not import core"),
    "bridges/a.py": ("def f():\n    import pandas as pd\n", "pandas may be imported in bridges/pandas.py only"),
    "bridges/spacy.py": ("from spacy.tokens import Doc\n", "spacy is imported inside functions only"),
    "models/d.py": ("from structpred.bridges import to_pandas\n", "models may not import bridges"),
    "distributed/a.py": ("from distributed import Client\n", "distributed is imported inside functions only"),
    "trainers/b.py": ("def f():\n    import dask\n", "dask may be imported in distributed/ only"),
    "trainers/c.py": ("def f():\n    from structpred.distributed import fit\n", "trainers may not import distributed"),
    "extras/a.py": ("", "'extras' is in no row of the layer table"),
}


@pytest.mark.parametrize("file", BAD)
def test_a_broken_rule_is_caught(tmp_path: Path, file: str) -> None:
    """A made-up tree with one bad file gives one violation, which names the file and the rule."""
    source, expected = BAD[file]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(source)
    found = violations(tmp_path)
    assert len(found) == (2 if file == "core/_b_kernels.py" else 1), found
    assert found[0].startswith(file)
    assert expected in found[0]


def test_allowed_imports_pass(tmp_path: Path) -> None:
    """A made-up tree that uses every liberty of the table has no violation."""
    good = {
        "__init__.py": "from structpred.core import x\nfrom structpred.models import y\n",
        "cli/main.py": "import structpred\nfrom structpred import __version__\nfrom structpred.models import y\n",
        "bridges/spacy.py": "from structpred.evaluation import x\ndef f():\n    import spacy\n",
        "core/v.py": "import structpred\nx = structpred.__version__\n",
        "core/x.py": "def f():\n    from structpred.core._x_kernels import g\n",
        "core/_x_kernels.py": "from structpred.runtime.jit import njit\n",
        "models/linear/y.py": "import sklearn\n",
        "models/y.py": "from structpred.oracles.chain import z\nfrom structpred.trainers import w\n",
        "oracles/chain.py": "def f():\n    from structpred.oracles.chains._chain_kernels import g\n    import ortools\n",
        "oracles/convex.py": "def f():\n    import cvxpy\n",
        "oracles/derived.py": "from structpred.oracles.chain import z\n",
        "trainers/w.py": "from ..objectives import o\nfrom . import loop\n",
    }
    for file, source in good.items():
        (tmp_path / file).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / file).write_text(source)
    assert violations(tmp_path) == []
