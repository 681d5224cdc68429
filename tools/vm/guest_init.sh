#!/bin/sh
# Process 1 of the guest of tools/rdma-vm, run by busybox: modules, mounts, Soft-RoCE devices, the
# command, its status.
export PATH=/bin
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
say() { awk -v w="$*" '{ print "rdma-vm: " $1 " s: " w }' /proc/uptime >/dev/console; }
finish() { # report the status on its own port, then power off
  echo "$1" >/dev/vport0p3
  poweroff -f
  sleep 60
}

while read -r module; do
  case $module in
  dummy.ko) insmod "/modules/$module" numdummies=0 ;; # it makes dummy0 by itself otherwise
  *) insmod "/modules/$module" ;;
  esac || say "cannot load $module"
done </modules/order
until [ -c /dev/vport0p3 ]; do sleep 0.01; done # the ports appear a moment after the driver
say "modules loaded"
. /job/config

# The host's root, read-only; then fresh places to write.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 root /host || finish 125
for d in dev proc sys; do mount --rbind /$d /host/$d; done
for d in tmp run var/tmp; do [ -d /host/$d ] && mount -t tmpfs tmpfs /host/$d; done
mkdir -p /host/dev/shm /host/dev/pts
mount -t tmpfs tmpfs /host/dev/shm
mount -t devpts devpts /host/dev/pts
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
[ -d "/host$SHARE" ] || mkdir -p "/host$SHARE"
[ "$SHARE_RO" = 1 ] && ro=ro, || ro=
mount -t 9p -o ${ro}trans=virtio,version=9p2000.L,cache=mmap,msize=262144 share "/host$SHARE" || finish 125
mkdir -p /host/run/rdma-vm
cat /job/command >/host/run/rdma-vm/command
hostname "node$NODE"

h() { chroot /host /usr/bin/env PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }
ctl() { echo "$2" >"/proc/sys/net/$1"; }
add_rxe() { # NETDEV NAME: bring the interface up and put a Soft-RoCE device on it
  h ip link set "$1" mtu "$MTU" up
  h rdma link add "$2" type rxe netdev "$1" || finish 125
}

ctl ipv6/conf/default/accept_dad 0 # link-local GIDs are usable at once
h ip link set lo up
names=rxe0 addrs=
if [ "$NODES" -gt 1 ]; then
  # One guest of several.  Two are joined by one link.  More have a link for each pair; a
  # bridge with isolated ports makes them one segment, without forwarding and so without loops.
  if [ "$NODES" = 2 ]; then
    dev=eth0
  else
    dev=br0 i=0
    h ip link add br0 address 02:77:00:00:00:$(printf %02x $((NODE + 1))) mtu "$MTU" type bridge
    while [ $i -lt $((NODES - 1)) ]; do
      h ip link set eth$i mtu "$MTU" master br0 up
      h ip link set eth$i type bridge_slave isolated on
      i=$((i + 1))
    done
  fi
  h ip addr add 10.77.0.$((NODE + 1))/24 dev $dev
  add_rxe $dev rxe0
  i=0
  while [ $i -lt "$NODES" ]; do addrs="$addrs${addrs:+ }10.77.0.$((i + 1))" i=$((i + 1)); done
  for a in $addrs; do # wait for every peer
    t=0
    until h ping -c 1 -W 1 "$a" >/dev/null 2>&1; do
      t=$((t + 1)) && [ $t -lt 60 ] || { say "no answer from $a" && finish 125; }
      sleep 0.1
    done
  done
elif [ "$DEVICES" -gt 1 ]; then
  # Several devices in one kernel, joined by a bridge.  rxe (before netns support) lives in
  # the initial namespace only, so policy routing makes traffic between two local addresses
  # go out over the wire; without it, it would take the loopback path of the wrong device.
  h ip link add br0 mtu "$MTU" type bridge
  h ip link set br0 up
  ctl ipv4/conf/all/accept_local 1
  ctl ipv4/conf/default/accept_local 1
  ctl ipv4/conf/all/rp_filter 0
  ctl ipv4/conf/default/rp_filter 0
  ctl ipv4/conf/all/arp_ignore 1
  ctl ipv4/conf/all/arp_announce 2
  i=0 names=
  while [ $i -lt "$DEVICES" ]; do
    a=10.77.0.$((i + 1))
    h ip link add eth$i address 02:77:00:00:00:$(printf %02x $((i + 1))) type veth peer name port$i
    h ip link set port$i mtu "$MTU" master br0 up
    h ip addr add $a/24 dev eth$i
    add_rxe eth$i rxe$i
    h ip rule add pref 10 iif eth$i lookup local
    h ip rule add pref 20 from $a to $a lookup local
    h ip rule add pref 30 oif eth$i lookup $((100 + i))
    h ip rule add pref 40 from $a to 10.77.0.0/24 lookup $((100 + i))
    h ip route add 10.77.0.0/24 dev eth$i src $a table $((100 + i))
    names="$names${names:+ }rxe$i" addrs="$addrs${addrs:+ }$a" i=$((i + 1))
  done
  h ip rule add pref 50 lookup local
  h ip rule del pref 0
else
  h ip link add eth0 address 02:77:00:00:00:01 type dummy
  h ip addr add 10.77.0.1/24 dev eth0
  add_rxe eth0 rxe0
  addrs=10.77.0.1
fi
say "devices ready: $names"

{
  echo "export RDMA_VM_NODE=$NODE RDMA_VM_NODES=$NODES RDMA_VM_ADDR=10.77.0.$((NODE + 1)) RDMA_VM_GID_INDEX=1"
  echo "export RDMA_VM_ADDRS='$addrs' RDMA_VM_DEVICES='$names'"
  cat /job/command
} >/host/run/rdma-vm/command

# Pipes between the command and the ports: a port is not a terminal and opens only once.
{
  {
    h bash /run/rdma-vm/command </dev/null 3>&-
    echo $? >&3
  } 2>&1 1>&4 4>&- | cat >/dev/vport0p2 4>&-
} 3>/status 4>&1 | cat >/dev/vport0p1
say "command ended"
finish "$(cat /status)"
