"""Collective communication between processes.

    import hocket, numpy

    world = hocket.join()              # under `hocket run`, torchrun, mpirun, srun, or with a URL
    values = numpy.ones(1000, "f4")
    world.all_reduce(values)           # in place; the sum of all ranks

Memory is taken from anything that has some: NumPy's arrays, bytearrays and memoryviews by the buffer
protocol, tensors by DLPack. Nothing is copied. A list of buffers stands for one, piece by piece.
"""

from multiprocessing.util import Finalize as _Finalize
from multiprocessing.util import register_after_fork as _register_after_fork

from hocket import _core
from hocket._core import *  # noqa: F403

__version__ = _core.version()


def _leave_at_end(_: object) -> None:
    # multiprocessing ends children that it forks by os._exit(), which calls nothing but these functions.
    _Finalize(None, _core.leave_all_worlds, exitpriority=-100)


_register_after_fork(_core, _leave_at_end)
