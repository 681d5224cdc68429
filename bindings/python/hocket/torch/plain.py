"""Process groups without C++, where no compiler is: for tensors in the host's memory. An operation costs
some tens of microseconds more."""

from __future__ import annotations

import ctypes
import os
import secrets
import selectors
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import Work as TorchWork

import hocket
from hocket import _ending

_TYPES = {torch.int8: "i8", torch.uint8: "u8", torch.int16: "i16", torch.int32: "i32", torch.int64: "i64",
          torch.float16: "f16", torch.bfloat16: "bf16", torch.float32: "f32", torch.float64: "f64",
          torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
          **{getattr(torch, theirs): ours for theirs, ours in
             (("float8_e4m3fn", "f8e4m3"), ("float8_e5m2", "f8e5m2"), ("uint16", "u16"), ("uint32", "u32"),
              ("uint64", "u64")) if hasattr(torch, theirs)}}
_OPS = ((dist.ReduceOp.SUM, "sum"), (dist.ReduceOp.AVG, "average"), (dist.ReduceOp.PRODUCT, "product"),
        (dist.ReduceOp.MIN, "min"), (dist.ReduceOp.MAX, "max"), (dist.ReduceOp.BAND, "bit_and"),
        (dist.ReduceOp.BOR, "bit_or"), (dist.ReduceOp.BXOR, "bit_xor"))
_CALLBACKS_AT_MOST_S = 5  # when the process ends
_Failure: type[Exception] = getattr(dist, "DistBackendError", RuntimeError)


class _Memory:
    """What an operation borrows until it is over, and the copies that are due then."""

    def __init__(self, like: torch.Tensor, reduction: Any = None) -> None:
        self.outputs: list[torch.Tensor] = []
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        self._borrowed: list[torch.Tensor] = []
        self._type = like.dtype
        self.words: dict[str, Any] = {"dtype": _TYPES.get(like.dtype, f"bytes{like.element_size()}")}
        if reduction is None:
            return
        if like.dtype not in _TYPES:
            raise TypeError(f"hocket: there is no arithmetic with {like.dtype}")
        names = [name for op, name in _OPS if reduction == op]
        if not names:
            raise NotImplementedError(f"hocket: {reduction} needs a C++ compiler")
        self.words["op"] = names[0]

    def add_input(self, tensor: torch.Tensor) -> Any:
        """An input. Add the outputs first: an input that shares memory with one is copied."""
        self._check(tensor)
        values = tensor.detach().resolve_conj().resolve_neg().contiguous()
        is_shared = _storage(values) in {_storage(each) for each in self._borrowed}
        return self._borrow(values.clone() if is_shared else values)

    def add_output(self, tensor: torch.Tensor) -> Any:
        self._check(tensor)
        self.outputs.append(tensor)
        values = tensor.detach()
        if not values.is_contiguous() or values.is_conj() or values.is_neg():
            values = values.resolve_conj().resolve_neg().contiguous()
            self.copies.append((tensor.detach(), values))
        return self._borrow(values)

    def add_inputs(self, tensors: Iterable[torch.Tensor]) -> list[Any]:
        return [self.add_input(each) for each in tensors]

    def add_outputs(self, tensors: Iterable[torch.Tensor]) -> list[Any]:
        return [self.add_output(each) for each in tensors]

    def add(self, other: _Memory) -> None:
        self.outputs += other.outputs
        self.copies += other.copies
        self._borrowed += other._borrowed

    def finish(self, is_well: bool) -> None:
        try:
            with torch.no_grad():
                for to, values in self.copies if is_well else ():
                    to.copy_(values)
        finally:
            self.copies, self._borrowed = [], []

    def _check(self, tensor: torch.Tensor) -> None:
        if tensor.device.type != "cpu" or tensor.layout != torch.strided:
            raise NotImplementedError("hocket: without a C++ compiler, tensors have to be dense, and in the "
                                      f"host's memory, not {tensor.layout} on {tensor.device}")
        if tensor.dtype != self._type:
            raise TypeError(f"hocket: {tensor.dtype} and {self._type} in one operation")

    def _borrow(self, values: torch.Tensor) -> Any:
        self._borrowed.append(values)
        size = values.numel() * values.element_size()
        return (ctypes.c_char * size).from_address(values.data_ptr()) if size else bytearray()


class _Work(TorchWork):
    """Whoever first sees that the operation is over concludes it: a thread that waits, or that of
    _Completions."""

    def __init__(self, memory: _Memory | None, count: int | None = None, sends: Sends | None = None) -> None:
        super().__init__()
        self._memory = memory
        self._count = count  # of a receive: elements
        self._sends = sends  # of a send, which is one of these
        self._source = -1
        self._lock = threading.Lock()
        self._is_over = False
        self._error: BaseException | None = None
        self._future: torch.futures.Future | None = None

    def begin(self, communicator: hocket.Communicator, operations: Sequence[hocket.Operation]) -> _Work:
        if self._sends is not None:
            self._sends.add(self)
        try:
            if len(operations) == 1:
                self._handle = communicator.start(operations[0], _completions().queue, self)
            else:
                self._handle = communicator.start_many(operations, _completions().queue, self)
        except BaseException as error:
            if self._sends is not None:
                self._sends.remove(self)
            if isinstance(error, hocket.Error):
                raise _translated(error) from error
            raise
        return self

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        if not self._is_over:
            received = error = None
            try:
                if not self._handle.wait(timeout.total_seconds() or None):
                    raise _Failure(f"hocket: the operation has not ended within {timeout}; it goes on")
                received = self._handle.received if self._count is not None else None
            except hocket.Error as why:
                error = why
            self.conclude(error, received)
        if self._error is not None:
            raise self._error
        return True

    def conclude(self, error: hocket.Error | None, received: hocket.Received | None) -> None:
        with self._lock:
            if self._is_over:
                return
            if error is not None:
                self._error = _translated(error)
            elif received is not None and received.count != self._count:
                self._error = _Failure(f"hocket: rank {received.peer} has sent {received.count} elements, "
                                       f"and not {self._count}")
            try:
                if self._memory is not None:
                    self._memory.finish(self._error is None)
            except BaseException as why:  # whatever torch finds wrong with the tensors, or Ctrl-C
                self._error = why
            self._source = received.peer if received is not None else -1
            self._is_over = True
            future = self._future
            if self._sends is not None:
                self._sends.remove(self)
        if future is not None:
            _completions().call(future)

    def get_future(self) -> torch.futures.Future:
        """Has the outputs or the error. The error comes from a callback, because C++ does not see one that
        set_exception() sets."""
        with self._lock:
            is_over = self._is_over
            if not is_over and self._future is None:
                self._future = torch.futures.Future()
            future = self._future if not is_over else torch.futures.Future()
        outcome = future.then(self._outcome)
        if is_over:
            future.set_result(None)
        return outcome

    def is_completed(self) -> bool:
        return self._is_over

    def is_success(self) -> bool:
        return self._is_over and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._memory.outputs if self._memory is not None else []

    def source_rank(self) -> int:
        return self._source

    # The names of torch 1.13, and of its C++.
    _source_rank = source_rank
    getFuture = get_future  # noqa: N815

    def _outcome(self, _: object) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self.result()


class Sends:
    """The sends of this process that have not ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._all: set[_Work] = set()

    def add(self, send: _Work) -> None:
        with self._lock:
            self._all.add(send)

    def remove(self, send: _Work) -> None:
        with self._lock:
            self._all.discard(send)

    def count(self) -> int:
        with self._lock:
            return len(self._all)


class _Completions:
    """The thread that concludes what nobody waits for, and those that call callbacks of futures."""

    def __init__(self) -> None:
        self.queue = hocket.Queue()
        # It is never freed, since that would wait for all operations that report to it.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.queue))
        self._callers: set[threading.Thread] = set()
        self._end, self._wish_to_end = os.pipe()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self.queue.fileno(), selectors.EVENT_READ)
        self._selector.register(self._end, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._run, name="hocket completions", daemon=True)
        self._thread.start()
        # Before Python ends: after that, a thread that wakes up may take the process down.
        _ending.at_end(self._stop, priority=0)

    def call(self, future: torch.futures.Future) -> None:
        """Ends it in a thread of its own, as a callback may wait for another operation."""
        caller = threading.Thread(target=self._call, args=(future,), daemon=True)
        self._callers.add(caller)
        try:
            caller.start()
        except RuntimeError:  # the process is about to end, or has too many threads
            self._callers.discard(caller)
            future.set_result(None)

    def _call(self, future: torch.futures.Future) -> None:
        try:
            future.set_result(None)
        finally:
            self._callers.discard(threading.current_thread())

    def _run(self) -> None:
        has_to_end = False
        while not has_to_end:
            has_to_end = any(key.fd == self._end for key, _ in self._selector.select())
            while (completion := self.queue.next(0)) is not None:
                try:
                    completion.tag.conclude(completion.error, completion.received)
                except Exception:  # of whoever waits for the future
                    traceback.print_exc()
            del completion

    def _stop(self) -> None:
        os.write(self._wish_to_end, b"x")
        end = time.monotonic() + _CALLBACKS_AT_MOST_S
        self._thread.join(_CALLBACKS_AT_MOST_S)
        for caller in list(self._callers):
            caller.join(max(0.0, end - time.monotonic()))


_completions_lock = threading.Lock()
_completions_by_pid: dict[int, _Completions] = {}  # a forked child has its own


def _completions() -> _Completions:
    with _completions_lock:
        if os.getpid() not in _completions_by_pid:
            _completions_by_pid[os.getpid()] = _Completions()
        return _completions_by_pid[os.getpid()]


def _translated(error: hocket.Error) -> Exception:
    return ValueError(str(error)) if isinstance(error, hocket.InvalidArgument) else _Failure(str(error))


def _only(tensors: Sequence[Any]) -> Any:
    if len(tensors) != 1:
        raise ValueError(f"hocket: one tensor, or one list of them, was expected, not {len(tensors)}")
    return tensors[0]


def _storage(tensor: torch.Tensor) -> int:
    return getattr(tensor, "untyped_storage", tensor.storage)().data_ptr()


def _sizes(parts: Sequence[torch.Tensor]) -> dict[str, list[int]]:
    """Empty if all are equal, as in C++: all ranks must describe an operation in the same way."""
    sizes = [each.numel() for each in parts]
    return {"counts": sizes} if len(set(sizes)) > 1 else {}


class Group(dist.ProcessGroup):
    def __init__(self, communicator: hocket.Communicator, rank: int, size: int, timeout: timedelta,
                 sends: Sends) -> None:
        super().__init__(rank, size)
        self._communicator = communicator
        self._sends = sends
        self._rank, self._size, self._timeout = rank, size, timeout
        self._begun = 0
        self._group_name = ""
        # torch's C++ keeps works, but not their Python objects, without which they never end. It keeps few
        # at a time.
        self._kept: deque[_Work] = deque(maxlen=64)

    def getBackendName(self) -> str:  # noqa: N802
        return "hocket"

    name = getBackendName

    def broadcast(self, tensors: list[torch.Tensor], options: Any) -> _Work:
        memory = _Memory(_only(tensors))
        return self._start(memory, options, hocket.broadcast, memory.add_output(tensors[0]), options.rootRank)

    def allreduce(self, tensors: list[torch.Tensor], options: Any = None) -> _Work:
        options = options or dist.AllreduceOptions()
        memory = _Memory(_only(tensors), options.reduceOp)
        return self._start(memory, options, hocket.all_reduce, memory.add_output(tensors[0]))

    def allreduce_coalesced(self, tensors: list[torch.Tensor], options: Any) -> _Work:
        parts = [_Memory(each, options.reduceOp) for each in tensors]
        return self._start_many(parts, [hocket.all_reduce(memory.add_output(each), **self._words(memory, options))
                                        for memory, each in zip(parts, tensors, strict=True)])

    def reduce(self, tensors: list[torch.Tensor], options: Any) -> _Work:
        memory = _Memory(_only(tensors), options.reduceOp)
        if self._rank == options.rootRank:
            values = memory.add_output(tensors[0])
        else:
            values = memory.add_input(tensors[0].clone())
            memory.outputs = tensors  # as they are
        return self._start(memory, options, hocket.reduce, values, root=options.rootRank)

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                  options: Any = None) -> _Work:
        parts, memory = self._of_ranks(outputs), _Memory(_only(inputs))
        out = memory.add_outputs(parts)
        return self._start(memory, options, hocket.all_gather, memory.add_input(inputs[0]), out, **_sizes(parts))

    def allgather_base(self, output: torch.Tensor, given: torch.Tensor, options: Any = None) -> _Work:
        memory = _Memory(given)
        out = memory.add_output(output)
        return self._start(memory, options, hocket.all_gather, memory.add_input(given), out)

    def allgather_coalesced(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor],
                            options: Any = None) -> _Work:
        if len(outputs) != self._size:
            raise ValueError(f"hocket: lists for {len(outputs)} ranks of {self._size}")
        memories, operations = [], []
        for given, *parts in zip(inputs, *outputs, strict=True):
            memories.append(memory := _Memory(given))
            out = memory.add_outputs(parts)
            operations.append(hocket.all_gather(memory.add_input(given), out, **_sizes(parts),
                                                **self._words(memory, options)))
        return self._start_many(memories, operations)

    def allgather_base_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                 options: Any = None) -> _Work:
        return self._start_pairs(hocket.all_gather, outputs, inputs, options)

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], options: Any) -> _Work:
        memory = _Memory(_only(inputs))
        is_root = self._rank == options.rootRank
        out = memory.add_outputs(self._of_ranks(outputs, inputs[0])) if is_root else None
        values = memory.add_input(inputs[0])
        memory.outputs = memory.outputs or inputs
        return self._start(memory, options, hocket.gather, values, out, root=options.rootRank)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], options: Any) -> _Work:
        memory = _Memory(_only(outputs))
        out = memory.add_output(outputs[0])
        is_root = self._rank == options.rootRank
        values = memory.add_inputs(self._of_ranks(inputs, outputs[0])) if is_root else None
        return self._start(memory, options, hocket.scatter, values, out, root=options.rootRank)

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]],
                       options: Any) -> _Work:
        memory = _Memory(_only(outputs), options.reduceOp)
        out = memory.add_output(outputs[0])
        parts = self._of_ranks(inputs)
        return self._start(memory, options, hocket.reduce_scatter, memory.add_inputs(parts), out, **_sizes(parts))

    def reduce_scatter_base(self, output: torch.Tensor, given: torch.Tensor, options: Any) -> _Work:
        memory = _Memory(given, options.reduceOp)
        out = memory.add_output(output)
        return self._start(memory, options, hocket.reduce_scatter, memory.add_input(given), out)

    def reduce_scatter_base_coalesced(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor],
                                      options: Any) -> _Work:
        return self._start_pairs(hocket.reduce_scatter, outputs, inputs, options, options.reduceOp)

    def alltoall_base(self, output: torch.Tensor, given: torch.Tensor, output_rows: Sequence[int],
                      input_rows: Sequence[int], options: Any = None) -> _Work:
        memory = _Memory(given)
        out = memory.add_output(output)
        return self._start(memory, options, hocket.all_to_all, memory.add_input(given), out,
                           counts=self._counts(given, input_rows), counts_from=self._counts(output, output_rows))

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], options: Any = None) -> _Work:
        memory = _Memory(inputs[0])
        out = memory.add_outputs(outputs)
        return self._start(memory, options, hocket.all_to_all, memory.add_inputs(inputs), out,
                           counts=[each.numel() for each in inputs],
                           counts_from=[each.numel() for each in outputs])

    def barrier(self, opts: Any = None) -> _Work:
        self._begun += 1
        return self._begin(None, [hocket.barrier(timeout=self._seconds(opts))])

    def monitored_barrier(self, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
        try:
            self._communicator.monitored_barrier((timeout or self._timeout).total_seconds())
        except hocket.Error as error:
            raise _translated(error) from error

    def send(self, tensors: list[torch.Tensor], peer: int, tag: int = 0) -> _Work:
        memory = _Memory(_only(tensors))
        operation = hocket.send(memory.add_input(tensors[0]), peer, tag, dtype=memory.words["dtype"],
                                timeout=self._timeout.total_seconds())
        return self._begin(memory, [operation], sends=self._sends)

    def recv(self, tensors: list[torch.Tensor], peer: int | None, tag: int = 0) -> _Work:
        memory = _Memory(_only(tensors))
        operation = hocket.recv(memory.add_output(tensors[0]), peer, tag, dtype=memory.words["dtype"],
                                timeout=self._timeout.total_seconds(), fails_alone=True)
        return self._begin(memory, [operation], tensors[0].numel())

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> _Work:
        return self.recv(tensors, None, tag)

    def abort(self) -> None:
        self._communicator.abort("torch.distributed aborted the process group")

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout

    def _set_sequence_number_for_group(self) -> None:
        """All ranks begin with 0."""

    def _get_sequence_number_for_group(self) -> int:
        return self._begun

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._group_name = name

    def getGroupName(self) -> str:  # noqa: N802
        return self._group_name

    def _get_backend(self, device: torch.device) -> Group:
        return self

    # The names of several versions of torch.
    _allgather_base = all_gather_single = allgather_base
    allgather_into_tensor_coalesced = all_gather_single_coalesced = allgather_base_coalesced
    _reduce_scatter_base = reduce_scatter_single = reduce_scatter_base
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced = reduce_scatter_base_coalesced
    all_to_all_single = alltoall_base

    def _seconds(self, options: Any) -> float:
        given = getattr(options, "timeout", None)
        return (self._timeout if given is None or given < timedelta(0) else given).total_seconds()

    def _words(self, memory: _Memory, options: Any) -> dict[str, Any]:
        return {**memory.words, "timeout": self._seconds(options)}

    def _start(self, memory: _Memory, options: Any, kind: Any, *arguments: Any, **words: Any) -> _Work:
        self._begun += 1
        try:
            operation = kind(*arguments, **words, **self._words(memory, options))
        except hocket.Error as error:
            raise _translated(error) from error
        return self._begin(memory, [operation])

    def _begin(self, memory: _Memory | None, operations: Sequence[hocket.Operation],
               count: int | None = None, sends: Sends | None = None) -> _Work:
        work = _Work(memory, count, sends)
        self._kept.append(work)
        return work.begin(self._communicator, operations)

    def _start_many(self, parts: Sequence[_Memory], operations: Sequence[hocket.Operation]) -> _Work:
        if not operations:
            raise ValueError("hocket: there are no tensors")
        self._begun += 1
        for each in parts[1:]:
            parts[0].add(each)
        return self._begin(parts[0], operations)

    def _start_pairs(self, kind: Any, outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor],
                     options: Any, reduction: Any = None) -> _Work:
        memories, operations = [], []
        for output, given in zip(outputs, inputs, strict=True):
            memories.append(memory := _Memory(given, reduction))
            out = memory.add_output(output)
            operations.append(kind(memory.add_input(given), out, **self._words(memory, options)))
        return self._start_many(memories, operations)

    def _of_ranks(self, lists: Sequence[Any], like: torch.Tensor | None = None) -> list[torch.Tensor]:
        """A tensor for each rank; each as large as `like`."""
        tensors = _only(lists)
        if len(tensors) != self._size:
            raise ValueError(f"hocket: {len(tensors)} tensors for {self._size} ranks")
        for each in tensors if like is not None else ():
            if each.numel() != like.numel():
                raise ValueError(f"hocket: a tensor has {each.numel()} elements instead of {like.numel()}")
        return tensors

    def _counts(self, tensor: torch.Tensor, rows: Sequence[int]) -> list[int]:
        all_rows = tensor.size(0) if tensor.dim() else 1
        if not rows:
            if all_rows % self._size:
                raise ValueError(f"hocket: {all_rows} rows can't be divided among {self._size} ranks")
            return [tensor.numel() // self._size] * self._size
        if min(rows) < 0:
            raise ValueError("hocket: a part can't have less than 0 rows")
        if len(rows) != self._size or sum(rows) != all_rows:
            raise ValueError(f"hocket: parts of {list(rows)} rows for {self._size} ranks and {all_rows} rows")
        return [each * (tensor.numel() // max(all_rows, 1)) for each in rows]


_UNUSED_VALUE = secrets.token_hex(16)  # a value that no key has


class _Meeting:
    """A store of torch, for hocket.Store.own()."""

    def __init__(self, store: dist.Store) -> None:
        self._store = store

    def set(self, key: str, value: bytes, timeout: float) -> None:
        self._store.set(key, value)

    def get(self, key: str, timeout: float) -> bytes:
        self.wait([key], timeout)
        return self._store.get(key)

    def wait(self, keys: list[str], timeout: float) -> None:
        """Asks again and again: while a store of torch waits, no other thread can use it."""
        end = time.monotonic() + timeout
        while not self.check(keys, timeout):
            if time.monotonic() >= end:
                raise TimeoutError(f"not all of {', '.join(keys)} came in time")
            time.sleep(0.005)

    def check(self, keys: list[str], timeout: float) -> bool:
        if hasattr(self._store, "check"):
            return self._store.check(keys)
        # In torch 1.13 this is the only question that neither waits nor changes anything.
        unused = _UNUSED_VALUE
        return all(self._store.compare_set(key, unused, unused) != unused.encode() for key in keys)

    def add(self, key: str, amount: int, timeout: float) -> int:
        return self._store.add(key, amount)

    def compare_set(self, key: str, expected: bytes, desired: bytes, timeout: float) -> bytes | None:
        now = self._store.compare_set(key, expected, desired)
        # Of a missing key these stores say that it holds what was expected.
        return None if now == expected and now != desired else now

    def delete_key(self, key: str, timeout: float) -> bool:
        return self._store.delete_key(key)


def create(store: dist.Store, rank: int, size: int, timeout: timedelta, ranks: list[int],
           is_default: bool, sends: Sends) -> Group:
    """`ranks` are those of the default group, if that is Hocket's; otherwise empty."""
    seconds = timeout.total_seconds()
    try:
        if ranks:
            whole = dist.distributed_c10d._get_default_group()
            communicator = whole._communicator.group(ranks, "torch", seconds)
        else:
            store.add("hocket/came", 1)  # makes the file of a FileStore, for which its other functions wait
            communicator = hocket.join(store=hocket.Store.own(_Meeting(store)), rank=rank, size=size,
                                       name="torch", timeout=seconds, operation_timeout=seconds)
    except hocket.Error as error:
        raise _translated(error) from error
    return Group(communicator, rank, size, timeout, sends)
