#!/bin/sh
# Process 1 of the tests' host, in mount, uts, ipc and pid namespaces of its own (tests/host.py).
#
#   host-init.sh FOLDER LAYER...
#
# The host's root is the machine's, with the layers and then FOLDER/files put over it; what is
# written goes to memory. Says on standard output what its process id is outside. Ends when
# standard input does, and the kernel then ends and unmounts everything in here.
set -eu
folder=$1
shift
read -r outside rest </proc/self/stat # still the /proc of the outside
: "$rest"
# shellcheck source=tests/own-root.sh
. "${0%/*}/own-root.sh"

mount -t tmpfs -o mode=755,size=512m host "$folder/memory"
cd "$folder/memory"
mkdir upper
for layer in "$@"; do cp -a "$layer/." upper/; done
own_root node / size=64m "$folder/files"

exec 3<&0 </dev/null
/usr/sbin/sshd -D -e &
echo "$outside"
exec >/dev/null
trap 'exit 0' TERM
{
    cat <&3
    kill -TERM 1
} &
while :; do wait; done # for the sake of those whose parent has gone
