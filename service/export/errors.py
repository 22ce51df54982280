"""What can go wrong with an export."""


class ExportError(Exception):
    """A model cannot be exported; the text says what was found, where, and what can be done. Nothing was written."""


class WishError(ExportError):
    """What was asked for is nothing that there is: a preset, a task."""


class TimeLimitError(ExportError):
    """The exporter took longer than it may."""
