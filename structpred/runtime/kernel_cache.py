# mypy: allow-untyped-defs, allow-incomplete-defs, allow-subclassing-any
"""Compiled kernels on disk, read without a load of the compiler; the one place for numba's private API that this needs.

numba's own cache knows a kernel by its own source file alone, unpickles what it finds, and fails on a file that is damaged or
cannot be written. This one asks of numba: `Dispatcher._cache` with `load_overload` and `save_overload`, `rtsys.initialize`,
`CompileResult._reduce` and `_rebuild`, `serialize.dumps` and the code generator's `magic_tuple`.
"""

import functools
import hashlib
import logging
import pickle
import sys
from pathlib import Path
from types import CodeType

import llvmlite
import numba
import numpy as np
from numba.core import config

from structpred.runtime.bounds import checks_bounds
from structpred.runtime.compiled import prepare
from structpred.runtime.kernel_files import PACKAGE, digest_of_sources, read, write

try:
    from numba.core.caching import NullCache
    from numba.core.codegen import JITCPUCodegen
    from numba.core.compiler import CompileResult
    from numba.core.runtime import rtsys
    from numba.core.serialize import dumps

    needed = (CompileResult, "_reduce"), (CompileResult, "_rebuild"), (JITCPUCodegen, "magic_tuple"), (rtsys, "initialize")
    AS_EXPECTED = all(hasattr(owner, name) for owner, name in needed)
except ImportError:  # another version: numba's own cache has to do
    NullCache, AS_EXPECTED = object, False

logger = logging.getLogger("structpred.runtime.compiled")
#: settings of numba that change machine code; those of the processor are in `magic_tuple`
_SETTINGS = ("OPT", "BOUNDSCHECK", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DISABLE_INTEL_SVML", "DEBUGINFO_DEFAULT")
_CONSTANTS = (bool, int, float, complex, str, bytes, tuple, np.generic, np.ndarray)
_sources_at_first, _warned = functools.cache(digest_of_sources), set[str]()


def keep(dispatcher, kernel) -> None:
    """Take the compiled forms of a kernel from the cache, and put new ones there."""
    if not hasattr(dispatcher, "_cache") or kernel.__closure__:  # NUMBA_DISABLE_JIT; what is closed over has no name in a file
        return
    source = Path(kernel.__code__.co_filename).resolve()
    try:
        sources = _sources_at_first(PACKAGE if source.is_relative_to(PACKAGE) else source)
    except OSError:
        logger.debug("%s.%s is not kept: its source is no file", kernel.__module__, kernel.__qualname__)
        return
    if AS_EXPECTED:
        dispatcher._cache = KernelCache(kernel, source, sources)
    elif not checks_bounds():  # numba would mix up kernels with checks and those without
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = str(prepare().folder / sources.hex()[:16]), ""
        dispatcher.enable_caching()


class KernelCache(NullCache):
    """The compiled forms of one kernel on disk: a file each, named after what tells them apart; its stamp says what from."""

    def __init__(self, kernel, source: Path, sources: bytes) -> None:
        self._kernel, self._source, self._sources = kernel, source, sources

    def load_overload(self, sig, target_context):
        """The kernel compiled for this signature, or None. Machine code needs numba's runtime for memory, and no compiler."""
        rtsys.initialize(target_context)
        for folder in (prepare().folder, *prepare().read_only):
            path = self._path(folder, sig, target_context.codegen())
            try:
                if (packed := read(path, self._stamp())) is not None:
                    return CompileResult._rebuild(target_context, *pickle.loads(packed))
            except Exception as error:
                _warn("a compiled kernel cannot be read and is compiled again, as others may be: %s: %s", path, error)
        return None

    def save_overload(self, sig, data) -> None:
        """Keep the compiled kernel, unless it holds addresses, or sources have changed since they were loaded."""
        path = self._path(prepare().folder, sig, data.codegen)
        try:
            if data.lifted or data.library.has_dynamic_globals:
                _warn("a kernel holds addresses of this process and is not kept: %s", path)
            elif digest_of_sources(self._source) == self._sources:
                write(path, self._stamp(), dumps(data._reduce()))
        except Exception as error:
            _warn("a compiled kernel cannot be kept, nor others perhaps; the next process compiles again: %s: %s", path, error)

    def _path(self, folder: Path, sig, codegen) -> Path:
        moves_along = folder.is_relative_to(PACKAGE) and self._source.is_relative_to(PACKAGE)
        place = str(self._source.relative_to(PACKAGE) if moves_along else self._source)
        python = sys.implementation.cache_tag, getattr(sys, "abiflags", ""), checks_bounds()
        settings = [getattr(config, name, None) for name in _SETTINGS]
        key = repr((place, self._kernel.__qualname__, sig, python, settings, codegen.magic_tuple()))
        name = f"{self._source.stem}.{self._kernel.__name__}"[:100]
        return folder / f"{name}.{hashlib.sha256(key.encode()).hexdigest()[:24]}.nbc"

    @functools.cache  # noqa: B019 - kernels live as long as the process
    def _stamp(self) -> bytes:
        code, constants = self._kernel.__code__, dict[str, str]()
        _collect(self._kernel, set(), constants)
        versions, place = (numba.__version__, llvmlite.__version__), (code.co_firstlineno, code.co_code)
        return hashlib.sha256(repr((self._sources, versions, place, sorted(constants.items()))).encode()).digest()


def _collect(kernel, seen: set[object], constants: dict[str, str]) -> None:
    """What a kernel and those that it calls consist of, wherever they come from, and the constants of modules that they name."""
    seen.add(kernel)
    codes = [kernel.__code__]
    for n, code in enumerate(codes):
        plain = [each for each in code.co_consts if not isinstance(each, CodeType)]
        constants[f"{kernel.__module__}.{kernel.__qualname__} {n}"] = repr((code.co_code, code.co_names, plain))
        codes += [inner for inner in code.co_consts if isinstance(inner, CodeType)]
        for name in code.co_names:
            value = kernel.__globals__.get(name)
            if isinstance(value, _CONSTANTS):
                constants[f"{kernel.__module__}.{name}"] = repr(
                    (value.dtype, value.tolist()) if isinstance(value, np.ndarray) else value
                )
            elif (function := getattr(value, "py_func", kernel)) not in seen:
                _collect(function, seen, constants)


def _warn(text: str, *details: object) -> None:
    """Once a process for each kind of trouble: a full disk meets every kernel."""
    if text not in _warned:
        _warned.add(text)
        logger.warning(text, *details)
