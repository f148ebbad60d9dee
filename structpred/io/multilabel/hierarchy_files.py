"""Files of label hierarchies, a line per edge."""

from dataclasses import replace

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.io.multilabel.data import MultiLabelData
from structpred.io.text import quoted, read_text, source_name, split_lines


def with_hierarchy(data: MultiLabelData, path: str, encoding: str = "utf-8") -> MultiLabelData:
    """The data with the hierarchy of a file, a line per edge: parent, tab (or space), child; # comments. Rows become closed.

    Raises DataError with file and line: other lines, labels that the data do not have, an edge twice; and for a cycle.
    """
    place = {name: k for k, name in enumerate(data.label_names)}
    edges: dict[tuple[int, int], int] = {}
    name = source_name(path)
    for number, line in enumerate(split_lines(read_text(path, encoding)), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = line.split("\t") if "\t" in line else line.split()
        if len(pair) != 2:
            raise DataError(f"{name}:{number}: expected a parent and a child, separated by a tab, got {quoted(line)}")
        for label in pair:
            if label.strip() not in place:
                raise DataError(f"{name}:{number}: {data.name} has no label {quoted(label.strip())}")
        edge = (place[pair[0].strip()], place[pair[1].strip()])
        if edge in edges:
            raise DataError(f"{name}:{number}: duplicate edge, first given on line {edges[edge]}")
        edges[edge] = number
    try:
        hierarchy = LabelHierarchy(len(place), list(edges), data.label_names)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    return replace(data, Y=hierarchy.closed(data.Y), hierarchy=hierarchy)
