"""What torch.distributed can do over Hocket. Every rank runs it; launch.py starts them.

usage: world.py FOLDER STORE RANK SIZE [CASE...]

In FOLDER is the package `hocket`, STORE is a file to meet at, and a CASE is a class below.
"""

import datetime
import os
import signal
import sys
import threading
import time
import unittest

sys.path.insert(0, sys.argv.pop(1))
STORE = sys.argv.pop(1)
RANK = int(sys.argv.pop(1))
SIZE = int(sys.argv.pop(1))

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch.distributed.algorithms.ddp_comm_hooks import (  # noqa: E402
    debugging_hooks, default_hooks, optimizer_overlap_hooks, post_localSGD_hook, powerSGD_hook,
    quantization_hooks)
from torch.distributed.optim.functional_sgd import _FunctionalSGD  # noqa: E402

import hocket.torch  # noqa: E402, F401

TORCH = tuple(int(each) for each in torch.__version__.split(".")[:2])
EVERY = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16,
         torch.bfloat16, torch.float32, torch.float64]
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
RANKS = list(range(SIZE))


def full(value: float, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.full(shape, value, dtype=dtype)


class Case(unittest.TestCase):
    def same(self, got: torch.Tensor, wanted: object) -> None:
        self.assertEqual(got.tolist(), wanted.tolist() if torch.is_tensor(wanted) else wanted)


class Collectives(Case):
    def test_all_reduce(self) -> None:
        for dtype in EVERY:
            values = full(RANK + 1, 3, dtype=dtype)
            dist.all_reduce(values)
            self.same(values, [SIZE * (SIZE + 1) / 2] * 3)
            dist.all_reduce(values := full(RANK + 1, 3, dtype=dtype), dist.ReduceOp.MAX)
            self.same(values, [SIZE] * 3)
            dist.all_reduce(values := full(2, 1, dtype=dtype), dist.ReduceOp.PRODUCT)
            self.same(values, [2 ** SIZE])
        for dtype in FLOATS:
            dist.all_reduce(values := full(RANK, 2, dtype=dtype), dist.ReduceOp.AVG)
            self.same(values, [(SIZE - 1) / 2] * 2)
        dist.all_reduce(values := full(1 << RANK, 2, dtype=torch.int32), dist.ReduceOp.BOR)
        self.same(values, [(1 << SIZE) - 1] * 2)
        dist.all_reduce(values := torch.tensor([RANK == 0, False]))
        self.same(values, [True, False])
        dist.all_reduce(values := torch.tensor([complex(RANK, 1)]))
        self.same(values, [complex(SIZE * (SIZE - 1) / 2, SIZE)])
        dist.all_reduce(torch.empty(0))

    def test_rarer_types(self) -> None:
        for name in ("complex64", "complex128", "float8_e4m3fn", "float8_e5m2", "uint16", "uint32", "uint64"):
            dtype = getattr(torch, name, None)  # not all versions of torch have all of them
            if dtype is None:
                continue
            wide = torch.complex128 if dtype.is_complex else torch.float64
            with self.subTest(name):
                dist.all_reduce(values := torch.ones(3).to(dtype))
                self.same(values.to(wide), [SIZE] * 3)
                dist.broadcast(values := full(RANK, 3).to(dtype), SIZE - 1)
                self.same(values.to(wide), [SIZE - 1] * 3)

    def test_tensors_with_gaps(self) -> None:
        whole = full(1, 4, 2)
        dist.all_reduce(whole[:, 0])
        self.same(whole, [[SIZE, 1]] * 4)
        dist.all_reduce(whole.t()[1:])
        self.same(whole, [[SIZE, SIZE]] * 4)
        out = full(0, SIZE, 2)
        dist.all_gather([out[rank][1:] for rank in RANKS], full(RANK, 1))
        self.same(out[:, 1], RANKS)

    def test_from_and_to_a_root(self) -> None:
        for root in RANKS:
            dist.broadcast(values := full(RANK, 5, dtype=torch.int16), root)
            self.same(values, [root] * 5)
            dist.reduce(values := full(RANK, 2), root)
            self.same(values, [sum(RANKS) if RANK == root else RANK] * 2)
            parts = [full(-1, 2) for _ in RANKS] if RANK == root else None
            dist.gather(full(RANK, 2), parts, root)
            if parts:
                self.same(torch.stack(parts), [[rank] * 2 for rank in RANKS])
            parts = [full(10 * rank, 2) for rank in RANKS] if RANK == root else None
            dist.scatter(out := full(-1, 2), parts, root)
            self.same(out, [10 * RANK] * 2)

    def test_parts_of_any_size(self) -> None:
        out = [full(-1, rank) for rank in RANKS]
        dist.all_gather(out, full(RANK, RANK))
        for rank in RANKS:
            self.same(out[rank], [rank] * rank)
        dist.reduce_scatter(out := full(-1, RANK + 1), [full(rank, rank + 1) for rank in RANKS])
        self.same(out, [RANK * SIZE] * (RANK + 1))
        out = full(-1, SIZE + sum(RANKS))
        dist.all_to_all_single(out, full(RANK, (RANK + 1) * SIZE),
                               [rank + 1 for rank in RANKS], [RANK + 1] * SIZE)
        self.same(out, [rank for rank in RANKS for _ in range(rank + 1)])
        out = [full(-1, rank + 1) for rank in RANKS]
        dist.all_to_all(out, [full(RANK, RANK + 1) for _ in RANKS])
        for rank in RANKS:
            self.same(out[rank], [rank] * (rank + 1))

    def test_parts_in_one_tensor(self) -> None:
        gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
        scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
        gather(out := full(-1, SIZE * 2), full(RANK, 2))
        self.same(out, [rank for rank in RANKS for _ in range(2)])
        scatter(out := full(-1, 2), torch.arange(SIZE * 2.0))
        self.same(out, [SIZE * (2 * RANK), SIZE * (2 * RANK + 1)])
        whole = torch.arange(SIZE * 2.0)
        scatter(whole[2 * RANK:2 * RANK + 2], whole, op=dist.ReduceOp.AVG)
        self.same(whole[2 * RANK:2 * RANK + 2], [2 * RANK, 2 * RANK + 1])
        gather(whole, whole[2 * RANK:2 * RANK + 2])
        self.same(whole, torch.arange(SIZE * 2.0))
        dist.all_to_all_single(out := full(-1, SIZE), full(RANK, SIZE))
        self.same(out, RANKS)
        dist.all_to_all_single(out, out)  # input and output are one tensor
        self.same(out, [RANK] * SIZE)

    def test_several_as_one(self) -> None:
        values = [full(1, 2), full(RANK, 3)]
        dist.all_reduce_coalesced(values)
        self.same(values[0], [SIZE] * 2)
        self.same(values[1], [sum(RANKS)] * 3)

    def test_coalesced(self) -> None:
        if TORCH < (2, 1):
            self.skipTest("torch 2.1 and later coalesce like this")
        manager = dist.distributed_c10d._coalescing_manager
        with manager(async_ops=True) as one:
            for each in (values := [full(RANK, 2) for _ in range(3)]):
                dist.all_reduce(each)
        one.wait()
        self.same(torch.stack(values), [[sum(RANKS)] * 2] * 3)

    def test_objects(self) -> None:
        out = [None] * SIZE
        dist.all_gather_object(out, {"rank": RANK})
        self.assertEqual(out, [{"rank": rank} for rank in RANKS])

    def test_what_does_not_fit(self) -> None:
        with self.assertRaisesRegex(ValueError, "elements"):
            dist.all_gather([full(0, 2) for _ in RANKS], full(0, 3))
        if SIZE == 2:
            with self.assertRaisesRegex(ValueError, "less than 0"):
                dist.all_to_all_single(full(0, 2), full(0, 2), [1, 1], [3, -1])
        # Newer versions of torch refuse it themselves.
        with self.assertRaisesRegex((TypeError, NotImplementedError), "arithmetic|QuantizedCPU"):
            dist.all_reduce(torch.quantize_per_tensor(full(1, 2), 0.1, 0, torch.qint8))


class Works(Case):
    def test_in_the_background(self) -> None:
        values = [full(RANK, 1000) for _ in range(20)]
        works = [dist.all_reduce(each, async_op=True) for each in values]
        for work in works:
            self.assertTrue(work.wait())
            self.assertTrue(work.is_completed())
        self.same(torch.stack(values).unique(), [sum(RANKS)])

    def test_polled(self) -> None:
        work = dist.all_reduce(values := full(1, 100_000), async_op=True)
        while not work.is_completed():
            pass
        self.assertTrue(work.is_success())
        self.same(values.unique(), [SIZE])

    def test_dropped(self) -> None:
        several = [full(1, 10_000) for _ in range(20)]
        for values in several:
            dist.all_reduce(values, async_op=True)
        dist.all_reduce(full(1, 1))  # behind all of them
        for values in several:
            self.same(values.unique(), [SIZE])

    def test_futures(self) -> None:
        work = dist.all_reduce(full(1, 10), async_op=True)
        doubled = work.get_future().then(lambda future: future.value()[0] * 2)
        self.same(doubled.wait(), [2 * SIZE] * 10)
        work.wait()

    def test_a_callback_waits_for_another(self) -> None:
        def again(future: torch.futures.Future) -> torch.Tensor:
            return dist.all_reduce(future.value()[0], async_op=True).get_future().wait()[0]

        work = dist.all_reduce(full(1, 10), async_op=True)
        self.same(work.get_future().then(again).wait(), [SIZE * SIZE] * 10)

    def test_several_threads_wait(self) -> None:
        for _ in range(50):
            work = dist.all_reduce(full(1, 1000), async_op=True)
            failures: list[Exception] = []

            def wait(work: object = work, failures: list[Exception] = failures) -> None:
                try:
                    work.wait()  # type: ignore[attr-defined]
                except RuntimeError as error:
                    failures.append(error)

            threads = [threading.Thread(target=wait) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def test_polled_with_an_input_that_nobody_keeps(self) -> None:
        for _ in range(20):
            outs = [full(0, 100) for _ in RANKS]
            work = dist.all_gather(outs, full(RANK, 100) * 2, async_op=True)
            future = work.get_future()
            while not work.is_completed():
                pass
            future.wait()
            self.same(torch.stack(outs)[:, 0], [2 * rank for rank in RANKS])

    def test_while_a_thread_waits(self) -> None:
        tag = 9
        if SIZE == 1:
            self.skipTest("a rank alone has no other")
        if RANK == 0:
            work = dist.irecv(values := full(0, 1), 1, tag=tag)
            waiting = threading.Thread(target=work.wait)
            waiting.start()
            dist.send(full(0, 1), 1, tag=tag)
            waiting.join()
            self.same(values, [7])
        elif RANK == 1:
            dist.recv(full(0, 1), 0, tag=tag)
            dist.send(full(7, 1), 0, tag=tag)
        dist.barrier()


class Messages(Case):
    def test_around(self) -> None:
        ahead, behind = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        for count in (1, 50_000, 1_000_000):
            work = dist.isend(full(RANK, count), ahead) if SIZE > 1 else None
            if work:
                dist.recv(values := full(-1, count), behind)
                self.same(values.unique(), [behind])
                work.wait()

    def test_what_does_not_fit(self) -> None:
        if SIZE == 1:
            self.skipTest("a rank alone has no other")
        if RANK == 0:
            dist.send(full(1, 4), 1)
            # Newer versions of torch refuse what is not conjugated yet.
            values = torch.tensor([1 + 2j]).conj()
            dist.send(values if TORCH < (2, 0) else values.resolve_conj(), 1)
        elif RANK == 1:
            with self.assertRaisesRegex(RuntimeError, "4 elements, and not 10"):
                dist.recv(full(0, 10), 0)
            dist.recv(values := torch.tensor([0j]), 0)
            self.same(values, [1 - 2j])
        dist.barrier()

    def test_from_any(self) -> None:
        if RANK == 0:
            seen = sorted(dist.recv(full(0, 1)) for _ in RANKS[1:])
            self.assertEqual(seen, RANKS[1:])
        else:
            dist.send(full(RANK, 1), 0)
        dist.barrier()

    def test_several_at_once(self) -> None:
        if SIZE == 1:
            self.skipTest("a rank alone has no other")
        ahead, behind = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        ops = [dist.P2POp(dist.isend, full(RANK, 9), ahead),
               dist.P2POp(dist.irecv, values := full(-1, 9), behind)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        self.same(values, [behind] * 9)


class Groups(Case):
    def test_parts(self) -> None:
        first = dist.new_group(RANKS[:1])
        rest = dist.new_group(RANKS[1:]) if SIZE > 1 else None
        group = first if RANK == 0 else rest
        dist.all_reduce(values := full(1, 4), group=group)
        self.same(values, [1 if RANK == 0 else SIZE - 1] * 4)
        everybody = dist.new_group(timeout=datetime.timedelta(seconds=20))
        dist.all_reduce(values := full(1, 4), group=everybody)
        self.same(values, [SIZE] * 4)

    def test_by_its_members_alone(self) -> None:
        if TORCH < (2, 1):
            self.skipTest("torch 2.1 and later make groups by their members alone")
        dist.barrier()
        threads = len(os.listdir("/proc/self/task"))
        # In some group each, as torch counts the groups of each rank, and names later ones by that.
        ours = next(each for each in (RANKS[:max(1, SIZE - 1)], RANKS[max(1, SIZE - 1):]) if RANK in each)
        group = dist.new_group(ours, use_local_synchronization=True)
        dist.all_reduce(values := full(1, 4), group=group)
        self.same(values, [len(ours)] * 4)
        self.assertEqual(len(os.listdir("/proc/self/task")), threads)
        dist.barrier()

    def test_sequence_numbers(self) -> None:
        group = dist.new_group()
        begin = group._get_sequence_number_for_group()
        for _ in range(3):
            dist.all_reduce(full(1, 4), group=group)
        self.assertEqual(group._get_sequence_number_for_group() - begin, 3)

    def test_abort(self) -> None:
        if TORCH < (2, 11):
            self.skipTest("tried with torch 2.11 and later, which can abort a backend from outside")
        group = dist.new_group()
        dist.all_reduce(full(1, 4), group=group)
        if RANK == 0:
            group._get_backend(torch.device("cpu")).abort()
        dist.barrier()
        with self.assertRaisesRegex(RuntimeError, "abort"):
            for _ in range(3):
                dist.all_reduce(full(1, 4), group=group)
        dist.barrier()

    def test_parts_of_parts(self) -> None:
        """Torch gives groups that have no rank in common the same name."""
        if SIZE != 4 or TORCH < (2, 15):
            self.skipTest("torch 2.15 on 4 ranks makes such parts")
        half, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
        alone, all_parts = dist.new_subgroups(1, group=half)
        self.assertEqual((len(all_parts), alone.size()), (2, 1))
        dist.all_reduce(values := full(RANK, 2), group=alone)
        self.same(values, [RANK] * 2)
        dist.all_reduce(values := full(RANK, 2), group=half)
        self.same(values, [2 if RANK % 2 == 0 else 4] * 2)

    def test_timeout(self) -> None:
        if TORCH < (2, 15):
            self.skipTest("before torch 2.15, a backend from outside keeps its timeout")
        group = dist.new_group()
        dist.set_timeout(datetime.timedelta(seconds=0.2), group)
        begin = time.monotonic()
        if SIZE > 1:
            with self.assertRaisesRegex(RuntimeError, "timeout"):
                dist.recv(full(0, 1), (RANK + 1) % SIZE, group=group)
        self.assertLess(time.monotonic() - begin, 5)
        dist.barrier()

    def test_the_missing_are_named(self) -> None:
        if SIZE == 1:
            self.skipTest("a rank alone has no other")
        group = dist.new_group()
        if RANK == SIZE - 1:
            time.sleep(0.6)
        else:
            with self.assertRaisesRegex(RuntimeError, f"{SIZE - 1}"):
                # torch.distributed itself calls it for Gloo only.
                group.monitored_barrier(datetime.timedelta(seconds=0.3))
        dist.barrier()

    def test_disagreement(self) -> None:
        if SIZE == 1:
            self.skipTest("a rank alone has no other")
        group = dist.new_group()
        with self.assertRaisesRegex(RuntimeError, "mismatch"):
            if RANK == 0:
                dist.broadcast(full(1, 4), 0, group=group)
                dist.barrier(group)
            else:
                dist.all_reduce(full(1, 4), group=group)
        dist.barrier()


class Trains(Case):
    def model(self) -> torch.nn.Module:
        torch.manual_seed(1)
        return torch.nn.Sequential(torch.nn.Linear(20, 40), torch.nn.ReLU(), torch.nn.Linear(40, 3))

    def steps(self, model: torch.nn.Module, count: int) -> None:
        """Each rank has data of its own."""
        torch.manual_seed(RANK)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.rand(8, 20)).square().mean().backward()
            optimizer.step()

    def check_same_on_all(self, model: torch.nn.Module) -> None:
        mine = torch.cat([each.detach().flatten() for each in model.parameters()])
        dist.all_gather(of_all := [torch.empty_like(mine) for _ in RANKS], mine)
        for each in of_all:
            self.assertTrue(torch.equal(each, mine))


class Training(Trains):
    def test_hooks(self) -> None:
        wrapped = torch.nn.parallel.DistributedDataParallel
        local = post_localSGD_hook.PostLocalSGDState(None, dist.group.WORLD, start_localSGD_iter=100)
        power = {"process_group": None, "matrix_approximation_rank": 1, "start_powerSGD_iter": 2}
        hooks = [(None, default_hooks.allreduce_hook), (None, default_hooks.fp16_compress_hook),
                 (None, default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook)),
                 (powerSGD_hook.PowerSGDState(**power), powerSGD_hook.powerSGD_hook),
                 (local, post_localSGD_hook.post_localSGD_hook)]
        if TORCH >= (2, 0):  # before, only with NCCL or on GPUs
            hooks += [(None, default_hooks.bf16_compress_hook),
                      (None, default_hooks.bf16_compress_wrapper(default_hooks.allreduce_hook)),
                      (powerSGD_hook.PowerSGDState(**power),
                       default_hooks.fp16_compress_wrapper(powerSGD_hook.powerSGD_hook)),
                      (dist.group.WORLD, quantization_hooks.quantization_pertensor_hook),
                      (dist.group.WORLD, quantization_hooks.quantization_perchannel_hook)]
        for state, hook in hooks:  # batched_powerSGD_hook of torch 1.13 and 2.15 fails by itself
            with self.subTest(hook.__name__):
                model = wrapped(self.model())
                model.register_comm_hook(state, hook)
                self.steps(model, 6)
                self.check_same_on_all(model)

    def test_a_hook_that_does_nothing(self) -> None:
        model = torch.nn.parallel.DistributedDataParallel(self.model())
        model.register_comm_hook(None, debugging_hooks.noop_hook)
        self.steps(model, 2)
        mine = next(model.parameters()).detach()
        dist.all_gather(of_all := [torch.empty_like(mine) for _ in RANKS], mine)
        self.assertEqual(len({each.sum().item() for each in of_all}), SIZE, "each trained alone")

    def test_an_optimizer_in_the_hook(self) -> None:
        model = torch.nn.parallel.DistributedDataParallel(self.model())
        optimizer = _FunctionalSGD([], lr=0.1, _allow_empty_param_list=True)
        state = optimizer_overlap_hooks._OptimizerHookState(optimizer, params=list(model.parameters()))
        hook = optimizer_overlap_hooks._hook_then_optimizer(default_hooks.allreduce_hook, state)
        model.register_comm_hook(None, hook)
        before = next(model.parameters()).detach().clone()
        torch.manual_seed(RANK)
        for _ in range(3):
            model.zero_grad(set_to_none=False)
            model(torch.rand(8, 20)).square().mean().backward()
        self.assertFalse(torch.equal(before, next(model.parameters())))
        self.check_same_on_all(model)

    def test_workers_of_a_data_loader(self) -> None:
        loader = torch.utils.data.DataLoader(torch.arange(8.0), batch_size=2, num_workers=2,
                                             multiprocessing_context="fork")
        for batch in loader:  # from processes that this one forks
            dist.all_reduce(batch)
        self.same(batch, [6 * SIZE, 7 * SIZE])

    def test_uneven_inputs(self) -> None:
        for by_initial_size in (True, False):
            model = torch.nn.parallel.DistributedDataParallel(self.model(), bucket_cap_mb=0.001)
            with model.join(divide_by_initial_world_size=by_initial_size):
                self.steps(model, 2 * RANK + 1)
            self.check_same_on_all(model)

    def test_gradients(self) -> None:
        model = self.model()
        alone = [each.clone() for each in model.parameters()]
        parallel = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.001)
        data = torch.rand(SIZE, 8, 20)
        parallel(data[RANK]).square().mean().backward()
        for each in alone:
            each.requires_grad_().grad = None
        layers = [each.detach().requires_grad_() for each in alone]
        loss = sum((((data[rank] @ layers[0].t() + layers[1]).relu() @ layers[2].t() + layers[3])
                    .square().mean()) for rank in RANKS) / SIZE
        loss.backward()
        for got, wanted in zip(model.parameters(), layers):
            self.assertTrue(torch.allclose(got.grad, wanted.grad, atol=1e-6))


class Compiled(Trains):
    """What takes a C++ compiler on all ranks."""

    def test_hooks_of_torch_itself(self) -> None:
        for kind in (dist.BuiltinCommHookType.ALLREDUCE, dist.BuiltinCommHookType.FP16_COMPRESS):
            model = torch.nn.parallel.DistributedDataParallel(self.model())
            model._register_builtin_comm_hook(kind)
            self.steps(model, 6)
            self.check_same_on_all(model)

    def test_with_checks_of_torch(self) -> None:
        level = dist.get_debug_level()
        dist.set_debug_level(dist.DebugLevel.DETAIL)
        try:
            group = dist.new_group()
            model = torch.nn.parallel.DistributedDataParallel(self.model(), process_group=group)
            self.steps(model, 3)
        finally:
            dist.set_debug_level(level)
        self.check_same_on_all(model)

    def test_premul_sum(self) -> None:
        factor = dist._make_nccl_premul_sum(0.5)
        dist.all_reduce(values := full(1, 2), factor)
        self.same(values, [SIZE / 2] * 2)

    def test_coalesced_by_the_backend(self) -> None:
        if TORCH < (2, 1):
            self.skipTest("torch 2.1 and later coalesce like this")
        manager = dist.distributed_c10d._coalescing_manager
        values = [full(RANK, 2) for _ in RANKS]
        # What torch does not put together itself, the backend does.
        with manager(device=torch.device("cpu"), async_ops=True) as one:
            for root in RANKS:
                dist.broadcast(values[root][:1], root, async_op=True)
            dist.all_gather(out := [full(-1, 1) for _ in RANKS], full(RANK, 1), async_op=True)
            work = dist.isend(full(RANK, 5), (RANK + 1) % SIZE) if SIZE > 1 else None
            got = full(-1, 5)
            if work:
                dist.irecv(got, (RANK - 1) % SIZE)
        for work in one.works:
            self.assertTrue(work.wait())
            self.assertTrue(work.is_completed())
        self.same(torch.stack(values), [[root, RANK] for root in RANKS])
        self.same(torch.cat(out), RANKS)
        self.same(got, [(RANK - 1) % SIZE if SIZE > 1 else -1] * 5)
        with manager(device=torch.device("cpu"), async_ops=True) as one:
            dist.broadcast(values[0], 0, async_op=True)
            dist.broadcast(values[0], 0, async_op=True)
        self.assertEqual(len(one.works[0].get_future().wait()), 2)

    def test_one_timeout_of_many(self) -> None:
        if TORCH < (2, 1) or SIZE == 1:
            self.skipTest("torch 2.1 and later coalesce like this, on several ranks")
        received = [full(-1, 1) for _ in range(20)]
        with dist.distributed_c10d._coalescing_manager(device=torch.device("cpu"), async_ops=True) as one:
            for tag, each in enumerate(received):
                dist.irecv(each, (RANK - 1) % SIZE, tag=tag)
        begin = time.monotonic()
        with self.assertRaisesRegex(RuntimeError, "not all ended within 200 ms"):
            one.works[0].wait(datetime.timedelta(milliseconds=200))
        self.assertLess(time.monotonic() - begin, 2)
        dist.barrier()
        sent = [dist.isend(full(RANK, 1), (RANK + 1) % SIZE, tag=tag) for tag in range(20)]
        self.assertTrue(one.works[0].wait(datetime.timedelta(seconds=60)))
        for each in sent:
            each.wait()
        self.same(torch.cat(received), [(RANK - 1) % SIZE] * 20)

    def test_sparse(self) -> None:
        values = torch.sparse_coo_tensor([[RANK, SIZE]], [1.0, 1.0], (SIZE + 1,))
        dist.all_reduce(values)
        self.same(values.to_dense(), [1] * SIZE + [SIZE])
        again = torch.sparse_coo_tensor([[RANK, SIZE]], [1.0, 1.0], (SIZE + 1,))
        future = dist.all_reduce(again, async_op=True).get_future()
        self.same(future.wait()[0].to_dense(), [1] * SIZE + [SIZE])

    def test_gradients_of_an_embedding(self) -> None:
        """They are sparse."""
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Embedding(4 * SIZE, 2, sparse=True))
        model(torch.tensor([RANK])).sum().backward()
        gradient = model.module.weight.grad.to_dense()
        self.same(gradient[:, 0], torch.tensor([1 / SIZE] * SIZE + [0.0] * 3 * SIZE))

    def test_split(self) -> None:
        if TORCH < (2, 15):
            self.skipTest("before torch 2.15, groups without GPUs can't be split")
        ranks = [RANKS[:1], RANKS[1:]] if SIZE > 1 else [RANKS]
        group = dist.split_group(split_ranks=ranks)
        dist.all_reduce(values := full(1, 4), group=group)
        self.same(values, [1 if RANK == 0 else SIZE - 1] * 4)
        some = dist.split_group(split_ranks=[RANKS[:1]])
        if RANK == 0:
            dist.all_reduce(values := full(1, 4), group=some)
            self.same(values, [1] * 4)

    def test_profile(self) -> None:
        with torch.autograd.profiler.profile() as profile:
            dist.all_reduce(full(1, 4))
            dist.broadcast(full(1, 4), 0, async_op=True).wait()
        names = {each.name for each in profile.function_events}
        self.assertLessEqual({"hocket:all_reduce", "hocket:broadcast"}, names)


class Device(Case):
    """On GPUs: that of the rank, or one for all."""

    def setUp(self) -> None:
        if not torch.cuda.is_available():
            self.skipTest("torch sees no GPU")
        self.gpu = f"cuda:{RANK % torch.cuda.device_count()}"  # need not be the current one

    def on_gpu(self, value: float, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return full(value, *shape, dtype=dtype).to(self.gpu)

    def test_all_reduce(self) -> None:
        for dtype in FLOATS:
            dist.all_reduce(values := self.on_gpu(RANK + 1, 1000, dtype=dtype))
            self.same(values.unique(), [SIZE * (SIZE + 1) / 2])
            dist.all_reduce(values := self.on_gpu(RANK, 2, dtype=dtype), dist.ReduceOp.AVG)
            self.same(values, [(SIZE - 1) / 2] * 2)
        values = self.on_gpu(0, 4, 6)[:, ::2]
        values += RANK
        dist.all_reduce(values)
        self.same(values.unique(), [sum(RANKS)])

    def test_parts(self) -> None:
        out = [self.on_gpu(-1, 3, 2) for _ in RANKS]
        dist.all_gather(out, self.on_gpu(RANK, 3, 2))
        self.same(torch.stack(out)[:, 0, 0], RANKS)
        dist.all_gather_into_tensor(whole := self.on_gpu(-1, 2 * SIZE), self.on_gpu(RANK, 2))
        self.same(whole, [rank for rank in RANKS for _ in range(2)])
        dist.reduce_scatter(part := self.on_gpu(-1, 2), [self.on_gpu(rank, 2) for rank in RANKS])
        self.same(part, [RANK * SIZE] * 2)
        dist.all_to_all(out := [self.on_gpu(-1, 2) for _ in RANKS],
                        [self.on_gpu(10 * RANK + rank, 2) for rank in RANKS])
        self.same(torch.stack(out)[:, 0], [10 * rank + RANK for rank in RANKS])
        dist.all_to_all_single(got := self.on_gpu(-1, sum(RANKS)),
                               self.on_gpu(RANK, RANK * SIZE), RANKS, [RANK] * SIZE)
        self.same(got, [rank for rank in RANKS for _ in range(rank)])
        parts = [self.on_gpu(-1, 2) for _ in RANKS] if RANK == 0 else None
        dist.gather(self.on_gpu(RANK, 2), parts)
        if RANK == 0:
            self.same(torch.stack(parts)[:, 0], RANKS)
        dist.scatter(part, [self.on_gpu(rank, 2) for rank in RANKS] if RANK == 0 else None)
        self.same(part, [RANK] * 2)
        dist.broadcast(part := self.on_gpu(RANK, 2), SIZE - 1)
        self.same(part, [SIZE - 1] * 2)

    def test_streams(self) -> None:
        stream = torch.cuda.Stream(self.gpu)
        with torch.cuda.stream(stream):
            for _ in range(20):
                values = self.on_gpu(0, 1 << 20)
                torch.cuda._sleep(1_000_000)
                values += RANK + 1
                work = dist.all_reduce(values, async_op=True)
                other = self.on_gpu(1, 1 << 20) * 2
                work.wait()
                values *= 2
                self.same(values.unique(), [SIZE * (SIZE + 1)])
                self.same(other.unique(), [2])

    def test_waits(self) -> None:
        work = dist.all_reduce(values := self.on_gpu(1, 1 << 20), async_op=True)
        work.wait(datetime.timedelta(seconds=20))  # this thread does
        self.assertTrue(work.is_completed())
        self.same(values.unique(), [SIZE])
        work = dist.all_reduce(values, async_op=True)
        while not work.is_completed():
            time.sleep(0.001)
        self.same(values.unique(), [SIZE * SIZE])
        for _ in range(10):  # nobody waits
            dist.all_reduce(self.on_gpu(1, 1 << 20), async_op=True)
        dist.all_reduce(values := self.on_gpu(1, 1 << 20))
        self.same(values.unique(), [SIZE])

    def test_futures(self) -> None:
        works = [dist.all_reduce(self.on_gpu(index, 1 << 16), async_op=True) for index in range(9)]
        doubled = [work.get_future().then(lambda done: done.value()[0] * 2) for work in works]
        for index, future in enumerate(doubled):
            self.same(future.wait().unique(), [2 * SIZE * index])
            works[index].wait()

    def test_several_as_one(self) -> None:
        values = [self.on_gpu(RANK, 2), self.on_gpu(1, 3)]
        dist.all_reduce_coalesced(values)
        self.same(values[0], [sum(RANKS)] * 2)
        self.same(values[1], [SIZE] * 3)

    def test_messages(self) -> None:
        ahead, behind = (RANK + 1) % SIZE, (RANK - 1) % SIZE
        if SIZE > 1:
            work = dist.isend(self.on_gpu(RANK, 1000), ahead)
            dist.recv(values := self.on_gpu(-1, 1000), behind)
            self.same(values.unique(), [behind])
            work.wait()
            got = dist.irecv(values := self.on_gpu(-1, 1000), behind)
            dist.send(self.on_gpu(RANK, 1000), ahead)
            got.wait()
            self.same(values.unique(), [behind])

    def test_what_does_not_fit(self) -> None:
        with self.assertRaisesRegex(ValueError, "cpu and cuda"):
            dist.all_gather_into_tensor(full(0, SIZE), self.on_gpu(0, 1))

    def test_gradients(self) -> None:
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(300, 500), torch.nn.ReLU(),
                                    torch.nn.Linear(500, 20)).to(self.gpu)
        layers = [each.detach().clone().requires_grad_() for each in model.parameters()]
        data = [torch.randn(8, 300).to(self.gpu) for _ in RANKS]
        parallel = torch.nn.parallel.DistributedDataParallel(model)
        for _ in range(3):
            parallel.zero_grad()
            parallel(data[RANK]).square().mean().backward()
        one, bias, two, last = layers
        loss = sum((torch.relu(data[rank] @ one.T + bias) @ two.T + last)
                   .square().mean() for rank in RANKS) / SIZE
        loss.backward()
        for got, wanted in zip(model.parameters(), layers):
            self.assertTrue(torch.allclose(got.grad, wanted.grad, atol=1e-5))


class Trouble(Trains):
    def test_a_rank_dies(self) -> None:
        if SIZE == 1:
            self.skipTest("a rank alone has no other")
        model = torch.nn.parallel.DistributedDataParallel(self.model())
        dist.barrier()
        if RANK == SIZE - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        begin = time.monotonic()
        with self.assertRaisesRegex(RuntimeError, f"rank {SIZE - 1}"):
            self.steps(model, 1000)
        with self.assertRaisesRegex(RuntimeError, f"rank {SIZE - 1}"):
            dist.all_reduce(full(1, 10))
        self.assertLess(time.monotonic() - begin, 5)


if __name__ == "__main__":
    dist.init_process_group("hocket", init_method=f"file://{STORE}", rank=RANK, world_size=SIZE,
                            timeout=datetime.timedelta(seconds=30))
    # In this order, as a rank dies in the last.
    cases = [Collectives, Works, Messages, Groups, Training, Compiled, Device, Trouble]
    wanted = [each for each in cases if each.__name__ in sys.argv[1:]] or cases
    load = unittest.defaultTestLoader.loadTestsFromTestCase
    told = unittest.TextTestRunner(verbosity=0).run(unittest.TestSuite(map(load, wanted)))
    for test, why in told.skipped:
        print(f"skipped: {test.id()}: {why}", flush=True)
    os._exit(not told.wasSuccessful())  # without saying good-bye to a rank that has died
