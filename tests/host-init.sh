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

mount -t tmpfs -o mode=755,size=512m host "$folder/memory"
cd "$folder/memory"
mkdir upper work root
for layer in "$@"; do cp -a "$layer/." upper/; done
# Paths relative to this folder, for an overlay's options know no blanks, commas or colons.
mount -t overlay -o lowerdir=/,upperdir=upper,workdir=work host root
cd root

# Of the machine, its homes and running state are not to be seen.
for place in dev home mnt run root srv; do
    [ ! -d "$place" ] || mount -t tmpfs -o mode=755,size=16m host "$place"
done
mount -t tmpfs -o mode=1777,size=64m host tmp
mkdir -p run/sshd dev/pts dev/shm .machine
for device in null zero full random urandom tty; do
    : >"dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
mount -t tmpfs -o mode=1777,size=16m host dev/shm
for link in ptmx=pts/ptmx fd=/proc/self/fd stdin=fd/0 stdout=fd/1 stderr=fd/2; do
    ln -s "${link#*=}" "dev/${link%%=*}"
done
cp -a "$folder/files/." .
[ ! -e usr/bin/sudo ] || chmod 4755 usr/bin/sudo

# The kernel is the machine's: nothing in here may change it.
mount -t proc proc proc
echo node >proc/sys/kernel/hostname
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
[ ! -e proc/sysrq-trigger ] || mount --bind dev/null proc/sysrq-trigger
mount -t sysfs -o ro sysfs sys

pivot_root . .machine
cd /
umount -l /.machine
rmdir /.machine

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
