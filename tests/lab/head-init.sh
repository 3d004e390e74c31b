#!/bin/sh
# Process 1 of the laboratory, in net, mount, uts, ipc and pid namespaces of its own.
#
#   head-init.sh FOLDER LAYER...
#
# It holds the switches, the memory of all nodes and their processes: when it ends, the kernel ends
# and unmounts all of it. The file system is the machine's but for /etc. There is no way out of its
# network. Says on standard output what its process id is outside, and ends when standard input
# does.
set -eu
folder=$1
shift
read -r outside rest </proc/self/stat # still the /proc of the outside, and it stays
: "$rest"

mount -t tmpfs -o mode=755,size=75% lab "$folder/memory"
cd "$folder/memory"
mkdir layers nodes guests upper work
for layer in "$@"; do cp -a "$layer" layers/; done
cp "$folder/etc/"* upper/
mount -t overlay -o lowerdir=/etc,upperdir=upper,workdir=work etc /etc
echo head >/proc/sys/kernel/hostname
ip -batch "$folder/switches"

# The kernel is the machine's: nothing in here may change it.
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys

exec 3<&0 </dev/null
echo "$outside"
exec >/dev/null
trap 'exit 0' TERM
{
    cat <&3
    kill -TERM 1
} &
while :; do wait; done # for the sake of those whose parent has gone
