#!/bin/sh
# Runs on every node of `tools/rdma-vm --nodes N`: hosts.sh HOCKET RANKS PROGRAM [ARG...]. One job of
# all nodes, with so many ranks on each.
hocket=$1 ranks=$2
shift 2
export HOCKET_SECRET=of-the-virtual-machines
exec "$hocket" run --no-tag-output --nnodes "$RDMA_VM_NODES" --node-rank "$RDMA_VM_NODE" \
  --master "${RDMA_VM_ADDRS%% *}:4711" -n "$ranks" -- "$@"
