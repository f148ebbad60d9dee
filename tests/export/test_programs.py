"""An exported program is one file and its weights, needs NumPy alone, and knows its own weights."""

import ast
import builtins
import subprocess
import sys
from pathlib import Path

import pytest
from light_programs import program_of

import structpred
from structpred.errors import DataError, ParameterError
from structpred.export import export_predictor
from structpred.export.programs import CHAIN, INPUTS, LABEL_SETS, bundled
from structpred.models import ChainLabeler, DependencyParser, KernelChainLabeler, MultiLabelMRF
from structpred.oracles.qpbo import QPBO

X, Y = [[{"w": "the"}, {"w": "cat"}], [{"w": "dogs"}]], [["DET", "NOUN"], ["NOUN"]]


@pytest.fixture
def model() -> ChainLabeler:
    """A tiny tagger."""
    return ChainLabeler(max_iter=3).fit(X, Y)


def test_programs_load_numpy_and_nothing_else(model: ChainLabeler, tmp_path: Path) -> None:
    """In a fresh process, importing a program and predicting load no package but NumPy, and the file is small."""
    files = export_predictor(model, tmp_path / "tagger.py")
    assert files.program.stat().st_size < 80_000
    code = (
        "import sys, os, site; before = {m.partition('.')[0] for m in sys.modules}\n"
        f"sys.path.insert(0, {str(tmp_path)!r}); import tagger; print(tagger.predict({X!r}))\n"
        "print({m.partition('.')[0] for m in sys.modules} - before - set(sys.stdlib_module_names))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    labels, loaded = done.stdout.splitlines()
    assert labels == str(model.predict(X))
    assert ast.literal_eval(loaded) == {"numpy", "tagger"}


def test_the_command_line_of_a_program(model: ChainLabeler, tmp_path: Path) -> None:
    """`python tagger.py FILE` writes to standard output or a file; bad data are one line on standard error and exit code 1."""
    program = str(export_predictor(model, tmp_path / "tagger.py").program)
    (tmp_path / "a.txt").write_text("X\tw\\:the\nX\tw\\:cat\n\nX\tw\\:dogs\n")

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run([sys.executable, program, *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)

    assert run("a.txt").stdout == "DET\nNOUN\n\nNOUN\n"
    assert run("a.txt", "-o", "b.txt").stdout == ""
    assert (tmp_path / "b.txt").read_text() == "DET\nNOUN\n\nNOUN\n"
    done = run("none.txt")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "error: none.txt: there is no such file\n"


def test_weights_of_another_program_are_refused(model: ChainLabeler, tmp_path: Path) -> None:
    """A program predicts with the weights that were written with it, by their checksum, and says so where it cannot."""
    program = program_of(model, tmp_path)
    weights = tmp_path / "light.npz"
    assert structpred.__version__ == program.VERSION
    assert program.WEIGHTS == "light.npz"
    raw = weights.read_bytes()
    weights.write_bytes(raw[:-1] + b"?")
    with pytest.raises(program.PredictorError, match="expected the weights that were written with this program"):
        program.predict(X)
    weights.unlink()
    with pytest.raises(
        program.PredictorError, match=r"light.npz: the weights of this program cannot be read: .* keep them in one folder"
    ):
        program.predict(X)
    weights.write_bytes(raw)
    assert [labels.tolist() for labels in program.predict(X)] == Y


def test_the_same_model_gives_the_same_files(model: ChainLabeler, tmp_path: Path) -> None:
    """Export is reproducible: the same bytes again."""
    both = [[path.read_bytes() for path in export_predictor(model, tmp_path / "tagger.py")] for _ in range(2)]
    assert both[0] == both[1]


def test_what_cannot_be_exported_is_named(tmp_path: Path) -> None:
    """Other kinds of models and other inference are refused by name, before anything is written; so are bad names of files."""
    crossed = MultiLabelMRF(edges=[], oracle=QPBO(), max_iter=1).fit([[0.0], [1.0]], [[0, 1], [1, 0]])
    unfitted = ChainLabeler()
    kernel = KernelChainLabeler()
    for model, message in (
        (DependencyParser(), "a DependencyParser cannot be exported; light programs are written for ChainLabeler, Mul"),
        (kernel, "a KernelChainLabeler cannot be exported"),
        (crossed, "this MultiLabelMRF cannot be exported: its inference is QPBO"),
    ):
        with pytest.raises(ParameterError, match=message):
            export_predictor(model, tmp_path / "tagger.py")
    with pytest.raises(Exception, match="fit"):
        export_predictor(unfitted, tmp_path / "tagger.py")
    for name in ("tagger", "my tagger.py", "2nd.py"):
        with pytest.raises(DataError, match="expected the name of a Python module"):
            export_predictor(crossed, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("own_input", [*INPUTS.values(), ""])
def test_a_program_is_whole(own_input: str) -> None:
    """A program imports NumPy and the standard library alone; nothing in it is defined twice, and nothing missing."""
    tree = ast.parse(bundled(CHAIN if own_input else LABEL_SETS, own_input, "a.npz", ""))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in imports:
        modules = [one.name for one in node.names] if isinstance(node, ast.Import) else [str(node.module)]
        assert {module.split(".")[0] for module in modules} <= {"numpy", *sys.stdlib_module_names}, ast.unparse(node)
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        defined += [name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)]
    assert len(defined) == len(set(defined)), sorted(name for name in defined if defined.count(name) > 1)
    known = {*defined, *dir(builtins), "__file__", *(one.asname or one.name for node in imports for one in node.names)}
    known |= {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    known |= {one.name or "" for one in ast.walk(tree) if isinstance(one, ast.ExceptHandler | ast.FunctionDef)}
    names = [one for one in ast.walk(tree) if isinstance(one, ast.Name)]
    assert {one.id for one in names} - known <= {one.id for one in names if isinstance(one.ctx, ast.Store)}
