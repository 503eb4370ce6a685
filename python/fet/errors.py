"""Exceptions and warnings."""


class FetError(Exception):
    """A run or a command failed; the text is that of the command."""


class InputError(FetError, ValueError):
    """The input is invalid: a table, a setting or an argument. The command exits with 2."""


class FetWarning(UserWarning):
    """A run or a prediction has a result to look at."""
