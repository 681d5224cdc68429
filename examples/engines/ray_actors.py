"""Ranks that are actors of Ray. They meet in a store that is an actor, too.

    pip install ray
    python3 examples/engines/ray_actors.py --ranks 4
"""

from __future__ import annotations

import argparse
from array import array

import ray
from actor_store import ActorStore, Values

import hocket


@ray.remote
class Rank:
    def __init__(self, store: ray.actor.ActorHandle, rank: int, size: int) -> None:
        def ask(method: str, *arguments: object) -> object:
            return ray.get(getattr(store, method).remote(*arguments))

        self._world = hocket.join(store=hocket.Store.own(ActorStore(ask)), rank=rank, size=size)

    def sum_of_ranks(self) -> float:
        values = array("d", [self._world.rank]) * 1000
        self._world.all_reduce(values)
        return values[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--ranks", type=int, default=4, help="how many (%(default)s)")
    size = parser.parse_args().ranks
    ray.init(num_cpus=size, include_dashboard=False)
    store = ray.remote(Values).options(num_cpus=0).remote()
    ranks = [Rank.remote(store, rank, size) for rank in range(size)]
    print(f"{size} ranks, the sum is {ray.get([each.sum_of_ranks.remote() for each in ranks])}")


if __name__ == "__main__":
    main()
