#!/bin/sh
# Runs on every node of `tools/rdma-vm --nodes 2`: collectives of all kinds, then prepared ones,
# whose memory the adapters know meanwhile, and those of device memory, which is staged through
# memory that they know. two_hosts.sh HOCKET COLLECTIVES BENCH FAKE_DEVICE
here=$(dirname "$0")
"$here/collectives.sh" "$1" "$2" verbs some groups batches crowd || exit
export HOCKET_TRANSPORT=verbs
for operation in all_reduce broadcast all_to_all; do
  "$here/hosts.sh" "$1" 1 "$3" "$operation" --prepared --sizes 64K,1M -n 5 || exit
done

# registered BYTES COMMAND...: it succeeds, and the adapters know so much memory meanwhile, and none
# afterwards.
registered() {
  bytes=$1 known=0
  shift
  "$@" &
  while kill -0 $! 2>/dev/null; do
    rdma resource show mr | grep -q "mrlen $bytes " && known=1
    sleep 0.2
  done
  wait $! || return
  echo "$bytes bytes were registered: $known"
  [ $known = 1 ] && ! rdma resource show mr | grep -q mrlen
}
registered $((4 << 20)) "$here/hosts.sh" "$1" 1 "$3" all_gather --prepared --sizes 4M -n 60 || exit
export HOCKET_NCCL=0 HOCKET_DEVICE_MODULE="$4"
registered $((16 << 20)) "$here/hosts.sh" "$1" 1 "$3" all_gather --memory device --sizes 4M -n 60
