"""What `auto` stands for in the options of sequence labellers: the format that TRAIN shows, templates and score that fit it."""

import logging
from collections import Counter
from collections.abc import Mapping
from typing import Any

from structpred.data.tag_schemes import scheme_of
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ROW_FORMATS
from structpred.io.detection import Detected, detect_format, first_lines
from structpred.io.guesses import looks_like
from structpred.io.text import source_name

log = logging.getLogger("structpred.cli")

#: the schemes whose phrases the F1 of conlleval counts
_SCORED = ("IOB2", "IOB1", "IO", "IOBES")


def completed(values: Mapping[str, Any], data: str) -> dict[str, Any]:
    """The values of options with those found in the first lines of the file `data` where they are "auto"; says what it found.

    Raises DataError where the lines show no format of sequences.
    """
    asked = [name for name in ("format", "template", "dev_metric") if values.get(name) == "auto"]
    found = dict(values)
    if not asked:
        return found
    format, column = values["format"], values["label_column"]
    lines = first_lines(data, values["encoding"])
    if format == "auto":
        seen = detect_format(lines, source_name(data))
        if seen.format not in (*ROW_FORMATS, "crfsuite", "ocr"):
            expected = "expected sequences with labels"
            raise DataError(f"{source_name(data)}: {expected}, got the format {seen.format}{looks_like(lines)}")
    else:
        widths = Counter(len(line.split()) for line in lines if line.strip())
        width = ROW_FORMATS[format] or max(widths, key=lambda n: widths[n], default=1) if format in ROW_FORMATS else None
        seen = Detected(format, "as named", width)
    labels = seen.labels(lines, column)
    labels.pop(values.get("missing", "_"), None)
    phrases = scheme_of(labels.items(), ()) in _SCORED
    found["format"] = seen.format
    if "template" in asked:
        found["template"] = _template(seen.width, column, phrases, labels)
    if "dev_metric" in asked:
        found["dev_metric"] = "f1" if phrases else "token_accuracy"
    if "format" in asked or ("template" in asked and found["template"]):
        scheme = ", labels of phrases (B-X, I-X)" if phrases else ""
        template = f"; templates {found['template']}" if found["template"] else ""
        log.info("%s: format %s: %s%s%s", source_name(data), seen.format, seen.seen, scheme, template)
    return found


def _template(width: int | None, label_column: int, phrases: bool, labels: Counter[str]) -> str | None:
    """The built-in templates that read what the columns hold; None without columns.

    Names are few among their tokens, chunks cover most of them.
    """
    if width is None:
        return None
    column = label_column % width
    if column == 0:
        raise ParameterError("--template auto expects words in column 0, which holds the labels: give --template")
    if width > 2 and column != 1 and not (phrases and 2 * labels["O"] > labels.total()):
        return "chunking"
    return "ner" if phrases else "pos"
