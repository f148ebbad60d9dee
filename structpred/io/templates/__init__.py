"""Feature templates, and the featurizers that apply them."""

from structpred.io.templates.templates import Atom, Template, built_in_templates, load_templates, read_template

__all__ = ["Atom", "Template", "built_in_templates", "load_templates", "read_template"]
