"""Ranks that are tasks of Dask, one on each worker. They meet in a store that is an actor.

    pip install distributed
    python3 examples/engines/dask_workers.py --ranks 4
"""

from __future__ import annotations

import argparse
from array import array

import actor_store
from distributed import Client, LocalCluster
from distributed.actor import Actor

import hocket


def sum_of_ranks(store: Actor, rank: int, size: int) -> float:
    def ask(method: str, *arguments: object) -> object:
        return getattr(store, method)(*arguments).result()

    world = hocket.join(store=hocket.Store.own(actor_store.ActorStore(ask)), rank=rank, size=size)
    values = array("d", [world.rank]) * 1000
    world.all_reduce(values)
    return values[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="how many (%(default)s)")
    size = parser.parse_args().ranks
    # One thread each: a rank that waits for another must not take its place.
    with LocalCluster(n_workers=size, threads_per_worker=1, dashboard_address=None) as cluster, \
            Client(cluster) as client:
        client.upload_file(actor_store.__file__)  # for workers on other hosts
        store = client.submit(actor_store.Values, actor=True).result()
        ranks = [client.submit(sum_of_ranks, store, rank, size, workers=[worker], pure=False)
                 for rank, worker in enumerate(client.scheduler_info()["workers"])]
        print(f"{size} ranks, the sum is {client.gather(ranks)}")


if __name__ == "__main__":
    main()
