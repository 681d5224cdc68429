"""What a rank can do with the package. Every rank runs it; `hocket run` starts them.

usage: world.py FOLDER    in which `hocket` is
"""

import array
import asyncio
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from pythons import run_with  # noqa: E402

run_with("numpy")
sys.path.insert(0, sys.argv.pop(1))

import hocket  # noqa: E402
from hocket import aio  # noqa: E402

try:
    import numpy
except ImportError:
    numpy = None

world: hocket.Communicator
RANK = 0
SIZE = 1


def of(code: str, *numbers: float) -> array.array:
    return array.array(code, numbers)


class Tensor:
    """Has its memory by DLPack alone."""

    def __init__(self, values: object) -> None:
        self.values = values

    def __dlpack__(self, stream: object = None) -> object:
        return self.values.__dlpack__()  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> object:
        return self.values.__dlpack_device__()  # type: ignore[attr-defined]


class Collectives(unittest.TestCase):
    def test_all_reduce(self) -> None:
        values = of("d", 1, RANK, 2)
        world.all_reduce(values)
        self.assertEqual(list(values), [SIZE, SIZE * (SIZE - 1) / 2, 2 * SIZE])
        out = of("i", 0)
        world.all_reduce(of("i", RANK), out, "max")
        self.assertEqual(out[0], SIZE - 1)
        world.all_reduce(of("f", 1), doubled := of("f", 0), op="premul_sum", factor=2.0)
        self.assertEqual(doubled[0], 2 * SIZE)

    def test_memory_of_every_kind(self) -> None:
        for values in (bytearray(b"\1\1"), memoryview(bytearray(b"\1\1")), of("B", 1, 1)):
            world.all_reduce(values)
            self.assertEqual(bytes(values), bytes([SIZE, SIZE]))
        with self.assertRaises(BufferError):
            world.all_reduce(b"ab")
        with self.assertRaises(TypeError):
            world.all_reduce(3)
        with self.assertRaisesRegex(TypeError, "different types"):
            world.all_reduce(of("i", 1), of("f", 1))

    @unittest.skipUnless(numpy, "there is no numpy")
    def test_numpy_and_tensors(self) -> None:
        for kind in ("i1", "u2", "i8", "f2", "f4", "f8", "c8", "?"):
            values = numpy.ones((2, 3), kind)
            world.all_reduce(values)
            self.assertEqual(values[1, 2], True if kind == "?" else SIZE)
            if kind == "?":
                continue  # which NumPy gave no DLPack before 1.25
            values = numpy.ones(5, kind)
            world.all_reduce(Tensor(values))
            self.assertEqual(values[4], SIZE)
        with self.assertRaises(ValueError):
            world.all_reduce(numpy.ones((4, 4))[:, 1])
        with self.assertRaisesRegex(ValueError, "in a row"):
            world.all_reduce(Tensor(numpy.ones((4, 4))[:, 1]))
        bits = numpy.full(2, 0x3F80, "u2")  # ones
        world.all_reduce(bits, dtype="bf16")
        self.assertEqual(int(bits[0]) >> 7 & 0xFF, 127 + SIZE.bit_length() - 1)

    def test_parts(self) -> None:
        all_of = of("i", *([0] * SIZE))
        world.all_gather(of("i", RANK + 1), all_of)
        self.assertEqual(list(all_of), list(range(1, SIZE + 1)))
        in_place = of("i", *(RANK + 5 if i == RANK else 0 for i in range(SIZE)))
        world.all_gather(in_place)
        self.assertEqual(list(in_place), list(range(5, SIZE + 5)))
        part = of("i", 0)
        world.reduce_scatter(all_of, part)
        self.assertEqual(part[0], (RANK + 1) * SIZE)
        came = of("i", *([0] * SIZE))
        world.all_to_all(of("i", *(10 * RANK + i for i in range(SIZE))), came)
        self.assertEqual(list(came), [10 * i + RANK for i in range(SIZE)])
        root = SIZE - 1
        gathered = of("i", *([0] * SIZE)) if RANK == root else None
        world.gather(of("i", RANK), gathered, root)
        if gathered is not None:
            self.assertEqual(list(gathered), list(range(SIZE)))
        world.scatter(of("i", *range(SIZE)) if RANK == root else None, part, root)
        self.assertEqual(part[0], RANK)
        told = of("i", 7 if RANK == 0 else 0)
        world.broadcast(told)
        self.assertEqual(told[0], 7)
        with self.assertRaisesRegex(ValueError, r"all_gather\(\): (out|values) has"):
            world.all_gather(of("i", 1), of("i", *([0] * (SIZE + 1))))

    def test_uneven_parts(self) -> None:
        counts = [i + 1 for i in range(SIZE)]
        all_of = of("i", *([0] * sum(counts)))
        world.all_gather(of("i", *([RANK] * (RANK + 1))), all_of, counts=counts)
        self.assertEqual(list(all_of), [i for i in range(SIZE) for _ in range(i + 1)])
        came = of("i", *([0] * (SIZE * (RANK + 1))))
        world.all_to_all(of("i", *([RANK] * sum(counts))), came, counts=counts,
                         counts_from=[RANK + 1] * SIZE)
        self.assertEqual(came[-1], SIZE - 1)

    def test_lists(self) -> None:
        one, other = of("f", 1, 2), of("f", RANK)
        world.all_reduce([one, other])
        self.assertEqual((one[1], other[0]), (2 * SIZE, SIZE * (SIZE - 1) / 2))
        parts = [of("f", 0, 0) for _ in range(SIZE)]
        world.all_gather(of("f", RANK, -RANK), parts)
        self.assertEqual([list(each) for each in parts], [[i, -i] for i in range(SIZE)])

    def test_scans(self) -> None:
        value = of("q", RANK + 1)
        world.scan(value)
        self.assertEqual(value[0], (RANK + 1) * (RANK + 2) // 2)
        before = of("q", -1)
        world.exscan(of("q", 1), before)
        self.assertEqual(before[0], RANK if RANK else -1)

    def test_an_op_of_the_program(self) -> None:
        def join(out: memoryview, left: memoryview, right: memoryview) -> None:
            longer = max(bytes(left), bytes(right), key=lambda each: each.count(b"x"))
            out[:] = longer

        values = bytearray(b"x" * (RANK + 1) + b"." * (SIZE - RANK))
        world.all_reduce(values, op=join, dtype=f"bytes{len(values)}")
        self.assertEqual(bytes(values), b"x" * SIZE + b".")

        def left(out: memoryview, one: memoryview, _: memoryview) -> None:
            out[:] = bytes(one)

        value = of("i", RANK + 40)
        world.all_reduce(value, op=left, keeps_order=True)
        self.assertEqual(value[0], 40)


    def test_an_op_that_raises(self) -> None:
        def refuse(*_: memoryview) -> None:
            raise ValueError("I will not")

        group = world.dup()
        if SIZE == 1:
            return
        with self.assertRaises(hocket.Aborted) as raised:
            for _ in range(100):  # whoever combines nothing is told of it later
                group.all_reduce(of("i", 1), op=refuse)
        self.assertIn("ValueError: I will not", str(raised.exception))
        world.barrier()


class Works(unittest.TestCase):
    def test_started(self) -> None:
        values = [of("d", i, RANK) for i in range(10)]
        works = [world.start(hocket.all_reduce(each)) for each in values]
        hocket.wait_all(works)
        self.assertEqual(values[9][0], 9 * SIZE)
        work = world.start(hocket.barrier())
        self.assertEqual(hocket.wait_any([work]), 0)
        self.assertTrue(work.test() and work.wait())

    def test_dropped(self) -> None:
        for _ in range(20):
            world.start(hocket.all_reduce(bytearray(100_000)))

    def test_prepared(self) -> None:
        values = of("i", 1)
        prepared = world.prepare(hocket.all_reduce(values))
        prepared.run()
        prepared.start().wait()
        self.assertEqual(values[0], SIZE * SIZE)

    def test_messages(self) -> None:
        to, came = (RANK + 1) % SIZE, of("i", 0)
        work = world.start(hocket.send(of("i", RANK), to, 3))
        got = world.recv(came, tag=3)
        work.wait()
        self.assertEqual((got.peer, got.tag, got.count), ((RANK - 1) % SIZE, 3, 1))
        receiving = world.start(hocket.recv(came))
        world.send(of("i", 9), to)
        receiving.wait()
        self.assertEqual(receiving.received.tag, 0)

    def test_many_as_one(self) -> None:
        one, other, came = of("i", 1), of("d", 2), of("h", 0)
        world.start_many([hocket.all_reduce(one), hocket.recv(came, (RANK - 1) % SIZE, 7),
                          hocket.send(of("h", 5), (RANK + 1) % SIZE, 7),
                          hocket.all_reduce(other, op="max")]).wait()
        self.assertEqual((one[0], other[0], came[0]), (SIZE, 2, 5))

    def test_a_queue(self) -> None:
        queue = hocket.Queue()
        for i in range(5):
            world.start(hocket.all_reduce(bytearray(1000)), queue, ("sum", i))
        tags = [queue.next().tag for _ in range(5)]
        self.assertEqual(sorted(tags), [("sum", i) for i in range(5)])
        self.assertIsNone(queue.next(0))
        came = of("i", 0)
        world.start(hocket.recv(came, timeout=0.05, tag=99, fails_alone=True), queue, "late")
        completion = queue.next()
        self.assertIsInstance(completion.error, hocket.Timeout)

    def test_asyncio(self) -> None:
        async def run() -> float:
            loop = aio.Loop()
            values = [of("d", i) for i in range(4)]
            await asyncio.gather(*(loop.start(world, hocket.all_reduce(each)) for each in values))
            loop.close()
            return values[3][0]

        self.assertEqual(asyncio.run(run()), 3 * SIZE)

    def test_other_threads_run_meanwhile(self) -> None:
        if SIZE == 1:
            self.skipTest("a rank alone waits for nobody")
        ticks = 0
        is_over = threading.Event()

        def tick() -> None:
            nonlocal ticks
            while not is_over.wait(0.001):
                ticks += 1

        ticking = threading.Thread(target=tick)
        ticking.start()
        if RANK == 0:
            threading.Event().wait(0.2)
        world.barrier()
        is_over.set()
        ticking.join()
        self.assertGreater(ticks, 20)


class Groups(unittest.TestCase):
    def test_groups(self) -> None:
        part = world.split(RANK % 2)
        self.assertEqual(part.size, (SIZE + 1 - RANK % 2) // 2)
        self.assertIsNone(world.split(None))
        first = world.group([0], name="first")
        self.assertEqual(first is None, RANK != 0)
        self.assertEqual(world.dup().rank_in(world, RANK), RANK)
        self.assertEqual(world.local_size, SIZE)
        self.assertEqual(world.host(0), world.host(RANK))
        self.assertIn("tcp", world.transport.split(","))

    def test_errors(self) -> None:
        with self.assertRaises(hocket.InvalidArgument) as raised:
            world.broadcast(of("i", 1), root=SIZE)
        self.assertIsInstance(raised.exception, ValueError)
        self.assertEqual(raised.exception.status, "invalid argument")
        with self.assertRaisesRegex(TypeError, "no argument named 'outt'"):
            world.all_reduce(of("i", 1), outt=of("i", 1))
        with self.assertRaisesRegex(ValueError, "there is no op 'sun'"):
            world.all_reduce(of("i", 1), op="sun")
        group = world.dup()
        if RANK == 0:
            group.abort("enough")
        with self.assertRaises(hocket.Error) as ended:
            for _ in range(1000):
                group.barrier()
        self.assertIn("enough" if RANK == 0 else "rank 0", str(ended.exception))
        world.barrier()
        with self.assertRaises(ValueError):
            world.barrier(timeout=-1)

    def test_a_named_world(self) -> None:
        other = hocket.join(name="other", settings={"HOCKET_OVERLAP": "2"})
        self.assertEqual(other.size, SIZE)
        with self.assertRaisesRegex(hocket.InvalidArgument, "HOCKET_OVERLAP"):
            hocket.join(name="wrong", settings={"HOCKET_OVERLAP": "x"})

    def test_meeting(self) -> None:
        for number in range(2):
            store, rank, size = hocket.meet()
            self.assertEqual((rank, size), (RANK, SIZE))
            self.assertEqual(store.num_keys(), 0)  # each meeting has keys of its own
            world.barrier()
            store.set(f"rank {rank}", str(number))
            self.assertEqual(store.multi_get([f"rank {each}" for each in range(SIZE)]),
                             [str(number).encode()] * SIZE)
            store.barrier("all", SIZE)
        with self.assertRaises(hocket.InvalidArgument):
            hocket.meet(name="wrong name")

    def test_allocated(self) -> None:
        memory = hocket.allocate(world, 8000)
        values = memoryview(memory).cast("d")
        values[999] = 1
        world.all_reduce(values)
        self.assertEqual(values[999], SIZE)


if __name__ == "__main__":
    world = hocket.join()
    RANK, SIZE = world.rank, world.size
    told = unittest.main(exit=False, verbosity=0)
    for test, why in told.result.skipped:
        print(f"skipped: {test.id()}: {why}")
    world.barrier()
    sys.exit(not told.result.wasSuccessful())
