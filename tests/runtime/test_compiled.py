"""Promises of structpred.runtime.compiled: there is always a safe place for compiled kernels, and whoever waits hears of it."""

import contextlib
import io
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from structpred.runtime import compiled, standard_error


@pytest.fixture
def unwritable(tmp_path: Path) -> Path:
    """A path below which no folder can be made, for root too."""
    blocker = tmp_path / "a_file"
    blocker.write_text("not a folder")
    return blocker


@pytest.fixture
def no_home(monkeypatch: pytest.MonkeyPatch, unwritable: Path) -> None:
    """Neither the package's folders nor the user's cache folder can be written, and temporary files go to tmp_path."""
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA", "USERPROFILE"):
        monkeypatch.setenv(name, str(unwritable))
    monkeypatch.setattr(compiled, "BESIDE_SOURCES", unwritable / "kernels")
    monkeypatch.setattr("tempfile.tempdir", str(unwritable.parent))


def test_the_users_variable_comes_first(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A writable NUMBA_CACHE_DIR is taken as it is."""
    monkeypatch.setenv(compiled.VARIABLE, str(tmp_path / "mine"))
    assert compiled.find_cache() == (tmp_path / "mine", "NUMBA_CACHE_DIR says so", True, ())


def test_an_unwritable_variable_is_reported_and_passed_over(
    monkeypatch: pytest.MonkeyPatch, unwritable: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """NUMBA_CACHE_DIR that cannot be written is named in a warning, and another place is found."""
    monkeypatch.setenv(compiled.VARIABLE, str(unwritable / "x"))
    location = compiled.find_cache()
    assert location.folder != unwritable / "x"
    assert "NUMBA_CACHE_DIR" in caplog.text


def test_beside_the_sources_where_that_can_be_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An ordinary installation keeps its kernels next to its sources."""
    monkeypatch.delenv(compiled.VARIABLE, raising=False)
    monkeypatch.setattr(compiled, "BESIDE_SOURCES", tmp_path / "kernels")
    assert compiled.find_cache().folder == tmp_path / "kernels"


def test_the_users_cache_folder_for_a_read_only_package(no_home: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package that cannot be written keeps its kernels in the user's cache folder."""
    monkeypatch.setattr(compiled, "user_cache", lambda: tmp_path / "cache")
    assert compiled.find_cache().folder == tmp_path / "cache"


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the folder's owner is checked on POSIX systems only")
def test_a_private_temporary_folder_is_the_last_resort(no_home: None, tmp_path: Path) -> None:
    """With nothing else to write to, kernels go to a lasting temporary folder that nobody else can write."""
    location = compiled.find_cache()
    assert location.folder == tmp_path / f"structpred-numba-{os.getuid()}"
    assert location.lasting
    assert location.folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="the folder's owner is checked on POSIX systems only")
@pytest.mark.parametrize("trap", ["open to others", "a link"])
def test_a_folder_that_others_could_have_filled_is_not_used(no_home: None, tmp_path: Path, trap: str) -> None:
    """A cache folder of the expected name that others can write, or that is a link, is passed over for a fresh one."""
    expected = tmp_path / f"structpred-numba-{os.getuid()}"
    if trap == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        expected.symlink_to(tmp_path / "elsewhere")
    else:
        expected.mkdir()
        expected.chmod(0o777)
    location = compiled.find_cache()
    assert location.folder != expected
    assert not location.lasting


def test_a_user_without_a_home_has_no_cache_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python cannot tell the home folder, the search goes on instead of failing."""

    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert compiled.user_cache() is None


class Terminal(io.StringIO):
    """Standard error where somebody reads it."""

    def isatty(self) -> bool:
        """Yes."""
        return True


@pytest.fixture
def no_log() -> Iterator[None]:
    """Nobody has set up the package's log."""
    log = logging.getLogger("structpred")
    level, handlers = log.level, log.handlers[:]
    log.setLevel(logging.NOTSET)
    log.handlers[:] = []
    yield
    log.setLevel(level)
    log.handlers[:] = handlers


HERE = compiled.CacheLocation(Path("there"), "for the test", True)


@pytest.mark.usefixtures("no_log")
def test_a_terminal_hears_of_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody set up logging, one line on the terminal says what is going on, how long it takes and where it is kept."""
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    compiled.announce(HERE)
    said = stream.getvalue()
    assert said.startswith("structpred: compiling kernels, once per installation")
    assert (said.count("\n"), "there" in said) == (1, True)


@pytest.mark.usefixtures("no_log")
def test_a_file_does_too(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Standard error that is no terminal gets the same line, and none where the package's log has it or is set to say less."""
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    assert not compiled.announce(HERE)  # nothing is rewritten there
    said = stream.getvalue()
    with caplog.at_level(logging.INFO, "structpred"):
        compiled.announce(HERE)
    with caplog.at_level(logging.WARNING, "structpred"):
        compiled.announce(HERE)
    assert stream.getvalue() == said == f"structpred: {caplog.messages[0]}\n"
    assert len(caplog.messages) == 1


@pytest.mark.usefixtures("no_log")
def test_a_worker_process_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty workers would say it twenty times."""
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    monkeypatch.setattr("multiprocessing.parent_process", lambda: "somebody")
    compiled.announce(HERE)
    assert stream.getvalue() == ""


@pytest.mark.parametrize(("module", "words"), [("trainers.blocks._bcfw_kernels", "trainers: bcfw"), ("probe", "probe: probe")])
def test_a_kernel_goes_by_what_it_is_for(module: str, words: str) -> None:
    """Names of functions such as make_room mean nothing to who waits."""
    assert compiled.served_by(f"structpred.{module}") == words


@pytest.mark.slow
def test_a_script_says_once_that_it_compiles(tmp_path: Path) -> None:
    """A fresh process that compiles two kernels writes one line to a file."""
    code = (
        "from structpred.runtime.jit import njit\n"
        "def twice(x): return x + x\n"
        "def thrice(x): return x + x + x\n"
        "twice.__module__ = thrice.__module__ = 'structpred.probe'\n"
        "print(njit()(twice)(21), njit()(thrice)(14))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=1800, check=True)
    assert done.stdout == "42 42\n"
    assert done.stderr.count("\n") == done.stderr.count("structpred: compiling kernels, once per installation") == 1


class Watched(Terminal):
    """A terminal that tells when something was written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written = threading.Event()

    def write(self, text: str) -> int:
        """As usual, and tell."""
        count = super().write(text)
        self.written.set()
        return count


def test_a_terminal_sees_what_is_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """While a kernel compiles a line says what it is for and is rewritten; behind the last one nothing is left of the line."""
    monkeypatch.setattr(compiled, "EVERY", 0.0)
    stream = Watched()
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("sys.__stderr__", stream)
    line = compiled.CompilingLine()
    line.begin("oracles: tree")
    assert stream.written.wait(60)
    line.end()
    shown, blank = stream.getvalue().split("\r")[1], stream.getvalue().split("\r")[-2]
    assert "\n" not in stream.getvalue()
    assert shown.rstrip() == "structpred: compiling kernels: oracles: tree, 0 s"
    assert blank == " " * len(shown)


def test_other_output_on_the_terminal_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a progress bar has put its own stream in place of the terminal's, nothing is rewritten."""
    monkeypatch.setattr("sys.__stderr__", Terminal())
    monkeypatch.setattr("sys.stderr", Terminal())
    assert not standard_error.can_rewrite()
    monkeypatch.setattr("sys.stderr", sys.__stderr__)
    assert standard_error.can_rewrite()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_no_silence_on_a_terminal(tmp_path: Path) -> None:
    """A kernel that a fresh process compiles is named on the terminal while that lasts."""
    import pty

    code = (
        "from structpred.runtime import compiled; compiled.EVERY = 0.0\n"
        "from structpred.runtime.jit import njit\n"
        "def twice(x): return x + x\n"
        "twice.__module__ = 'structpred.probe'\n"
        "print(njit()(twice)(21))"
    )
    reader, terminal = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stdout=terminal, stderr=terminal, cwd=tmp_path, close_fds=True)
    os.close(terminal)
    seen = b""
    with contextlib.suppress(OSError):  # how Linux says that nobody holds the other end
        while piece := os.read(reader, 1 << 16):
            seen += piece
    os.close(reader)
    assert process.wait() == 0
    first, *rest = seen.decode().split("\r")
    assert "compiling kernels, once per installation" in first
    assert any(line.startswith("structpred: compiling kernels: probe: probe, 0 s") for line in rest)
    assert "42" in rest[-2]
