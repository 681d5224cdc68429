#!/usr/bin/env python3
"""A rank of a world that calls the C ABI through ctypes. usage: capi_ctypes.py libhocket.so"""

from __future__ import annotations

import ctypes
import sys

OK, INVALID_ARGUMENT, F64, SUM, SCAN = 0, 1, 13, 0, 9
SIZE = ctypes.c_size_t


class Collective(ctypes.Structure):
    _fields_ = [
        ("struct_size", SIZE), ("kind", ctypes.c_int32), ("dtype", ctypes.c_int32),
        ("in_", ctypes.c_void_p), ("out", ctypes.c_void_p), ("count", SIZE),
        ("counts", ctypes.c_void_p), ("counts_from", ctypes.c_void_p), ("op", ctypes.c_int32),
        ("root", ctypes.c_int32), ("factor", ctypes.c_double), ("custom", ctypes.c_void_p),
        ("custom_context", ctypes.c_void_p), ("timeout_ns", ctypes.c_int64),
    ]


def main() -> int:
    library = ctypes.CDLL(sys.argv[1])
    library.hocket_last_error.restype = ctypes.c_char_p
    world = ctypes.c_void_p()
    if library.hocket_join(None, ctypes.byref(world)) != OK:
        print(library.hocket_last_error().decode())
        return 1
    size = library.hocket_comm_size(world)
    values = (ctypes.c_double * 1000)(*range(1000))
    assert library.hocket_all_reduce(world, values, values, SIZE(1000), F64, SUM) == OK
    assert list(values) == [size * i for i in range(1000)]

    work = ctypes.c_void_p()
    wanted = Collective(
        struct_size=ctypes.sizeof(Collective), kind=0, dtype=F64,
        in_=ctypes.addressof(values), out=ctypes.addressof(values), count=10, op=SUM)
    assert library.hocket_start(world, ctypes.byref(wanted), ctypes.byref(work)) == OK
    assert library.hocket_work_wait(work, ctypes.c_int64(0)) == OK
    library.hocket_work_free(work)
    assert list(values[:10]) == [size * size * i for i in range(10)]

    ones = (ctypes.c_double * 4)(1, 1, 1, 1)
    scan = Collective(struct_size=ctypes.sizeof(Collective), kind=SCAN, dtype=F64,
                      in_=ctypes.addressof(ones), out=ctypes.addressof(ones), count=4, op=SUM)
    assert library.hocket_run(world, ctypes.byref(scan)) == OK
    assert list(ones) == [library.hocket_comm_rank(world) + 1] * 4

    wanted.root = 99
    assert library.hocket_run(world, ctypes.byref(wanted)) == INVALID_ARGUMENT
    assert b"root 99 is none of" in library.hocket_last_error(), library.hocket_last_error()
    assert library.hocket_barrier(world) == OK
    library.hocket_comm_free(world)
    return 0


if __name__ == "__main__":
    sys.exit(main())
