"""Models as files of the UAI format."""

from structpred.io.uai import UaiModel


def format_uai(model: UaiModel) -> str:
    """The text of a model's file; numbers are written so that reading gives the same ones."""
    lines = [model.kind, str(len(model.n_states)), " ".join(map(str, model.n_states)), str(len(model.scopes))]
    lines += [" ".join(map(str, (len(scope), *scope))) for scope in model.scopes]
    for table in model.tables:
        lines += ["", str(table.size), " ".join(map(repr, table.ravel().tolist()))]
    return "\n".join(lines) + "\n"
