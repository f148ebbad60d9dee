"""What a multi-label data file is: its format, and where the names of its labels are."""

import os
import re

from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.arff_text import ARFF_NAMES, arff_format
from structpred.io.opening import open_bytes
from structpred.io.text import LONGEST_LINE

LABEL_FORMATS = ("arff", "libsvm", "npz", "clus", "clus-dag")


def label_format(path: str, given: str | None) -> str:
    """The format that is given, else the one that name and contents show. Raises ParameterError for formats of other data."""
    if given is not None:
        if given not in LABEL_FORMATS:
            raise ParameterError(f"multi-label data: --format must be {', '.join(LABEL_FORMATS)}, not {given}")
        return given
    if path == "-":
        raise ParameterError("data from standard input need --format: a stream can be read only once")
    if path.lower().endswith(".npz"):
        return "npz"
    with open_bytes(path, path) as stream:
        raw = stream.read(LONGEST_LINE)
    if raw.startswith(b"PK\x03\x04"):
        return "npz"
    return arff_format(path, raw.decode("utf-8-sig", errors="replace")) or "libsvm"


def label_source(path: str) -> str:
    """The label XML that lies next to an ARFF file: of its name, or of the part before the last - or _.

    Raises DataError, naming what was looked for, where there is none.
    """
    if path == "-":
        raise DataError("<stdin>: ARFF from a stream needs --labels: a label XML, or how many of the last attributes are labels")
    stem = ARFF_NAMES.sub("", path)
    folder, name = os.path.split(stem)
    names = [name]
    while found := re.match(r"(.+)[-_.][^-_.]*$", names[-1]):
        names.append(found[1])
    for candidate in names:
        for ending in (".xml", ".xml.gz"):
            if os.path.isfile(beside := os.path.join(folder, candidate + ending)):
                return beside
    looked = " or ".join(f"{candidate}.xml" for candidate in names)
    raise DataError(
        f"{path}: which attributes are labels? There is no {looked} (.gz) next to it; give --labels FILE.xml, or --labels N for "
        "the last N attributes (-N: the first)"
    )
