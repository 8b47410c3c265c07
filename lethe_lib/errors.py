"""The errors that a user can cause and mend. Every message names the culprit and says what to do."""


class LetheError(Exception):
    """Base of all errors raised on purpose by this library."""


class InputError(LetheError, ValueError):
    """An argument, a parameter or a graph that cannot be used as it is."""


class DataNotFound(LetheError, FileNotFoundError):
    """Files of a data set that are neither on the search path nor to be downloaded."""


class DamagedFile(LetheError, OSError):
    """A file whose content is not what it should be: truncated, altered, or of another version."""


class TrainingDiverged(LetheError, ArithmeticError):
    """Training met a loss that is not finite; no usable model exists."""
