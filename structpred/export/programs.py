"""Write a fitted model as a program of its own: what a predictor of `structpred.export.light` reaches, and its weights."""

import ast
import hashlib
import io
import json
import os
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import structpred
from structpred.errors import DataError, ParameterError
from structpred.export.parts import Parts, chain_parts, label_set_parts
from structpred.models import ChainLabeler, HierarchicalMultiLabel, MultiLabelMRF
from structpred.storage.atomic import check_target, write_atomic

SOURCES = Path(__file__).resolve().parent.parent
_LIGHT = "structpred.export.light"
#: the file of a program's own predictor, and of a chain the one that reads its kind of input
CHAIN, LABEL_SETS = f"{_LIGHT}.chain_predictor", f"{_LIGHT}.label_set_predictor"
INPUTS = {"rows": f"{_LIGHT}.row_input", "tokens": f"{_LIGHT}.token_input", "numeric": f"{_LIGHT}.number_input"}


class Exported(NamedTuple):
    """The files of a program."""

    program: Path
    weights: Path


def export_predictor(model: Any, path: str | os.PathLike[str]) -> Exported:
    """Write a fitted model as a program that needs NumPy alone and predicts the same labels, bit for bit.

    The program is the file `path`, which ends in .py; its weights go into a file of the same name that ends in .npz, beside it.
    Both are written atomically, the weights first: a program refuses weights that are not its own, by their checksum.

    As a module it has `predict(X, allowed=None)` for a chain, with X as the model takes it (arrays instead of sparse matrices),
    and `predict(X)` for label sets; as a script `python tagger.py FILE` writes what `structpred predict` does.

    Parameters
    ----------
    model : ChainLabeler, MultiLabelMRF or HierarchicalMultiLabel
        A fitted model; of label sets one with up to 16 labels, without cycles among its pairs, or under a hierarchy that is a
        forest. The settings of training do not matter.
    path : path
        The program.

    Raises
    ------
    ParameterError
        Another kind of model, or something in it that the program cannot do, which the message names; nothing is written.
    DataError, StorageError
        A path that cannot be written.

    Examples
    --------
    >>> import runpy, tempfile
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(max_iter=20).fit([[{"w": "the"}, {"w": "cat"}]], [["DET", "NOUN"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = export_predictor(model, Path(folder) / "tagger.py")
    ...     tagger = runpy.run_path(str(files.program))
    ...     [labels.tolist() for labels in tagger["predict"]([[{"w": "the"}, {"w": "cat"}]])]
    [['DET', 'NOUN']]
    """
    program = Path(path)
    if program.suffix != ".py" or not program.stem.isidentifier():
        raise DataError(f"{program}: expected the name of a Python module, such as tagger.py")
    parts, predictor, own_input = _parts_of(model)
    weights = program.with_suffix(".npz")
    for target in (program, weights):
        check_target(target)
    raw = packed(parts)
    source = bundled(predictor, own_input, weights.name, hashlib.sha256(raw).hexdigest())
    write_atomic(weights, raw)
    write_atomic(program, source.encode())
    return Exported(program, weights)


def _parts_of(model: Any) -> tuple[Parts, str, str]:
    """What the program needs of a model, its predictor and its input. Subclasses may predict something else: they are refused."""
    kinds: dict[type, Callable[[Any], Parts]] = {
        ChainLabeler: chain_parts, MultiLabelMRF: label_set_parts, HierarchicalMultiLabel: label_set_parts,
    }  # fmt: skip
    if type(model) not in kinds:
        known = ", ".join(kind.__name__ for kind in kinds)
        raise ParameterError(f"a {type(model).__name__} cannot be exported; light programs are written for {known}")
    model._check_fitted()
    parts = kinds[type(model)](model)
    return (parts, CHAIN, INPUTS[parts.settings["input"]]) if type(model) is ChainLabeler else (parts, LABEL_SETS, "")


def packed(parts: Parts) -> bytes:
    """The weights file: arrays, and lists of strings and settings as JSON in arrays of bytes."""
    arrays: dict[str, npt.NDArray[Any]] = {name: np.ascontiguousarray(array) for name, array in parts.arrays.items()}
    texts = {f"text.{name}": listed for name, listed in parts.texts.items()} | {"settings": parts.settings}
    arrays |= {name: np.frombuffer(json.dumps(value).encode(), np.uint8) for name, value in texts.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def bundled(predictor: str, own_input: str, weights: str, sha256: str) -> str:
    """What a predictor reaches of the library, as one file: of each module its docstring and the definitions that are used.

    own_input: the module that a chain has its input from. `VERSION`, `WEIGHTS` and `SHA256` are written anew.
    """
    version = structpred.__version__
    head = (
        f'"""A predictor that needs NumPy alone, written by structpred {version}; its weights are {weights}.\n\n'
        'Copyright (c) the structpred developers; BSD 3-Clause License.\n"""'
    )
    given = {name: f"{name} = {value!r}" for name, value in (("VERSION", version), ("WEIGHTS", weights), ("SHA256", sha256))}
    reached, imports = defaultdict[str, set[int]](set), set[str]()
    left = [(predictor, k) for k in range(len(_source(predictor, own_input).statements))]
    while left:
        module, k = left.pop()
        if k in reached[module]:
            continue
        source = _source(module, own_input)
        if not reached[module]:
            left += [(module, j) for j, one in enumerate(source.statements) if not one.names]
        reached[module].add(k)
        for name in source.statements[k].used:
            if name in source.places:
                left.append((module, source.places[name]))
            elif name in source.own:
                left.append((source.own[name], _source(source.own[name], own_input).places[name]))
            elif name in source.others:
                imports.add(source.others[name])
    order = TopologicalSorter({module: sorted(reached.keys() & _source(module, own_input).own.values()) for module in reached})
    parts = [
        given.get(one.names[0], one.text) if one.names else one.text
        for module in order.static_order()
        for k, one in enumerate(_source(module, own_input).statements)
        if k in reached[module]
    ]
    return "\n\n".join([head, "\n".join(sorted(imports)), *dict.fromkeys(parts)]) + "\n"  # an alias of two modules comes once


class _Statement(NamedTuple):
    """A statement of a module, with the comments above it, the names that it defines, and those that it uses."""

    text: str
    names: list[str]
    used: set[str]


class _Source(NamedTuple):
    """A module of the library. places: where in it names are defined. own: names from other modules of the library -> module.

    others: names from elsewhere -> the import.
    """

    statements: list[_Statement]
    places: dict[str, int]
    own: dict[str, str]
    others: dict[str, str]


@cache
def _source(module: str, own_input: str) -> _Source:
    text = SOURCES.joinpath(*module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")
    source, lines, end = _Source([], {}, {}, {}), text.split("\n"), 0
    for node in ast.parse(text).body:
        start, end = end, node.end_lineno or 0
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("structpred."):
            origin = own_input if node.module == INPUTS["tokens"] else str(node.module)
            source.own.update((alias.name, origin) for alias in node.names)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            origin = f"from {node.module} import " if isinstance(node, ast.ImportFrom) else "import "
            source.others.update((alias.asname or alias.name, origin + ast.unparse(alias)) for alias in node.names)
        else:
            names = _defined(node)
            source.places.update(dict.fromkeys(names, len(source.statements)))
            used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            source.statements.append(_Statement("\n".join(lines[start:end]).strip("\n"), names, used))
    return source


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement at the top of a module defines."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
