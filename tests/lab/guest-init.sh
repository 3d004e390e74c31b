#!/bin/sh
# Process 1 of a guest of the laboratory: a Linux kernel of its own, which runs as a process of the
# machine's. So NFS, SELinux, kernel modules and the clock are real, and a guest's alone.
#
# Its root is at first the machine's with the layers over it, and cannot be written to. The word
# guest=NAME of the kernel's command line names the folder /mnt/NAME of the head, in which are:
#
#   settings  lines of sh: name, address, address6, data, selinux
#   files     what it has and the machine has not
#   before    lines of sh to be run before sshd starts
#
# Says on standard error that it is up.
set -eu
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C
mount -t proc proc /proc
name='' address='' address6='' data='' selinux=''
read -r words </proc/cmdline
for word in $words; do
    case $word in guest=*) name=${word#*=} ;; esac
done
modules=/usr/lib/uml/modules/$(uname -r)
insmod "$modules/kernel/fs/overlayfs/overlay.ko"
mount -t tmpfs -o mode=755 guest /mnt
mkdir /mnt/upper /mnt/work /mnt/root /mnt/own
mount -t hostfs -o "/mnt/$name" none /mnt/own
# shellcheck disable=SC1091 # written by guests.py
. /mnt/own/settings

# The policy comes first, so that the root can be labelled as a whole: the machine's files have no
# labels. Until all is built, the mode is permissive.
label=''
if [ "$selinux" != disabled ]; then
    mount -t sysfs sysfs /sys
    load_policy -i
    setenforce 0
    label=,context=system_u:object_r:bin_t:s0
fi
cd /mnt
mount -t overlay -o "lowerdir=/,upperdir=upper,workdir=work$label" guest root
cd root
mount -t proc proc proc
mount -t sysfs sysfs sys
[ "$selinux" = disabled ] || mount -t selinuxfs selinuxfs sys/fs/selinux
mount -t devtmpfs dev dev
mkdir -p dev/pts dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts dev/pts
for folder in home mnt root run srv; do
    [ ! -d "$folder" ] || mount -t tmpfs -o mode=755 guest "$folder"
done
for folder in tmp dev/shm; do mount -t tmpfs -o mode=1777,size=110m guest "$folder"; done
for link in fd=/proc/self/fd stdin=fd/0 stdout=fd/1 stderr=fd/2; do
    ln -s "${link#*=}" "dev/${link%%=*}"
done
mkdir -p run/sshd .machine .own usr/lib/modules
cp -a /mnt/own/files/. .
ln -s "$modules" usr/lib/modules/
mount -t hostfs -o "/mnt/$name" none .own
pivot_root . .machine
cd /
umount -l /.machine

# From here on it is a node like any other.
echo "$name" >/proc/sys/kernel/hostname
modprobe ipv6
ip link set vec0 name eth0
ip link set vec1 name eth1
ip -batch - <<END
link set lo up
link set eth0 up
link set eth1 mtu 9000 up
address add $address/16 dev eth0
address add $address6/64 dev eth0 nodad
address add $data/16 dev eth1
END
if [ "$selinux" != disabled ]; then
    # All processes are kernel_t, which the policy leaves alone. Logins get it as well.
    echo 'system_r:kernel_t:s0 system_r:kernel_t:s0' >>/etc/selinux/default/contexts/default_contexts
    echo '__default__:system_u:s0-s0' >/etc/selinux/default/seusers
fi
sh -eu /.own/before
/usr/sbin/sshd -E /run/sshd.log
until [ -s /run/sshd.pid ]; do sleep 0.05; done # written once it listens
if [ "$selinux" = enforcing ]; then setenforce 1; fi
echo "$name is up" >&2 # to the log outside
while :; do
    sleep 1000 &
    wait
done
