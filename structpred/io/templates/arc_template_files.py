"""Files of arc templates, one per line."""

from structpred.data.arc_templates import ArcTemplate
from structpred.errors import DataError, ParameterError
from structpred.io.templates.arc_featurizer import ATTRIBUTES
from structpred.io.templates.arc_template_sets import parse_templates
from structpred.io.templates.templates import template_lines
from structpred.io.text import source_name


def read_arc_templates(path: str) -> list[ArcTemplate]:
    """The templates of a file: one per line, comments behind #. Several properties behind the bar make several templates.

    Raises DataError, naming the line, for a malformed template, an attribute that words do not have, and a duplicate; and for
    a file without templates.
    """
    found: dict[ArcTemplate, str] = {}
    for where, line in template_lines(path):
        try:
            templates = parse_templates(line.partition("#")[0])
        except ParameterError as error:
            raise DataError(f"{where}: {error}") from None
        for template in templates:
            if unknown := sorted(template.attributes - set(ATTRIBUTES)):
                known = ", ".join(ATTRIBUTES)
                raise DataError(f"{where}: expected attributes of words ({known}), got {unknown[0]!r}")
            if template in found:
                first = found[template].rpartition(":")[2]
                raise DataError(f"{where}: duplicate template {str(template)!r}, first given on line {first}")
            found[template] = where
    if not found:
        raise DataError(f"{source_name(path)}: expected at least one template, such as h.upos m.upos | distance, got none")
    return list(found)
