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
from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import DataError, ParameterError
from structpred.features.sequences import weight_table
from structpred.io.columns import COLUMN_FORMATS
from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
from structpred.models import ChainLabeler, HierarchicalMultiLabel, MultiLabelMRF
from structpred.models.chain.constraints import rules_inside
from structpred.models.chain.inputs import NumericInput, RowInput, TokenInput, refuse_transitions
from structpred.oracles.fields._label_forest import forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF, tree_plan
from structpred.storage.atomic import check_target, write_atomic
from structpred.storage.bundles import Bundle

SOURCES = Path(__file__).resolve().parent.parent
_LIGHT = "structpred.export.light"
#: the file of a program's own predictor, and of a chain the one that reads its kind of input
CHAIN, LABEL_SETS = f"{_LIGHT}.chain_predictor", f"{_LIGHT}.label_set_predictor"
INPUTS = {"rows": f"{_LIGHT}.row_input", "tokens": f"{_LIGHT}.token_input", "numeric": f"{_LIGHT}.number_input"}


class Parts(NamedTuple):
    """settings: plain data. arrays, texts (lists of strings): by name, as `structpred.export.light` reads them."""

    settings: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    texts: dict[str, list[str]]


#: the format of files, unless the model says another one, and where it does those that fit
_FORMATS = {"rows": "columns", "tokens": "crfsuite", "numeric": "ocr"}


def chain_parts(model: ChainLabeler) -> Parts:
    """Weights, labels, features and constraints."""
    if model.stages != 1:
        raise ParameterError("a ChainLabeler of two stages cannot be exported: a program has one; train it with stages=1")
    labels = model.classes_.tolist()
    parts = _input_parts(model.input_)
    arrays = {"table": weight_table(model.coef_, len(labels))}
    if (rules := rules_inside(model.constraints, model.coding_)) is not None:
        arrays |= dict(zip(("follow", "first", "last"), rules.tables(labels), strict=True))
    settings = {"labels": labels, "input": model.input_.kind, **_file_settings(model), **parts.settings}
    if model.coding_ is not None:
        settings["coding"] = list(model.coding_)
    return Parts(settings, arrays | parts.arrays, parts.texts)


def _input_parts(input_: Any) -> Parts:
    """How tokens become features."""
    if isinstance(input_, NumericInput):
        return Parts({"n_features": input_.n_columns, "intercept": bool(input_.intercept)}, {}, {})
    assert isinstance(input_, TokenInput | RowInput)
    (part := Bundle({})).add("arrays", beside := input_.arrays.to_bundle())
    settings: dict[str, Any] = {"arrays": beside.header, "n_bits": None}
    if isinstance(input_, TokenInput):
        known = input_.features
        if isinstance(known, FeatureDictionary):
            return Parts(settings, part.arrays, part.texts | {"names": known.names})
        return Parts(settings | {"n_bits": known.n_bits}, part.arrays, part.texts)
    featurizer = input_.features
    refuse_transitions(featurizer.templates, "exported programs")
    n_columns = 1 + max((atom.column for template in input_.templates for atom in template.atoms), default=0)
    settings |= {"templates": [template.to_dict() for template in featurizer.templates], "n_columns": n_columns}
    own = featurizer.to_bundle()
    arrays, texts = part.arrays | own.arrays, part.texts | own.texts
    if isinstance(featurizer, HashedTemplateFeaturizer):
        return Parts({**settings, "n_bits": featurizer.hasher.n_bits, "padding": None}, arrays, texts)
    return Parts({**settings, "padding": featurizer._padding}, arrays, texts)


def _file_settings(model: ChainLabeler) -> dict[str, Any]:
    """The format of data files, and how many columns they may have: the labels may be missing where they are last."""
    known = getattr(model, "reader_", None) or {}
    format = known.get("format") or _FORMATS[model.input_.kind]
    format = "columns" if format == "jsonl" else format  # which a program does not read
    column, width = known.get("label_column"), known.get("n_columns")
    if width is None:
        return {"format": format, "widths": [w] if (w := COLUMN_FORMATS.get(format)) else [], "label_column": -1}
    widths = [width, width - 1] if column == width - 1 else [width]
    return {"format": format, "widths": widths, "label_column": column}


Model = MultiLabelMRF | HierarchicalMultiLabel
Arrays = dict[str, npt.NDArray[Any]]


def label_set_parts(model: Model) -> Parts:
    """Weights, names, the scale of features, and what inference needs."""
    field, n = model._field, model.n_labels_
    if field.columns is not None:
        raise ParameterError(f"this {type(model).__name__} cannot be exported: it has a kernel, which light programs do not have")
    nodes = np.asarray(model.coef_)[: n * (field.n_features + (field.bias != 0)) * 2]
    arrays: Arrays = {"table": nodes.reshape(n, -1, 2).transpose(1, 0, 2).reshape(-1, 2 * n)}
    if field.scale is not None:
        arrays |= {name.removeprefix("scale."): array for name, array in field.scale.arrays().items()}
    inference, own = _inference(model)
    facts = getattr(model, "reader_", None) or {}
    names = facts.get("feature_names")
    settings = {
        "labels": list(field.names), "n_features": field.n_features, "bias": float(field.bias), "inference": inference,
        "zero_based": bool(facts.get("zero_based")), "feature_names": names if isinstance(names, list) else None,
    }  # fmt: skip
    return Parts(settings, arrays | own, {})


def _inference(model: Model) -> tuple[str, Arrays]:
    """How the best set is found, and the arrays for it; ParameterError for an oracle that light programs do not have."""
    field, oracle = model._field, model._field.oracle
    leaf = field.require == "leaf"
    if leaf or type(oracle) is LabelPaths:
        forest = forest_of(field.forest)
        ends = forest.to[oracle.to if type(oracle) is LabelPaths else "leaf"]
        arrays = {"paths": ends.paths, "ladders": ends.ladders, "runs": np.array(ends.runs)}
        return ("leaf", {**arrays, "parents": forest.parents, "order": np.array(forest.order)}) if leaf else ("path", arrays)
    if type(oracle) not in (EnumerationMRF, TreeMRF):
        raise ParameterError(
            f"this {type(model).__name__} cannot be exported: its inference is {type(oracle).__name__}; light programs have that "
            "of up to 16 labels (EnumerationMRF), of pairs without a cycle (TreeMRF), and of paths and leaves in a hierarchy"
        )
    # the scores of pairs of states, which are those of every example, with what is forbidden: (E, 2, 2)
    size = 4 * len(field.edges)
    flat = np.zeros(size)
    if field.tables and size:
        flat += np.asarray(model.coef_, dtype=np.float64)[-size:]
    if field.fixed is not None:
        flat += field.fixed[-size:]
    pairs = flat.reshape(-1, 2, 2)
    if type(oracle) is TreeMRF:
        plan = tree_plan(field.shape).copy()
        plan[:, 2] -= np.where(plan[:, 2] >= 0, 2 * model.n_labels_, 0)
        return "tree", {"plan": plan, "pairs": pairs}
    edge_of = np.full((model.n_labels_, model.n_labels_), -1, np.int64)
    edge_of[field.edges[:, 0], field.edges[:, 1]] = np.arange(len(field.edges))
    return "enumeration", {"edge_of": edge_of, "pairs": pairs}


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

    own_input: the module that a chain has its input from. `VERSION`, `WEIGHTS` and `SHA256` are written anew, and so
    is the hint at encodings: programs take UTF-8 alone.
    """
    version = structpred.__version__
    head = (
        f'"""A predictor that needs NumPy alone, written by structpred {version}; its weights are {weights}.\n\n'
        'Copyright (c) the structpred developers; BSD 3-Clause License.\n"""'
    )
    anew = {"VERSION": version, "WEIGHTS": weights, "SHA256": sha256, "ENCODING_HINT": "save it as UTF-8"}
    given = {name: f"{name} = {value!r}" for name, value in anew.items()}
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
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names = [node.name]
            else:
                targets = (
                    node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
                )
                names = [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
            source.places.update(dict.fromkeys(names, len(source.statements)))
            used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
            source.statements.append(_Statement("\n".join(lines[start:end]).strip("\n"), names, used))
    return source
