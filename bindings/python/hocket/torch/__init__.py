"""PyTorch's process groups over Hocket.

    import torch.distributed as dist
    import hocket.torch                # torch 2.14 and later find it by themselves

    dist.init_process_group("hocket")

What binds torch to Hocket is C++, and fits one version of torch. It is compiled when it is first
needed, which takes half a minute, and kept; `python -m hocket.torch` does it beforehand. Where that
is not done, and there is no compiler, plain.py does less, in Python alone.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
import warnings
from types import ModuleType
from typing import Any

import torch.distributed as dist

from hocket.torch import plain
from hocket.torch.build import NAME, built, compiler, extension
from hocket.torch.leaving import sends_of_process
from hocket.torch.store import Store, rendezvous

__all__ = ["Store", "register"]


def register() -> None:
    """Makes torch.distributed know the backend "hocket" and URLs hocket://. May be called again."""
    if not hasattr(dist.Backend, "HOCKET"):
        devices = {"devices": ["cpu", "cuda"]} if hasattr(dist.Backend, "default_device_backend_map") else {}
        dist.Backend.register_backend("hocket", _create, extended_api=True, **devices)
        dist.register_rendezvous_handler("hocket", rendezvous)


def _create(options: Any, _: object) -> Any:
    is_default = not dist.is_initialized()
    # Groups are parts of the default group's world, if that has one.
    is_part = not is_default and "hocket" in str(dist.get_backend())
    ranks = list(options.global_ranks_in_group) if is_part else []
    creator = _creator()
    return creator.create(options.store, options.group_rank, options.group_size, options.timeout, ranks,
                          is_default, sends_of_process(creator.Sends))


@functools.cache
def _creator() -> ModuleType:
    if compiler() or os.access(extension(), os.R_OK):
        return _extension()
    warnings.warn("there is no C++ compiler (g++, clang++ or what CXX names): hocket is slower, and only for "
                  "tensors in the host's memory", stacklevel=2)
    return plain


def _extension() -> ModuleType:
    name = f"hocket.torch.{NAME}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, built())
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


register()
