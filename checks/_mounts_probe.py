"""The probe of the check mounts."""

from ._plain_path import PLAINLY
from ._waiting import WAITING

# Kinds that no site mounts by hand, and what containers make below their own folders: many lines
# that say nothing. A mount that /etc/fstab or the option `want` names is told whatever its kind.
PROBE = (
    PLAINLY
    + WAITING
    + r"""
if [ ! -r "$ROOT/proc/self/mountinfo" ]; then
    fact mountinfo unreadable
    return
fi
fact mountinfo 'read'
system='' container=''
[ -d "$ROOT/run/systemd/system" ] && system=yes
for file in /run/systemd/container /.dockerenv /run/.containerenv; do
    [ -e "$ROOT$file" ] && container=yes
done
fact systemd "$system"
fact container "$container"
table=/dev/null state=absent
if [ -r "$ROOT/etc/fstab" ]; then
    table=$ROOT/etc/fstab state='read'
elif [ -e "$ROOT/etc/fstab" ]; then
    state=unreadable
fi
fact fstab "$state"

set -f
IFS=$cc_nl
# shellcheck disable=SC2086 # the lines are wanted
set -- $want
unset IFS
wanted='' waiting=''
for path; do
    while :; do
        case $path in
        ?*/) path=${path%/} ;;
        *) break ;;
        esac
    done
    case $path in
    *[\ \\]*) path=$(printf '%s' "$path" | sed 's/\\/\\134/g; s/ /\\040/g') ;;
    esac
    wanted=$wanted$path$cc_nl
done
# A wanted place below an automounter is mounted by looking at it.
if [ $# -gt 0 ] && grep -q ' - autofs ' "$ROOT/proc/self/mountinfo"; then
    for path; do
        within 4 ls -d "$ROOT$path/." 2>/dev/null &
        waiting="$waiting want=$!"
    done
    settle 50
fi

# Lines "entry …" of fstab, "mount …" of mountinfo, "absent PLACE SOURCE" of what should be there,
# and the places that are "local" block devices, "shared" (but NFS), or "ro" and not so by fstab.
found=$(wanted=$wanted awk '
    BEGIN {
        n = split(ENVIRON["wanted"], names, "\n")
        for (i = 1; i <= n; i++) {
            if (names[i] == "") continue
            named[names[i]] = 1
            order[++wants] = names[i]
        }
        kernel = "^(nsfs|cgroup|securityfs|debugfs|tracefs|pstore|bpf|configfs|fusectl|mqueue|" \
            "efivarfs|devpts|binfmt_misc|rpc_pipefs|selinuxfs)$"
        contained = "^/((var/lib/(docker|containers|containerd|kubelet|lxd|lxc|snapd))|run|snap|" \
            "var/snap)/"
        disk = "^(ext[234]|xfs|btrfs|f2fs|jfs|reiserfs|bcachefs|ocfs2|gfs2|vfat|exfat)$"
        cluster = "^(lustre|beegfs|gpfs|ceph|cifs|smb|fuse|9p|afs|glusterfs|panfs|wekafs|virtiofs)"
        desktop = "^fuse(ctl|[.](gvfsd-fuse|portal|lxcfs|snapfuse|rofiles-fuse))$"
    }
    table == 1 {
        if ($1 ~ /^#/ || NF < 3) next
        target = $2
        while (target ~ /.\/$/) target = substr(target, 1, length(target) - 1)
        named[target] = 1
        source[target] = $1
        meant[target] = ("," $4 ",") ~ /,ro,/
        if (++entries <= 300) print "entry " $1, target, $3, $4
        if (target !~ /^\// || $3 ~ /^(nfs4?|swap|ignore)$/) next
        if (("," $4 ",") ~ /,(noauto|x-systemd.automount|comment=systemd.automount),/) next
        order[++wants] = target
        next
    }
    {
        split(substr($0, index($0, " - ") + 3), more, " ")
        what = more[1]; target = $5
        kind[target] = what
        if (target != "/" && !(target in named)) {
            if (what ~ kernel) next
            if (what ~ /^(overlay|tmpfs|proc|sysfs|squashfs|ramfs|fuse)/ && target ~ contained) next
        }
        if (++lines > 600) { over++; next }
        print "mount " $0
        device[target] = $3; own[target] = $6; whole[target] = more[3]
        if (!(target in place)) { place[target] = ++places; at[places] = target }
    }
    END {
        if (over) print "over " over
        for (i = 1; i <= wants; i++) {
            target = order[i]
            if (target in kind && kind[target] != "autofs" || target in told) continue
            told[target] = 1
            if (absences++ < 20) print "absent " target " " source[target]
        }
        for (i = 1; i <= places; i++) {
            target = at[i]; what = kind[target]
            if (seen[device[target]]++) continue
            if (what ~ disk) {
                if (locals++ < 60) print "local " target
                flags = "," own[target] "," whole[target] ","
                if (flags ~ /,(emergency_ro|shutdown),/ || flags ~ /,ro,/ && !meant[target])
                    print "ro " target
            } else if (what ~ cluster && what !~ desktop && touched++ < 40) print "shared " target
        }
    }' table=1 "$table" table=2 "$ROOT/proc/self/mountinfo")

# What the path $2 gives: the number of the file system's blocks alone shows that it answers.
look() {
    text=$(within 4 stat -f -c %b "$ROOT$2" 2>&1) && text=$(within 4 stat -L -c %d "$ROOT$2/." 2>&1)
    status=$?
    case $status in
    0) text=answers ;;
    124 | 137) text=hung ;;
    *) text=${text##*"$cc_nl"} text=${text##*: } ;;
    esac
    fact "state@$1" "${text:-no reason given}"
}

# Why the path $2 may not be mounted from $3
explain() {
    device=
    case $3 in
    UUID=*) device=/dev/disk/by-uuid/${3#*=} ;;
    LABEL=*) device=/dev/disk/by-label/${3#*=} ;;
    PARTUUID=*) device=/dev/disk/by-partuuid/${3#*=} ;;
    PARTLABEL=*) device=/dev/disk/by-partlabel/${3#*=} ;;
    /dev/*) device=$3 ;;
    esac
    device=$(printf '%s' "$device" | sed 's/"//g')
    if [ -n "$device" ] && [ -d "$ROOT${device%/*}" ]; then
        [ -e "$ROOT$device" ] && text=there || text=absent
        fact "device@$1" "$text"
    fi
    [ -n "$system" ] && have systemd-escape && have journalctl || return
    unit=$(within 2 systemd-escape -p --suffix=mount "$2" 2>/dev/null)
    set -- "$1" journalctl -b -q --no-pager -o cat -n 40 -u "$unit"
    number=$1
    shift
    text=$(by_root 4 "$@" 2>/dev/null)
    [ -n "$text" ] || text=$(within 4 "$@" 2>/dev/null)
    said=$(printf '%s\n' "$text" | grep '^mount' | tail -n 1)
    [ -n "$said" ] || said=$(printf '%s\n' "$text" |
        grep -E 'Dependency failed|Failed to mount|nmounted ' | tail -n 1)
    fact "log@$number" "$said"
}

entries='' mounts='' locals='' number=0 touched=0 over=0 broken='' waiting=''
IFS=$cc_nl
# shellcheck disable=SC2086 # the lines are wanted
set -- $found
unset IFS
for line; do
    rest=${line#* }
    case $line in
    entry*) entries=$entries$rest$cc_nl ;;
    mount*) mounts=$mounts$rest$cc_nl ;;
    over*) over=$rest ;;
    ro*) broken=yes ;;
    local*)
        plainly "$rest"
        locals=$locals$ROOT$path/.$cc_nl
        ;;
    absent*)
        number=$((number + 1))
        target=${rest%% *}
        plainly "$target"
        fact "absent@$number" "$path"
        real=$(within 3 readlink -f "$ROOT$path" 2>/dev/null)
        real=${real#"$ROOT"}
        if [ -n "$real" ] && [ "$real" != "$path" ]; then fact "real@$number" "$real"; fi
        explain "$number" "$path" "${rest#* }" &
        waiting="$waiting absent-$number=$!"
        ;;
    shared*)
        touched=$((touched + 1))
        plainly "$rest"
        fact "touched@$touched" "$path"
        look "$touched" "$path" &
        waiting="$waiting $touched=$!"
        ;;
    esac
done
fact entries "${entries%"$cc_nl"}"
fact mounts "${mounts%"$cc_nl"}"
fact over "$over"
fact absent "$number"
fact touched "$touched"

# A local file system that was shut down after an error still looks mounted, and gives errors.
if [ -n "$locals" ]; then
    IFS=$cc_nl
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $locals
    unset IFS
    (
        text=$(within 4 stat -L -c %d "$@" 2>&1)
        case $? in
        124 | 137) fact locals hung ;;
        *)
            errors=$(printf '%s\n' "$text" | grep -E ': (Input/output|I/O) error$| cleaning$')
            [ -z "$ROOT" ] || errors=$(printf '%s' "$errors" | sed "s,$ROOT/,/,")
            fact locals "${errors:-read}"
            ;;
        esac
    ) &
    waiting="$waiting locals=$!"
fi
if [ -n "$broken" ]; then
    log=$(within 3 dmesg 2>/dev/null)
    [ -n "$log" ] || log=$(by_root 3 dmesg 2>/dev/null)
    fact kernel_log "$(printf '%s\n' "$log" |
        grep -iE 'remount|forced readonly|i/o error|fs error|shut' | tail -n 40)"
fi
settle 65
for entry in $waiting; do
    fact "hung@${entry%=*}" yes
done
"""
)
