"""Collective communication between processes.

    import hocket, numpy

    world = hocket.join()              # under `hocket run`, torchrun, mpirun, srun, or with a URL
    values = numpy.ones(1000, "f4")
    world.all_reduce(values)           # in place; the sum of all ranks

Memory is taken from anything that has some: NumPy's arrays, bytearrays and memoryviews by the buffer
protocol, tensors by DLPack. Nothing is copied. A list of buffers stands for one, piece by piece.
"""

from hocket._core import *  # noqa: F403
from hocket._core import version as _version

__version__ = _version()
