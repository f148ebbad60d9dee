"""Hugging Face datasets: records with a list of tokens and lists of labels, to sequences and back; nothing is downloaded."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from structpred.bridges.predictions import heads_and_relations, plain_lists
from structpred.errors import DataError
from structpred.io.treebanks.treebank import Sentence, Tree
from structpred.runtime.dependencies import require_installed
from structpred.text.suggestions import did_you_mean

#: the library's own, which is not imported here
Dataset = Any
Records = Iterable[Mapping[str, Any]]
#: a value that is not known, as universal_dependencies writes it
_NONE = ("None", "_", "", None)


def from_datasets(
    dataset: Records, columns: str | Sequence[str] = ("tokens",), label: str | None = "ner_tags"
) -> tuple[list[list[tuple[str, ...]]], list[list[Any]] | None]:
    """The records of one split as sentences for feature templates: `ChainLabeler(template=...)`.

    Parameters
    ----------
    dataset : datasets.Dataset, or an iterable of dicts
        Each record is a sentence; each of its columns that is named here holds a list with an entry for each token.
    columns : str or list of str
        What templates see, which they number from 0: lists of strings, or of ClassLabel, whose names are taken.
    label : str, optional
        The column of the labels: ClassLabel, strings or whole numbers. None where there is none.

    Returns
    -------
    X : list of list of tuple of str
        For each record a tuple for each token.
    y : list of list, or None
        The labels by name. The class -1, which stands for a label that is not known, and None become None, as `fit` takes them.

    Raises
    ------
    DataError
        Naming the record: lists of different lengths, a missing token, a class that the ClassLabel does not have. For an unknown
        column, and for a DatasetDict in place of one of its splits.

    Examples
    --------
    >>> from_datasets([{"tokens": ["Ada", "sleeps"], "ner_tags": ["B-PER", "O"]}])
    ([[('Ada',), ('sleeps',)]], [['B-PER', 'O']])
    """
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    label_of = {name: _names_of(dataset, name) for name in (*names, *([] if label is None else [label]))}
    X: list[list[tuple[str, ...]]] = []
    y: list[list[Any]] = []
    for i, record in enumerate(_checked(dataset)):
        lists = [_strings(i, name, _column(i, record, name), label_of[name]) for name in names]
        _check_equal(i, dict(zip(names, lists, strict=True)))
        X.append(list(zip(*lists, strict=True)))
        if label is not None:
            y.append(_labels(i, label, _column(i, record, label), label_of[label]))
            _check_equal(i, {names[0]: lists[0], label: y[-1]})
    return X, None if label is None else y


def to_datasets(dataset: Dataset, predicted: Sequence[Any], label: str | None = "ner_tags", column: str = "predicted") -> Dataset:
    """The dataset with one more column, the predicted labels, of the same type as the column of the true ones.

    label: the name of that column, which may be a ClassLabel: labels become its numbers. None where there is none: strings.
    Raises DataError for predictions that do not fit the records, and for a label that the ClassLabel does not have.
    """
    features = _features_of(dataset)
    _refuse_taken(dataset, column)
    lists = plain_lists(predicted, _lengths(dataset, label))
    feature = None if label is None else _known(features, label)
    names = None if label is None else _names_of(dataset, label)
    if names is not None:
        lists = [_classes(i, labels, names, str(label)) for i, labels in enumerate(lists)]
    return dataset.add_column(column, lists, feature=feature)


def sentences_from_datasets(dataset: Records) -> tuple[list[Sentence], list[Tree] | None]:
    """The records of a treebank such as universal_dependencies as sentences and trees for a DependencyParser.

    Columns, of which only `tokens` must be there: tokens, lemmas, upos, xpos, feats; head (numbers, perhaps as strings; 0 is the
    root) and deprel. upos and deprel may be ClassLabel. feats may be "Case=Nom" or, as some loaders write it, "{'Case': 'Nom'}".
    Multiword tokens and empty nodes, which such records list among the words, have no head ("None") and are left out. Trees are
    None where there is no column `head`; -1 is a head that is not known, as are all of a record without any.

    Raises DataError, naming the record.

    >>> words, trees = sentences_from_datasets([{"tokens": ["cats", "sleep"], "head": ["2", "0"], "deprel": ["nsubj", "root"]}])
    >>> words[0].forms, trees[0].heads.tolist(), trees[0].labels
    (['cats', 'sleep'], [2, 0], ['nsubj', 'root'])
    """
    records = list(_checked(dataset))
    with_trees = any("head" in record for record in records)
    tag_names, relation_names = (_names_of(dataset, name, needed=False) for name in ("upos", "deprel"))
    sentences: list[Sentence] = []
    trees: list[Tree] = []
    for i, record in enumerate(records):
        words = _words(i, record)
        forms = _strings(i, "tokens", _column(i, record, "tokens"), None)
        columns = [_cells(i, record, name, names) for name, names in (("lemmas", None), ("upos", tag_names), ("xpos", None))]
        feats = [_feats(i, cell) for cell in _cells(i, record, "feats", None)]
        lists = [[cells[k] for k in words] for cells in (forms, *columns, feats)]
        sentences.append(Sentence(*lists))
        if with_trees:
            relations = [_cells(i, record, "deprel", relation_names)[k] for k in words]
            known = any(relation != "_" for relation in relations)
            trees.append(Tree(_heads(i, record, words), relations if known else None))
    return sentences, trees if with_trees else None


def trees_to_datasets(dataset: Dataset, trees: Sequence[Tree], column: str = "predicted") -> Dataset:
    """The dataset with two more columns, ``COLUMN_head`` and ``COLUMN_deprel``, of the types of `head` and `deprel`.

    Where these are missing, heads are whole numbers and relations strings. What is no word has no head (None, "None" in strings).
    Raises DataError for trees that do not fit the records.
    """
    features = _features_of(dataset)
    for name in (f"{column}_head", f"{column}_deprel"):
        _refuse_taken(dataset, name)
    relation_names = _names_of(dataset, "deprel", needed=False)
    words = [_words(i, record) for i, record in enumerate(dataset)]
    heads, relations = heads_and_relations(trees, [len(one) for one in words])
    as_text = str(getattr(getattr(features.get("head"), "feature", None), "dtype", "")).endswith("string")
    new_heads, new_relations = [], []
    for i, length in enumerate(_lengths(dataset, None)):
        row, labels = [None] * length, ["_"] * length
        for k, head, relation in zip(words[i], heads[i], relations[i], strict=True):
            row[k], labels[k] = head, relation  # type: ignore[call-overload]
        new_heads.append([str(head) for head in row] if as_text else row)
        new_relations.append(labels if relation_names is None else _classes(i, labels, relation_names, "deprel"))
    with_heads = dataset.add_column(f"{column}_head", new_heads, feature=features.get("head"))
    return with_heads.add_column(f"{column}_deprel", new_relations, feature=features.get("deprel"))


def _checked(dataset: Any) -> Records:
    """The dataset, if it can be gone through record by record."""
    if isinstance(dataset, Mapping):
        raise DataError(f"expected one split of the data, got all of them: {', '.join(map(str, dataset))}; name one")
    if isinstance(dataset, str) or not isinstance(dataset, Iterable):
        raise DataError(f"expected a datasets.Dataset or an iterable of records, got {type(dataset).__name__}")
    return dataset


def _features_of(dataset: Any) -> Any:
    """The types of the columns, by name."""
    require_installed("datasets", extra="datasets", needed_by="structpred.bridges.datasets")
    import datasets

    if not isinstance(dataset, datasets.Dataset):
        raise DataError(f"expected a datasets.Dataset, to which a column can be added, got {type(dataset).__name__}")
    return dataset.features


def _names_of(dataset: Any, column: str, *, needed: bool = True) -> list[str] | None:
    """The names of a column of ClassLabel; None for other columns, and where records have no declared types."""
    features = getattr(dataset, "features", None)
    if features is None or (not needed and column not in features):
        return None
    inner: Any = getattr(_known(features, column), "feature", None)
    return list(inner.names) if hasattr(inner, "str2int") else None


def _known(features: Mapping[str, Any], column: str) -> Any:
    if column not in features:
        hint = did_you_mean(column, features) or f"; its columns are {', '.join(features)}"
        raise DataError(f"expected a column {column!r} in the dataset, got none{hint}")
    return features[column]


def _refuse_taken(dataset: Any, column: str) -> None:
    if column in dataset.column_names:
        raise DataError(f"the dataset has a column {column!r} already; give another name as column=")


def _lengths(dataset: Any, label: str | None) -> list[int]:
    """The number of tokens of each record: of its true labels, or of its tokens."""
    name = "tokens" if label is None else label
    return [len(_column(i, record, name)) for i, record in enumerate(dataset)]


def _column(i: int, record: Mapping[str, Any], name: str) -> Any:
    """A column of a record, if it is a list."""
    if name not in record:
        raise DataError(f"record {i}: expected a column {name!r}, got only {', '.join(map(str, record))}")
    found: Any = record[name]
    if isinstance(found, str) or not isinstance(found, Sequence | np.ndarray):
        raise DataError(f"record {i}: expected a list in {name!r}, with an entry for each token, got {found!r}")
    return found


def _labels(i: int, column: str, values: Sequence[Any], names: list[str] | None) -> list[Any]:
    """Labels by name; None for those that are not known."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    if names is None:
        return plain
    for t, value in enumerate(plain):
        if value is not None and not (isinstance(value, int) and -1 <= value < len(names)):
            raise DataError(
                f"record {i}, token {t}: expected a class of {column!r} from 0 to {len(names) - 1}, or -1 for one that is not "
                f"known, got {value!r}"
            )
    return [None if value is None or value == -1 else names[value] for value in plain]


def _strings(i: int, column: str, values: Sequence[Any], names: list[str] | None) -> list[str]:
    """The same for what is read: everything must be known, and a string."""
    found = _labels(i, column, values, names)
    for t, value in enumerate(found):
        if not isinstance(value, str):
            raise DataError(f"record {i}, token {t}: expected a string in {column!r}, got {values[t]!r}")
    return found


def _check_equal(i: int, lists: Mapping[str, Sequence[Any]]) -> None:
    (first, values), *others = lists.items()
    for name, other in others:
        if len(other) != len(values):
            raise DataError(f"record {i}: {first!r} has {len(values)} entries, but {name!r} has {len(other)}")


def _classes(i: int, labels: Sequence[Any], names: list[str], column: str) -> list[int]:
    """The numbers of labels; -1 for None and for `_`, where the classes have no such name."""
    number: dict[Any, int] = {None: -1, "_": -1, **{name: k for k, name in enumerate(names)}}
    if unknown := [label for label in labels if label not in number]:
        raise DataError(f"record {i}: {column!r} has no class {unknown[0]!r}; give label=None for a column of strings")
    return [number[label] for label in labels]


def _cells(i: int, record: Mapping[str, Any], name: str, names: list[str] | None) -> list[str]:
    """A column of words as a treebank has it: `_` where the value is not known or there is no such column."""
    n = len(_column(i, record, "tokens"))
    if name not in record:
        return ["_"] * n
    cells = _labels(i, name, _column(i, record, name), names)
    _check_equal(i, {"tokens": record["tokens"], name: cells})
    return ["_" if cell in _NONE else str(cell) for cell in cells]


def _words(i: int, record: Mapping[str, Any]) -> list[int]:
    """The places of the words: of all tokens but multiword tokens and empty nodes, which have no head where others have one."""
    n = len(_column(i, record, "tokens"))
    heads = _cells(i, record, "head", None)
    with_head = [k for k in range(n) if heads[k] != "_"]
    return with_head or list(range(n))


def _heads(i: int, record: Mapping[str, Any], words: Sequence[int]) -> Any:
    """The heads of the words, -1 for one that is not known."""
    cells = _cells(i, record, "head", None)
    for k in words:
        if cells[k] not in ("_", "-1") and not cells[k].isdecimal():
            raise DataError(f"record {i}, token {k}: expected a whole number in 'head', got {cells[k]!r}")
    return np.array([-1 if cells[k] == "_" else int(cells[k]) for k in words], dtype=np.int64)


def _feats(i: int, cell: str) -> str:
    """Morphology as CoNLL-U writes it."""
    if not cell.startswith("{"):
        return cell
    try:
        return "|".join(f"{name}={value}" for name, value in ast.literal_eval(cell).items()) or "_"
    except (ValueError, SyntaxError, AttributeError):
        raise DataError(f"record {i}: expected features such as \"{{'Case': 'Nom'}}\" or Case=Nom, got {cell!r}") from None
