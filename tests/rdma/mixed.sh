#!/bin/sh
# Runs on every node of `tools/rdma-vm --nodes 3`, of which the last has no adapter that it may use:
# verbs between the others, TCP to it. mixed.sh HOCKET COLLECTIVES
here=$(dirname "$0")
unset HOCKET_TRANSPORT
[ "$RDMA_VM_NODE" != 2 ] || export HOCKET_IB_HCA=^rxe0
"$1" info | grep -E '^  (tcp|verbs) '
sent() { rdma statistic show link rxe0/1 | grep -o 'sent_pkts [0-9]*' | cut -d ' ' -f 2; }
before=$(sent)
"$here/hosts.sh" "$1" 1 "$2" some || exit
after=$(sent)
echo "packets over verbs: $((after - before))"
if [ "$RDMA_VM_NODE" = 2 ]; then
  [ "$after" = "$before" ]
else
  [ "$((after - before))" -gt 1000 ]
fi
