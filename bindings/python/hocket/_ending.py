"""What is done before a process ends, also one that multiprocessing forked: that ends by os._exit(), which
skips what atexit has."""

import threading
from collections.abc import Callable
from multiprocessing.util import Finalize


def at_end(function: Callable[[], object], priority: int) -> None:
    """Calls it when this process ends, before that of a lower priority."""
    Finalize(None, _end, (function,), exitpriority=priority)


def _end(function: Callable[[], object]) -> None:
    # Threads that Python waits for may still use what ends here. It has waited by now, except in children of
    # multiprocessing.
    threading._shutdown()
    function()
