"""What is done before a process ends, also where atexit does nothing: children that multiprocessing forks end
by os._exit()."""

import threading
from collections.abc import Callable
from multiprocessing.util import Finalize


def at_end(function: Callable[[], object], priority: int) -> None:
    """Calls it when this process ends, before that of a lower priority."""
    Finalize(None, _end, (function,), exitpriority=priority)


def _end(function: Callable[[], object]) -> None:
    # Threads that are no daemons may still use what ends here. Python has waited for them by now, except in
    # children of multiprocessing.
    threading._shutdown()  # type: ignore[attr-defined]
    function()
