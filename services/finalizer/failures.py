"""JobFailed: an error that ends a job of the finalizer with a message that says what to do."""


class JobFailed(RuntimeError):
    """The job cannot continue; the text gives the reason, and needs no trace."""
