"""Every error and warning of structpred. This module imports nothing.

A message says what was expected, what came, where (file and line, or the sample's index) and the likely cause.
"""


class StructpredError(Exception):
    """The parent of every error that structpred raises on purpose."""


class DataError(StructpredError, ValueError):
    """The data are unusable: a bad line, NaN features, lengths that do not match, an unknown label."""


class ParameterError(StructpredError, ValueError):
    """A setting is out of its range or of the wrong kind."""


class OracleError(StructpredError):
    """An oracle broke its contract: a wrong dtype, an infeasible output, changed input, a wrong maximum."""


class LossError(StructpredError, ValueError):
    """A loss broke its rules: the truth costs something, an output costs less than the truth, or the costs do not fit."""


class RegulariserError(StructpredError, ValueError):
    """A regulariser breaks its contract."""


class ProjectionError(StructpredError, ValueError):
    """A projection, or a proximal operator, breaks its contract."""


class MissingCapabilityError(StructpredError, TypeError):
    """A trainer or a search needs a method that the oracle does not have; or a derivative is asked for that is not known."""


class InfeasibleError(StructpredError, ValueError):
    """No output satisfies the constraints."""


class ConvergenceError(StructpredError, ArithmeticError):
    """An iterative method did not reach the requested accuracy, or left the finite numbers; the message says what it reached."""


class FileFormatError(DataError):
    """A file that structpred wrote, or should have written, is damaged, unsafe, or of another version."""


class ModelFileError(FileFormatError):
    """A model file cannot be read: truncated, altered, of a newer version, or not a model at all."""


class MissingModelError(ModelFileError, FileNotFoundError):
    """There is no model file at this place."""


class CheckpointError(FileFormatError):
    """A checkpoint cannot be read, belongs to other data or settings, or is being written by another run."""


class StorageError(StructpredError, OSError):
    """A file cannot be written: the disk is full, or there is no permission. The old file is kept."""


class ClusterError(StructpredError, RuntimeError):
    """A cluster cannot do the work: its scheduler cannot be reached, its workers differ or do not see the store, or die on it."""


class DependencyError(StructpredError, ImportError):
    """An installed library is missing or known not to work with another."""


class StructpredWarning(UserWarning):
    """The parent of every warning of structpred."""


class NoUpdateWarning(StructpredWarning):
    """A first pass over the data changed nothing, or the weights in the end are no better than zero: see what may be wrong."""


class MissingLabelsWarning(StructpredWarning):
    """Labels are None, so a model of labels that are not known is trained, and nothing says that this is meant."""


class CheckpointWarning(StructpredWarning):
    """A checkpoint could not be written, and training continues; the newest was unreadable, and the one before it is used; or
    nothing keeps a second run out, as the file system has no locks."""
