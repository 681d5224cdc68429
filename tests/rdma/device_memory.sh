#!/bin/sh
# Runs on every node of `tools/rdma-vm --nodes 2`: collectives of device memory (of a fake device,
# which no processor may touch) that adapters read and write themselves, where nothing is reduced.
# device_memory.sh HOCKET DEVICE BENCH FAKE_DEVICE
here=$(dirname "$0") hocket=$1
export HOCKET_TRANSPORT=verbs HOCKET_NCCL=0 HOCKET_GPUDIRECT=1 HOCKET_DEVICE_MODULE="$4" HOCKET_LOG_LEVEL=info
log=/tmp/device_memory.log

# direct RANKS PROGRAM [ARG...]: it succeeds, and meanwhile the adapters know slots of the device
# beside those of the host, for each rank here; afterwards, none. Ranks' logs are where they meet.
direct() {
  ranks=$1 most=0
  "$here/hosts.sh" "$hocket" "$@" 2>$log &
  while kill -0 $! 2>/dev/null; do
    now=$(rdma resource show mr | grep -c "mrlen $((16 << 20)) ")
    [ "$now" -le "$most" ] || most=$now
    sleep 0.2
  done
  wait $! || { tail -n 50 $log; return 1; }
  echo "$*: $most regions of slots, of $ranks ranks here"
  if [ "$RDMA_VM_NODE" = 0 ]; then
    grep -q "device memory by GPUDirect" $log || { tail -n 50 $log; return 1; }
    ! grep "device memory without GPUDirect" $log || return 1
  fi
  [ "$most" -ge $((2 * ranks)) ] && ! rdma resource show mr | grep -q mrlen
}

direct 1 "$2" && direct 2 "$2" || exit
for operation in broadcast all_gather gather scatter all_to_all; do
  direct 1 "$3" "$operation" --memory device --sizes 0,24,40K,10M -n 3 -w 1 || exit
done
direct 1 "$3" all_gather --memory device --in-place --async --sizes 24,9M -n 3 -w 1
