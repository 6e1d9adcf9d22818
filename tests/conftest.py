"""What all tests run with."""

import signal


def pytest_configure() -> None:
    """Heed SIGINT. A shell starts what runs in the background with SIGINT ignored, and every process that a test starts
    would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
