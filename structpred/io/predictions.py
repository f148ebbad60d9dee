"""Predictions as lines of text, where they are not written back into the file that was read."""

from collections.abc import Iterable, Sequence


def label_lines(sequences: Iterable[Iterable[object]]) -> str:
    """One label a line, a blank line between sequences: what CRFsuite prints.

    >>> label_lines([["DT", "NN"], ["RB"]])
    'DT\\nNN\\n\\nRB\\n'
    """
    return "\n".join("".join(f"{label}\n" for label in labels) for labels in sequences)


def label_sets(rows: Iterable[Iterable[int]], names: Sequence[str]) -> str:
    """A line for each example: the names of the labels that are on, separated by tabs.

    >>> label_sets([[1, 0, 1], [0, 0, 0]], ["red", "green", "blue"])
    'red\\tblue\\n\\n'
    """
    return "".join("\t".join(name for name, on in zip(names, row, strict=True) if on) + "\n" for row in rows)


def label_rows(instances: Iterable[Iterable[object]]) -> str:
    """A line for each instance: its labels, separated by spaces.

    >>> label_rows([[0, 2], [1]])
    '0 2\\n1\\n'
    """
    return "".join(f"{' '.join(map(str, labels))}\n" for labels in instances)
