"""JobFailed: an error that ends a job of the finalizer with a message that says what to do."""


class JobFailed(RuntimeError):
    """The job cannot go on; the text says why, and needs no trace."""
