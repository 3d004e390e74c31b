#!/bin/sh
# Process 1 of a node of the laboratory, in net, mount, uts, ipc and pid namespaces of its own.
#
#   node-init.sh COMMON
#
# Run in the node's folder, in which are:
#
#   settings  lines of sh: name, address, address6, data, lower, tmp, sshd
#   files     what it has and the machine has not; before that, COMMON is put over its root
#   before    lines of sh to be run before sshd starts
#   after     the same, afterwards
#
# Says on standard output what its process id is outside, then "up". In between, it waits for a line
# on standard input: the cable is plugged in.
set -eu
common=$1
read -r outside rest </proc/self/stat # still the /proc of the outside
: "$rest"
# shellcheck source=tests/own-root.sh
. "${0%/*}/../own-root.sh"
name='' address='' address6='' data='' lower='' tmp='' sshd='' memory=''
# shellcheck disable=SC1091 # written by cluster.py
. ./settings
files=$PWD/files
before=$(cat before) after=$(cat after)
if [ -n "$memory" ]; then # then what is in the layers below is named from another folder
    mkdir own
    mount -t tmpfs -o "mode=755,size=$memory" node own
    cd own
    lower=$(printf %s "$lower" | sed 's,\.\./\.\./,../../../,g')
fi
own_root "$name" "$lower" "$tmp" "$common" "$files"
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C

echo "$outside"
read -r _
ip -batch - <<END
link set lo up
link set eth0 up
link set eth1 up
address add $address/16 dev eth0
address add $address6/64 dev eth0 nodad
address add $data/16 dev eth1
END
exec 3>&1 >&2 </dev/null
# Lines of the node's description; a shell of their own keeps "set -e" true in all of them.
sh -euc "$before" before
if [ "$sshd" = yes ]; then
    /usr/sbin/sshd -E /run/sshd.log
    until [ -s /run/sshd.pid ]; do sleep 0.01; done # written once it listens
fi
sh -euc "$after" after
echo up >&3
exec 3>&-
trap 'exit 0' TERM
while :; do
    sleep 1000 &
    wait # for the sake of those whose parent has gone
done
