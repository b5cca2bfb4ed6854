"""Guards that several events share."""

from tenure.core.errors import ShutDownError, WriteFailedError
from tenure.core.rows.tables import Tables


def check_serving(tables: Tables) -> None:
    """Nothing is started, saved or materialized after a shutdown or a failure.

    Rules: R12.

    Raises:
        ShutDownError: the cache is shut down.
        WriteFailedError: a write failed, and no reset came since.
    """
    if tables.shut_down:
        raise ShutDownError
    if tables.failure is not None:
        raise WriteFailedError(*tables.failure)
