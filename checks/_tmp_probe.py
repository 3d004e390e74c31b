"""The probe of the check tmp."""

PROBE = r"""
# Slurm's directory: the last TmpFS= of slurm.conf and of what it includes
tmp_fs() {
    sed -n -e 's/#.*//' -e 's/[[:blank:]]\{1,\}/ /g' -e 's/ *= */=/g' -e 's/^ *//' \
        -e 's/^[Ii][Nn][Cc][Ll][Uu][Dd][Ee] \([^ ]*\).*/include \1/p' \
        -e 's/^\(.* \)\{0,1\}[Tt][Mm][Pp][Ff][Ss]="\{0,1\}\([^" ]*\).*/tmpfs \2/p' \
        "$1" |
        while read -r what value; do
            case $what$2 in
            tmpfs*) printf '%s\n' "$value" ;;
            include | includex)
                case $value in
                /*) value=$ROOT$value ;;
                *) value=${1%/*}/$value ;;
                esac
                [ -r "$value" ] && tmp_fs "$value" "x$2"
                ;;
            esac
        done
}
slurm=none
of_slurm=
for file in "${SLURM_CONF:-/etc/slurm/slurm.conf}" /etc/slurm/slurm.conf \
    /run/slurm/conf/slurm.conf /var/spool/slurmd/conf-cache/slurm.conf \
    /var/spool/slurm/d/conf-cache/slurm.conf /etc/slurm-llnl/slurm.conf \
    /usr/local/etc/slurm.conf /opt/slurm/etc/slurm.conf; do
    [ -e "$ROOT$file" ] || continue
    slurm=unreadable
    [ -r "$ROOT$file" ] || continue
    slurm=$file
    of_slurm=$(tmp_fs "$ROOT$file" '' | tail -n 1)
    break
done
if [ "$slurm" = none ] && [ -d "$ROOT/var/spool/slurmd" ] && have scontrol; then
    slurm=scontrol
    of_slurm=$(within 4 scontrol show config 2>/dev/null |
        sed -n 's/^TmpFS[[:blank:]]*=[[:blank:]]*//p')
    [ -n "$of_slurm" ] || slurm=unreadable
fi
fact slurm "$slurm"

memory=
if [ -r "$ROOT/proc/meminfo" ]; then
    while read -r key value _; do
        [ "$key" = MemTotal: ] && memory=$value && break
    done <"$ROOT/proc/meminfo"
fi
fact memory "$memory"

# CMD for so many seconds at most, as root where that can be had: it sees all users' files
widely() {
    as_root timeout -k 1 "$@" 2>/dev/null
    set -- "$?" "$@"
    case $1 in
    126 | 127) shift && within "$@" 2>/dev/null ;;
    *) return "$1" ;;
    esac
}

# df -P of $at with the option $1; where df does not know it, the same from stat(1)
sizes() {
    within 3 df -P "$1" "$at" 2>/dev/null && return
    set -- "$?" "$1"
    [ "$1" -ge 124 ] && return "$1"
    # shellcheck disable=SC2046 # the words are wanted
    set -- "$2" $(within 3 stat -f -c '%S %b %f %a %c %d' "$at" 2>/dev/null)
    [ "$#" = 7 ] || return 1
    if [ "$1" = -k ]; then
        set -- $(($3 * $2 / 1024)) $((($3 - $4) * $2 / 1024)) $(($5 * $2 / 1024))
    elif [ "$6" = 0 ]; then
        set -- 0 0 0
    else
        set -- "$6" $(($6 - $7)) "$7"
    fi
    used=-
    [ "$(($2 + $3))" -gt 0 ] && used=$(($2 * 100 / ($2 + $3)))%
    printf '\nstat %s %s %s %s %s\n' "$1" "$2" "$3" "$used" "$path"
}

# The mountinfo line of the mount that holds the path $1, which has no links.
mount_of() {
    best='' length=0
    case $1 in
    *[\ \\]*) holds=$(printf '%s' "$1" | sed 's/\\/\\134/g; s/ /\\040/g') ;;
    *) holds=$1 ;;
    esac
    [ -r "$ROOT/proc/self/mountinfo" ] || return
    while read -r line; do
        # shellcheck disable=SC2086 # the words are wanted
        set -- $line
        target=${5%/}
        case $holds/ in
        "$target"/*) [ "${#target}" -ge "$length" ] && best=$line length=${#target} ;;
        esac
    done <"$ROOT/proc/self/mountinfo"
}

# Reads "NUMBER PATH" and "status N", keeps the five greatest but $1: lines of
# "NUMBER OWNER MONTH DAY TIME PATH", and "cut" where the time was too short.
greatest() {
    awk -v but="$1" '
        /^status [0-9]+$/ { if ($2 >= 124) print "cut"; next }
        !/^[0-9]+[ \t]/ { next }
        {
            size = $1 + 0; name = $0; sub(/^[0-9]+[ \t]+/, "", name)
            if (name == but) next
            if (n < 5) at = ++n
            else {
                at = 1
                for (i = 2; i <= 5; i++) if (sizes[i] < sizes[at]) at = i
                if (size <= sizes[at]) next
            }
            sizes[at] = size; names[at] = name
        }
        END { for (i = 1; i <= n; i++) print sizes[i], names[i] }' | sort -rn |
        while read -r number name; do
            if [ "$number" = cut ]; then
                echo cut
                continue
            fi
            # shellcheck disable=SC2046 # the words are wanted
            set -- $(within 2 ls -ld "$name" 2>/dev/null)
            printf '%s %s %s %s %s %s\n' "$number" "${3:-?}" "${6:-?}" "${7:-?}" "${8:-?}" \
                "${name#"$ROOT"}"
        done
}

# Every entry is counted for the directory that it is in.
per_directory() {
    awk -v top="$at" '
        /^status [0-9]+$/ { print; next }
        $0 != top && sub(/\/[^\/]*$/, "") { n[$0]++ }
        END { for (name in n) print n[name], name }'
}

# Deleted files on the file systems $devices (DEVICE/NUMBER) that a process holds open:
# "KIB NUMBER PID USER COMMAND PATH", the twenty greatest.
deleted_files() {
    # of one folder alone ls prints no name: /dev/null is the second
    found=$(widely 5 ls -l "$ROOT"/proc/[0-9]*/fd /dev/null | awk '
        /\/fd:$/ { dir = substr($0, 1, length($0) - 1) }
        / -> \/.* \(deleted\)$/ {
            i = index($0, " -> "); n = split(substr($0, 1, i - 1), word, " ")
            target = substr($0, i + 4)
            if (target !~ /^\/(memfd:|SYSV|dev\/)/) print dir "/" word[n], target
        }' | head -n 200)
    [ -n "$found" ] || return
    # shellcheck disable=SC2046 # the words are wanted
    {
        printf '%s\n' "$found"
        echo
        widely 5 stat -L -c '%d %i %b %n' $(printf '%s\n' "$found" | sed 's/ .*//')
    } | awk -v devices="$devices" '
        BEGIN {
            n = split(devices, pair, " ")
            for (i = 1; i <= n; i++) { split(pair[i], p, "/"); number[p[1]] = p[2] }
        }
        /^$/ { second = 1; next }
        !second { i = index($0, " "); target[substr($0, 1, i - 1)] = substr($0, i + 1); next }
        $3 > 0 && ($1 in number) && !(($1, $2) in seen) {
            seen[$1, $2] = 1
            n = split($4, part, "/")
            print int($3 / 2), number[$1], part[n - 2], target[$4]
        }' | sort -rn | head -n 20 | while read -r kib number pid name; do
        command=
        read -r command 2>/dev/null <"$ROOT/proc/$pid/comm"
        # shellcheck disable=SC2046 # the words are wanted
        set -- $(within 2 ls -ld "$ROOT/proc/$pid" 2>/dev/null)
        printf '%s %s %s %s %s %s\n' "$kib" "$number" "$pid" "${3:-?}" \
            "$(printf '%s' "${command:-?}" | tr ' ' _)" "${name% (deleted)}"
    done
}

# The last two words before "% /" in what df says: free, and used in percent.
fills() {
    case $1 in
    *'% /'*) ;;
    *) return 1 ;;
    esac
    # shellcheck disable=SC2086 # the words are wanted
    set -- "$2" "$3" ${1%%'% /'*}
    percent=$1 least=$2
    while [ "$#" -gt 2 ]; do shift; done
    [ "$2" -ge "$percent" ] 2>/dev/null || [ "$1" -lt "$least" ] 2>/dev/null
}

look() {
    path=${1:-/}
    at=$ROOT$path
    count=$((count + 1))
    fact "path@$count" "$path"
    fact "from@$count" "$2"
    listing=$(within 3 ls -ldLn "$at/." 2>&1)
    status=$?
    if [ "$status" -ge 124 ]; then
        fact "state@$count" hung
        return
    elif [ "$status" != 0 ]; then
        fact "state@$count" "${listing##*: }"
        return
    fi
    # shellcheck disable=SC2086 # the words are wanted
    set -- $listing
    fact "mode@$count" "$1"
    fact "owner@$count" "$3"
    [ -w "$at" ] && writable=yes || writable=no
    fact "writable@$count" "$writable"
    real=$(within 3 readlink -f "$at" 2>/dev/null)
    real=${real:-$at}
    real=${real#"$ROOT"}
    fact "real@$count" "$real"
    mount_of "$real"
    fact "mount@$count" "$best"
    space=$(sizes -k)
    status=$?
    if [ "$status" -lt 124 ]; then
        inodes=$(sizes -i)
        status=$?
    fi
    if [ "$status" -ge 124 ]; then
        fact "state@$count" hung
        return
    fi
    fact "state@$count" directory
    fact "space@$count" "$space"
    fact "inodes@$count" "$inodes"
    # shellcheck disable=SC2086 # the words are wanted
    set -- $best
    case " $devices_seen " in
    *" ${3:-$count} "*) return ;; # one file system is searched once
    esac
    devices_seen="$devices_seen ${3:-$count}"
    case ${best#* - } in
    # what all nodes share is not searched by all of them
    nfs* | lustre* | beegfs* | gpfs* | ceph* | cifs* | smb* | fuse* | 9p* | afs* | glusterfs* | \
        panfs* | wekafs* | virtiofs*) return ;;
    esac
    if fills "$space" "$warn_percent" "$((fail_free_mb * 1024))"; then
        devices="$devices $(within 3 stat -L -c %d "$at" 2>/dev/null)/$count"
        {
            widely "$search_seconds" du -xak -d 1 "$at"
            echo "status $?"
        } | greatest "$at" | lines "largest@$count"
    fi
    if fills "$inodes" "$inodes_warn_percent" 0; then
        {
            widely "$search_seconds" find "$at" -xdev
            echo "status $?"
        } | per_directory | greatest '' | lines "crowded@$count"
    fi
}

set -f
count=0 devices='' devices_seen=''
look /tmp default
IFS=$cc_nl
# shellcheck disable=SC2086 # the lines are wanted
set -- $paths
unset IFS
for path; do
    [ "${path%/}" = /tmp ] || look "${path%/}" option
done
case $cc_nl/tmp$cc_nl$paths$cc_nl in
*"$cc_nl${of_slurm%/}$cc_nl"* | *"$cc_nl$of_slurm$cc_nl"*) ;;
*) [ -n "$of_slurm" ] && look "${of_slurm%/}" Slurm ;;
esac
set +f
fact directories "$count"
[ -n "$devices" ] && deleted_files | lines deleted
"""
