"""Collective communication between processes.

    import hocket, numpy

    world = hocket.join()              # under `hocket run`, torchrun, mpirun, srun, or with a URL
    values = numpy.ones(1000, "f4")
    world.all_reduce(values)           # in place; the sum of all ranks

Memory is taken from anything that has some: NumPy's arrays, bytearrays and memoryviews by the buffer
protocol, tensors by DLPack. Nothing is copied. A list of buffers stands for one, piece by piece.
"""

import multiprocessing as _multiprocessing
from multiprocessing.util import register_after_fork as _register_after_fork

from hocket import _core
from hocket import _ending
from hocket._core import *  # noqa: F403

__version__ = _core.version()


def _leave_at_end(_: object = None) -> None:
    _ending.at_end(_core.leave_all_worlds, priority=-100)


_register_after_fork(_core, _leave_at_end)
if _multiprocessing.parent_process() is not None:
    _leave_at_end()
