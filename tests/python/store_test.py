"""Stores of the package, in one process. usage: store_test.py FOLDER"""

import sys
import tempfile
import threading
import unittest

sys.path.insert(0, sys.argv.pop(1))

import hocket  # noqa: E402


class Dictionary:
    """A program's own store."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.changed = threading.Condition()

    def set(self, key: str, value: bytes, timeout: float) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def wait(self, keys: list[str], timeout: float) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: all(key in self.values for key in keys), timeout):
                raise TimeoutError

    def get(self, key: str, timeout: float) -> bytes:
        self.wait([key], timeout)
        return self.values[key]

    def check(self, keys: list[str], timeout: float) -> bool:
        return all(key in self.values for key in keys)

    def add(self, key: str, amount: int, timeout: float) -> int:
        with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            self.values[key] = str(total).encode()
            self.changed.notify_all()
            return total

    def compare_set(self, key: str, expected: bytes, desired: bytes, timeout: float) -> bytes | None:
        with self.changed:
            if self.values.get(key, b"") == expected:
                self.values[key] = desired
                self.changed.notify_all()
            return self.values.get(key)

    def delete_key(self, key: str, timeout: float) -> bool:
        with self.changed:
            return self.values.pop(key, None) is not None


class Stores(unittest.TestCase):
    def use(self, store: hocket.Store) -> None:
        store.set("a", b"1\0")
        store.set("b", "two")
        self.assertEqual(store.get("a"), b"1\0")
        self.assertEqual(store.multi_get(["a", "b"]), [b"1\0", b"two"])
        self.assertEqual(store.add("n", 5), 5)
        self.assertEqual(store.add("n", -2, timeout=5), 3)
        self.assertTrue(store.check(["a", "n"]))
        self.assertFalse(store.check(["a", "none"]))
        self.assertEqual(store.compare_set("c", b"", b"new"), b"new")
        self.assertEqual(store.compare_set("c", b"other", b"newer"), b"new")
        store.append("c", b"!")
        self.assertEqual(store.get(key="c"), b"new!")
        self.assertTrue(store.delete_key("c"))
        self.assertFalse(store.delete_key("c"))
        with self.assertRaises(hocket.Timeout):
            store.get("c", 0.05)
        store.multi_set({"x": b"1", "y": b"2"})
        store.wait(["x", "y"], timeout=1)
        part = store.prefix("part")
        part.set("z", b"3")
        self.assertEqual(store.get("part/z"), b"3")
        threads = [threading.Thread(target=store.barrier, args=("all", 3)) for _ in range(2)]
        for each in threads:
            each.start()
        store.barrier("all", 3)
        for each in threads:
            each.join()

    def use_all(self, store: hocket.Store) -> None:
        self.use(store)
        self.assertIn("a", store.keys())
        self.assertEqual(store.keys("x"), ["x"])
        self.assertGreater(store.num_keys(), 3)
        store.queue_push("q", b"1")
        self.assertEqual(store.queue_length("q"), 1)
        self.assertEqual(store.queue_pop("q"), b"1")

    def test_local(self) -> None:
        self.use_all(hocket.Store.local())

    def test_over_tcp(self) -> None:
        server = hocket.StoreServer()
        self.use_all(hocket.Store.open(f"tcp://127.0.0.1:{server.port}"))

    def test_in_a_file(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.use(hocket.Store.open(f"file://{folder}/store", timeout=5))

    def test_of_the_program(self) -> None:
        self.use(hocket.Store.own(Dictionary()))

    def test_a_world_over_it(self) -> None:
        store = hocket.Store.own(Dictionary())
        sums = []

        def run(rank: int) -> None:
            world = hocket.join(store=store, rank=rank, size=3)
            values = bytearray([rank])
            world.all_reduce(values)
            sums.append(values[0])

        threads = [threading.Thread(target=run, args=(rank,)) for rank in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(sums, [3, 3, 3])

    def test_what_it_raises_is_told(self) -> None:
        with self.assertRaises(RuntimeError):
            hocket.Store.open("tcp://127.0.0.1:1", timeout=0.2)
        with self.assertRaises(TypeError):
            hocket.Store.local().set("a")
        with self.assertRaises(TypeError):
            hocket.join(store=Dictionary(), rank=0, size=1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
