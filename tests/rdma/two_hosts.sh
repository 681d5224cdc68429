#!/bin/sh
# Runs on every node of `tools/rdma-vm --nodes 2`: collectives of all kinds, then prepared ones,
# whose memory the adapters know meanwhile. two_hosts.sh HOCKET COLLECTIVES BENCH
here=$(dirname "$0")
"$here/collectives.sh" "$1" "$2" verbs some groups batches crowd || exit
export HOCKET_TRANSPORT=verbs
for operation in all_reduce broadcast all_to_all; do
  "$here/hosts.sh" "$1" 1 "$3" "$operation" --prepared --sizes 64K,1M -n 5 || exit
done
"$here/hosts.sh" "$1" 1 "$3" all_gather --prepared --sizes 4M -n 60 &
job=$! known=0
while kill -0 $job 2>/dev/null; do
  rdma resource show mr | grep -q "mrlen $((4 << 20)) " && known=1
  sleep 0.2
done
wait $job || exit
echo "its 4 MiB were registered: $known"
[ $known = 1 ] && ! rdma resource show mr | grep -q mrlen
