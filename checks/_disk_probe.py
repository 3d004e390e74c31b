"""The probe of the check disk."""

from ._kernel_log import KERNEL_LOG, PICK_HEAD, PICK_TAIL
from ._plain_path import PLAINLY
from ._waiting import WAITING

PROBE = (
    PLAINLY
    + WAITING
    + r"""
# pick: the last lines of the kernel's log on errors of disks
pick() {
    awk -v mark="$cc_mark" '
        BEGIN {
            troubled = "I/O error|medium error|hardware error.*dev |rejecting I/O to|" \
                "nvme[0-9]+: .*(timeout|controller is down|[Rr]emoving after|Device not ready)"
        }
"""
    + PICK_HEAD
    + r"""
        $0 ~ troubled { line[n++ % 200] = $0 }
        END {
            for (i = n > 200 ? n - 200 : 0; i < n; i++) print line[i % 200]
"""
    + PICK_TAIL
    + r"""
        }'
}
"""
    + KERNEL_LOG
    + r"""
uptime=
read -r uptime _ 2>/dev/null <"$ROOT/proc/uptime"
fact uptime "$uptime"

# The file systems to look at: "KIND SOURCE PLACE", with the kernel's escapes. Those that the site
# names are asked one by one; else the local ones together, but for what holds /tmp.
set -f
number=0 waiting=''
if [ -n "$paths" ]; then
    fact file_systems named
elif [ -r "$ROOT/proc/self/mountinfo" ]; then
    fact file_systems 'local'
    tmp=/tmp
    if [ -L "$ROOT/tmp" ]; then
        tmp=$(within 3 readlink -f "$ROOT/tmp" 2>/dev/null)
        tmp=${tmp#"$ROOT"}
    fi
    found=$(tmp=$tmp awk '
        BEGIN {
            tmp = ENVIRON["tmp"] "/"
            disk = "^(ext[234]|xfs|btrfs|f2fs|jfs|reiserfs|bcachefs|zfs)$"
            shared = "^(nfs|lustre|beegfs|gpfs|ceph|cifs|smb|fuse|9p|afs|glusterfs|panfs|wekafs|" \
                "virtiofs)"
            inside = "^/(var/lib/(docker|containers|containerd|kubelet|lxd|lxc|snapd)/.*/|snap/)"
        }
        {
            split(substr($0, index($0, " - ") + 3), more, " ")
            if (!($5 in kind)) order[++n] = $5
            kind[$5] = more[1]; source[$5] = more[2]; device[$5] = $3
            ro[$5] = ("," $6 "," more[3] ",") ~ /,ro,/
            target = $5
            sub(/\/$/, "", target)
            if (index(tmp, target "/") == 1 && length(target) >= longest) {
                longest = length(target); held = $3
            }
        }
        END {
            seen[held] = 1
            print "held " held
            for (i = 1; i <= n; i++) {
                at = order[i]; what = kind[at]; id = device[at]
                if (what == "zfs") { id = source[at]; sub(/\/.*/, "", id) }
                if (ro[at] || at ~ inside || at ~ /^(\/boot)?\/efi$/ || at == "/tmp") continue
                if (at == "/") { if (what ~ shared) continue }
                else if (what == "tmpfs") { if (at != "/run" && at != "/dev/shm") continue }
                else if (what !~ disk) continue
                if (seen[id]++) continue
                if (++count <= 60) print "at " what, source[at], at
            }
        }' "$ROOT/proc/self/mountinfo")
else
    fact file_systems unreadable
    found=''
fi

# What df says of the directories $2…, by the number $1.
sizes() {
    at=$1
    shift
    text=$(within 4 df -P -k "$@" 2>&1)
    case $? in
    124 | 137)
        fact "space@$at" hung
        return
        ;;
    esac
    fact "space@$at" "$text"
    fact "inodes@$at" "$(within 4 df -P -i "$@" 2>&1)"
}

IFS=$cc_nl
if [ -n "$paths" ]; then
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $paths
    unset IFS
    for path; do
        number=$((number + 1))
        fact "asked@$number" "- - $(printf '%s' "$path" | sed 's/\\/\\134/g; s/ /\\040/g')"
        sizes "$number" "$ROOT$path" &
        waiting="$waiting space@$number=$!"
    done
else
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $found
    unset IFS
    asked='' places='' held=''
    for line; do
        case $line in
        held*) held=${line#* } ;;
        *)
            asked=$asked${line#* }$cc_nl
            plainly "${line##* }"
            places=$places$ROOT$path$cc_nl
            ;;
        esac
    done
    fact held "$held"
    if [ -n "$asked" ]; then
        number=1
        fact asked@1 "${asked%"$cc_nl"}"
        IFS=$cc_nl
        # shellcheck disable=SC2086 # the lines are wanted
        set -- $places
        unset IFS
        sizes 1 "$@" &
        waiting=" space@1=$!"
    fi
fi
fact groups "$number"

if [ -n "$quota" ]; then
    if have quota; then
        {
            text=$(within 6 quota -w -p 2>&1)
            fact quota_status "$?"
            fact quota "$text"
        } &
        waiting="$waiting quota=$!"
    else
        fact quota_status missing
    fi
fi

# RAID by the kernel
text='' arrays=''
if [ -r "$ROOT/proc/mdstat" ]; then
    while read -r line; do
        case $line in md*) arrays=yes ;; esac
        text=$text$line$cc_nl
    done <"$ROOT/proc/mdstat"
fi
[ -n "$arrays" ] || text=
fact mdstat "$text"

# Disks, and what their drivers say of them
set +f
states='' disks=''
for folder in "$ROOT"/sys/block/sd* "$ROOT"/sys/block/nvme*n*; do
    disk=${folder##*/}
    case $disk in nvme*c*n*) continue ;; esac
    [ -e "$folder/device" ] || continue
    size='' removable='' state=''
    read -r size 2>/dev/null <"$folder/size"
    read -r removable 2>/dev/null <"$folder/removable"
    [ "$removable" = 1 ] && continue
    read -r state 2>/dev/null <"$folder/device/state"
    states="$states$disk ${state:-?}$cc_nl"
    [ "$size" = 0 ] || disks="$disks $disk"
done
fact states "${states%"$cc_nl"}"

ask_disk() {
    text=$(by_root 8 smartctl -n standby --json=c -i -H -A "$ROOT/dev/$1" 2>/dev/null)
    status=$?
    case $text in
    '{'*) ;;
    *)
        if [ "$status" != 124 ] && [ "$status" != 137 ]; then
            text=$(by_root 8 smartctl -n standby -i -H -A "$ROOT/dev/$1" 2>/dev/null)
            status=$?
        fi
        ;;
    esac
    fact "status@$1" "$status"
    fact "smart@$1" "$text"
}
state=none
if [ "$smart" = no ]; then
    state='not wanted'
elif [ -n "$disks" ]; then
    if ! have smartctl; then
        state=missing
    elif as_root true; then
        state=asked
    else
        state='needs root'
    fi
fi
fact smart "$state"
fact disks "${disks# }"
if [ "$state" = asked ]; then
    wave=0
    for disk in $disks; do
        wave=$((wave + 1))
        [ "$wave" -gt 96 ] && break
        ask_disk "$disk" &
        waiting="$waiting smart@$disk=$!"
        [ $((wave % 16)) = 0 ] && settle 90
    done
fi

# What the kernel says of disks that gave errors
if [ "$log_hours" -gt 0 ]; then
    read_log
    fact log_from "$log_from"
    fact log "$log"
fi
settle 90
for entry in $waiting; do
    fact "hung@${entry%=*}" yes
done
"""
)
