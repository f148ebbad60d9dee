"""Write a fitted model as a program of its own: the sources of `structpred.export.light` in one file, and its weights."""

import ast
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import structpred
from structpred.errors import DataError, ParameterError
from structpred.export.chains import chain_parts
from structpred.export.label_sets import label_set_parts
from structpred.export.parts import Parts
from structpred.models import ChainLabeler, HierarchicalMultiLabel, MultiLabelMRF
from structpred.storage.atomic import check_target, write_atomic

SOURCES = Path(__file__).resolve().parent.parent
_BEGIN = ("errors.py", "export/light/weights.py")
_ROWS = (
    "data/coalescing.py", "data/ragged.py", "io/recognise.py", "io/lines.py", "io/string_codes.py", "io/column_text.py",
    "io/templates/transforms.py", "io/templates/template.py", "io/templates/coded.py", "io/templates/hashed_ids.py",
)  # fmt: skip
_TOKENS = (
    "data/coalescing.py", "data/ragged.py", "data/tokens.py", "io/lines.py", "io/string_codes.py", "io/sliced_list.py",
    "io/crfsuite_text.py",
)  # fmt: skip
#: what a program is made of, in order: files of `export/light`, and those that need as little. A chain: by its kind of input
CHAIN = {
    kind: (*_BEGIN, *own, "export/light/chain_predictor.py")
    for kind, own in {
        "rows": (*_ROWS, "export/light/row_input.py"),
        "tokens": (*_TOKENS, "export/light/token_input.py"),
        "numeric": ("export/light/number_input.py",),
    }.items()
}
LABEL_SETS = (
    *_BEGIN, "io/lines.py", "io/multilabel/arff_text.py", "export/light/label_files.py", "export/light/label_set_predictor.py",
)  # fmt: skip


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
    parts, names = _parts_of(model)
    weights = program.with_suffix(".npz")
    for target in (program, weights):
        check_target(target)
    raw = packed(parts)
    source = bundled(names, weights.name, hashlib.sha256(raw).hexdigest())
    write_atomic(weights, raw)
    write_atomic(program, source.encode())
    return Exported(program, weights)


def _parts_of(model: Any) -> tuple[Parts, tuple[str, ...]]:
    """What the program needs of a model, and its sources. Subclasses may predict something else: they are refused."""
    kinds: dict[type, Callable[[Any], Parts]] = {
        ChainLabeler: chain_parts, MultiLabelMRF: label_set_parts, HierarchicalMultiLabel: label_set_parts,
    }  # fmt: skip
    if type(model) not in kinds:
        known = ", ".join(kind.__name__ for kind in kinds)
        raise ParameterError(f"a {type(model).__name__} cannot be exported; light programs are written for {known}")
    model._check_fitted()
    parts = kinds[type(model)](model)
    return parts, CHAIN[parts.settings["input"]] if type(model) is ChainLabeler else LABEL_SETS


def packed(parts: Parts) -> bytes:
    """The weights file: arrays, and lists of strings and settings as JSON in arrays of bytes."""
    arrays: dict[str, npt.NDArray[Any]] = {name: np.ascontiguousarray(array) for name, array in parts.arrays.items()}
    texts = {f"text.{name}": listed for name, listed in parts.texts.items()} | {"settings": parts.settings}
    arrays |= {name: np.frombuffer(json.dumps(value).encode(), np.uint8) for name, value in texts.items()}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def bundled(names: tuple[str, ...], weights: str, sha256: str) -> str:
    """The sources as one file, without their imports of each other; `settings.py` is written anew."""
    version = structpred.__version__
    head = (
        f'"""A predictor that needs NumPy alone, written by structpred {version}; its weights are {weights}.\n\n'
        'Copyright (c) the structpred developers; BSD 3-Clause License.\n"""\n'
    )
    settings = f"VERSION = {version!r}\nWEIGHTS = {weights!r}\nSHA256 = {sha256!r}"
    return "\n\n".join([head + "\n" + settings, *(_without_own_imports(SOURCES / name) for name in names)])


def _without_own_imports(path: Path) -> str:
    """The text of a source, less the lines that import another one."""
    text = path.read_text(encoding="utf-8")
    lines = text.split("\n")
    for node in reversed(ast.parse(text).body):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("structpred."):
            del lines[node.lineno - 1 : node.end_lineno]
    return "\n".join(lines)
