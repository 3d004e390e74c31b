# shellcheck shell=sh
# The root of a host or node that the tests make. Read by its process 1, which is in mount, uts,
# ipc and pid namespaces of its own.

# own_root NAME LOWER TMP FILES...
#
# In the working folder, which is in memory: the machine's root with LOWER (an overlay's lowerdir)
# below and FILES, folders named from the root, put over it. TMP: mount options of /tmp. Relative
# paths in LOWER are from the working folder, for an overlay's options know no blanks or commas.
own_root() {
    own_name=$1
    own_tmp=$3
    mkdir -p upper work root
    mount -t overlay -o "lowerdir=$2,upperdir=upper,workdir=work" host root
    shift 3
    cd root || exit

    # Of the machine, its homes and running state are not to be seen.
    for own in dev home mnt run root srv; do
        [ ! -d "$own" ] || mount -t tmpfs -o mode=755,size=16m host "$own"
    done
    mount -t tmpfs -o "mode=1777,$own_tmp" host tmp
    mkdir -p run/sshd dev/pts dev/shm .machine
    for own in null zero full random urandom tty; do
        : >"dev/$own"
        mount --bind "/dev/$own" "dev/$own"
    done
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
    mount -t tmpfs -o mode=1777,size=16m host dev/shm
    for own in ptmx=pts/ptmx fd=/proc/self/fd stdin=fd/0 stdout=fd/1 stderr=fd/2; do
        ln -s "${own#*=}" "dev/${own%%=*}"
    done
    for own in "$@"; do cp -a "$own/." .; done
    for own in sudo ping; do # packages are unpacked without such rights
        [ ! -e "usr/bin/$own" ] || chmod 4755 "usr/bin/$own"
    done

    # The kernel is the machine's: nothing in here may change it.
    mount -t proc proc proc
    echo "$own_name" >proc/sys/kernel/hostname
    mount --bind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    [ ! -e proc/sysrq-trigger ] || mount --bind dev/null proc/sysrq-trigger
    mount -t sysfs -o ro sysfs sys

    pivot_root . .machine
    cd /
    umount -l /.machine
    rmdir /.machine
}
