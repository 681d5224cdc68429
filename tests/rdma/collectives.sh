#!/bin/sh
# Runs on every node of `tools/rdma-vm --nodes N`: the collectives of a world of all nodes, each part
# with one rank and with two on each. collectives.sh HOCKET COLLECTIVES TRANSPORTS PART...
here=$(dirname "$0") hocket=$1 collectives=$2
export HOCKET_TRANSPORT=$3
shift 3
for part; do
  for ranks in 1 2; do
    "$here/hosts.sh" "$hocket" "$ranks" "$collectives" "$part" || exit
  done
done
