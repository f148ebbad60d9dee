"""pandas: a DataFrame with a row for each token, to sequences and back."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.bridges.predictions import heads_and_relations, plain_lists
from structpred.errors import DataError
from structpred.io.treebanks.treebank import Tree
from structpred.runtime.dependencies import require_installed
from structpred.text.suggestions import did_you_mean

#: pandas' own, which is not imported here
DataFrame = Any
Names = str | Sequence[str]


def from_pandas(
    df: DataFrame, sentence: Names = "sent_id", columns: Names = ("word",), label: Names | None = "tag"
) -> tuple[list[list[tuple[str, ...]]], list[list[Any]] | None]:
    """The rows of a DataFrame as sentences for feature templates: `ChainLabeler(template=...)`.

    Parameters
    ----------
    df : DataFrame
        One row for each token, in the order of the text. The rows of a sentence are next to each other.
    sentence : str or list of str
        The column that tells sentences apart, or several: a document and a sentence number, say.
    columns : str or list of str
        The columns of strings that templates see, which they number from 0.
    label : str or list of str, optional
        The column of the labels; None where there is none, as in data to predict. Several give a tuple for each token.

    Returns
    -------
    X : list of list of tuple of str
        For each sentence, in order, a tuple for each token.
    y : list of list, or None
        The labels, nested alike.

    Raises
    ------
    DataError
        Naming the row: a missing value; a sentence that resumes after another one; a value of `columns` that is not a string.
        For an unknown column.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"sent_id": [1, 1, 2], "word": ["the", "cat", "so"], "tag": ["DET", "NOUN", "ADV"]})
    >>> from_pandas(df)
    ([[('the',), ('cat',)], [('so',)]], [['DET', 'NOUN'], ['ADV']])
    """
    bounds = _bounds(df, sentence)
    values = [_complete(df, name) for name in _listed(columns)]
    for name, column in zip(_listed(columns), values, strict=True):
        if (bad := next((k for k, value in enumerate(column) if not isinstance(value, str)), None)) is not None:
            raise DataError(
                f"{_row(df, bad)}: expected a string in {name!r}, got {column[bad]!r}: templates read strings; make them with "
                f"df[{name!r}].astype(str), or take numbers as features with tokens_from_pandas"
            )
    return _nested(list(zip(*values, strict=True)), bounds), _labels(df, label, bounds)


def tokens_from_pandas(
    df: DataFrame, sentence: Names = "sent_id", columns: Names = ("word",), label: Names | None = "tag"
) -> tuple[list[list[dict[str, Any]]], list[list[Any]] | None]:
    """The same with a dict for each token, column to value: features of one's own for a ChainLabeler, words for a parser.

    Columns may hold numbers and booleans too. A DependencyParser takes the columns "form", "lemma", "upos", "xpos" and "feats",
    and as labels heads (whole numbers, 0 for the root) or ``label=["head", "deprel"]``. Otherwise as `from_pandas`.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"sent_id": [1, 1], "form": ["cats", "sleep"], "head": [2, 0], "deprel": ["nsubj", "root"]})
    >>> tokens_from_pandas(df, columns="form", label=["head", "deprel"])
    ([[{'form': 'cats'}, {'form': 'sleep'}]], [[(2, 'nsubj'), (0, 'root')]])
    """
    bounds, names = _bounds(df, sentence), _listed(columns)
    rows = zip(*(_complete(df, name) for name in names), strict=True)
    return _nested([dict(zip(names, row, strict=True)) for row in rows], bounds), _labels(df, label, bounds)


def to_pandas(
    df: DataFrame, predicted: Sequence[Any], sentence: Names = "sent_id", column: str = "predicted", label: str | None = None
) -> DataFrame:
    """A copy of the DataFrame with the predictions beside the rows; index, order and the types of its columns stay.

    Parameters
    ----------
    df : DataFrame
        What was given to `from_pandas`.
    predicted : list of array or of Tree
        What `predict` returned. Trees give two columns, ``COLUMN_head`` and ``COLUMN_deprel``.
    column : str
        The name of the new column.
    label : str, optional
        The column of the true labels, whose type the new one gets. A categorical one is extended by labels that it lacks.

    Raises
    ------
    DataError
        For predictions that do not fit the rows, and for a column that there is already.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"sent_id": [1, 1], "word": ["the", "cat"]}, index=[7, 3])
    >>> to_pandas(df, [["DET", "NOUN"]])["predicted"].to_dict()
    {7: 'DET', 3: 'NOUN'}
    """
    lengths = np.diff(_bounds(df, sentence)).tolist()
    if predicted and isinstance(predicted[0], Tree):
        heads, relations = heads_and_relations(predicted, lengths)
        new = {f"{column}_head": _flat(heads), f"{column}_deprel": _flat(relations)}
    else:
        new = {column: _as_type(_flat(plain_lists(predicted, lengths)), df, label)}
    if taken := [name for name in new if name in df.columns]:
        raise DataError(f"the DataFrame has a column {taken[0]!r} already; give another name as column=")
    return df.assign(**new)


def _bounds(df: Any, sentence: Names) -> list[int]:
    """Where each sentence starts, and where the last one ends."""
    require_installed("pandas", extra="pandas", needed_by="structpred.bridges.pandas")
    import pandas as pd

    if not isinstance(df, pd.DataFrame):
        raise DataError(f"expected a pandas DataFrame with a row for each token, got {type(df).__name__}")
    names = _listed(sentence)
    for name in names:
        _complete(df, name)
    if not len(df):
        return [0]
    numbers = df.groupby(list(names), sort=False, observed=True).ngroup().to_numpy()
    if (back := np.flatnonzero(np.diff(numbers) < 0)).size:
        key = ", ".join(f"{name} {df[name].tolist()[back[0] + 1]!r}" for name in names)
        raise DataError(
            f"{_row(df, int(back[0]) + 1)}: the sentence with {key} resumes after another one; put its rows next to each other, "
            f"as df.sort_values({list(names)}, kind='stable') does"
        )
    return [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(df)]


def _complete(df: Any, name: str) -> list[Any]:
    """A column as Python values. Raises DataError for a missing value, and where there is no such column or more than one."""
    if (n := list(df.columns).count(name)) != 1:
        hint = did_you_mean(str(name), map(str, df.columns)) or f"; its columns are {', '.join(map(str, df.columns))}"
        raise DataError(f"expected one column {name!r} in the DataFrame, got {n}{hint}")
    if (missing := np.flatnonzero(df[name].isna())).size:
        row = _row(df, int(missing[0]))
        raise DataError(
            f"{row}: the value of {name!r} is missing ({len(missing)} are); fill them, as df[{name!r}].fillna('_') does; a label "
            "that is not known may be '_' for ChainLabeler(missing='_')"
        )
    values: list[Any] = df[name].astype(object).tolist()
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _labels(df: Any, label: Names | None, bounds: list[int]) -> list[list[Any]] | None:
    if label is None:
        return None
    columns = [_complete(df, name) for name in _listed(label)]
    return _nested(columns[0] if isinstance(label, str) else list(zip(*columns, strict=True)), bounds)


def _as_type(labels: list[Any], df: Any, label: str | None) -> Any:
    """The labels with the type of a column of the DataFrame."""
    if label is None:
        return labels
    import pandas as pd

    _complete(df, label)
    dtype = df[label].dtype
    if isinstance(dtype, pd.CategoricalDtype):
        known = dtype.categories.tolist()
        dtype = pd.CategoricalDtype([*known, *sorted(set(labels) - set(known))], dtype.ordered)
    return pd.array(labels, dtype=dtype)


def _row(df: Any, k: int) -> str:
    """A row for messages: its number from 0, and its index where that is another."""
    name = df.index.tolist()[k]
    return f"row {k}" if name == k else f"row {k} (index {name!r})"


def _listed(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)


def _nested(values: list[Any], bounds: list[int]) -> list[list[Any]]:
    return [values[start:stop] for start, stop in itertools.pairwise(bounds)]


def _flat(nested: Sequence[Sequence[Any]]) -> list[Any]:
    return list(itertools.chain.from_iterable(nested))
