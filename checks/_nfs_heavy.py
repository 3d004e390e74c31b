"""The probe of the check nfs that times writing: it loads the server, so it has its turn alone.

The file is unlinked as soon as it is open, so that the kernel removes it however its writer ends.
Until then NFS keeps it as .nfsXXXX; that is in a directory of ours, which the next run removes
should all of this node end at once.
"""

from ._nfs_common import COMMON

HEAVY = (
    COMMON
    + r"""
# Work that runs here would disturb the measurement, and the measurement it.
busy=
set +f
for entry in "$ROOT"/proc/[0-9]*; do
    comm=
    read -r comm 2>/dev/null <"$entry/comm"
    [ "$comm" = slurmstepd ] && busy="a job runs (slurmstepd, process ${entry##*/})" && break
done
set -f
load=
read -r load _ 2>/dev/null <"$ROOT/proc/loadavg"
cpus=$(grep -c '^processor' "$ROOT/proc/cpuinfo" 2>/dev/null)
[ "${cpus:-0}" -gt 0 ] || cpus=$(within 2 getconf _NPROCESSORS_ONLN 2>/dev/null)
limit=
[ -z "$busy" ] && [ -n "$load" ] && limit=$(awk -v load="$load" -v cpus="${cpus:-1}" \
    -v percent="$busy_percent" 'BEGIN {
        most = cpus * percent / 100
        if (most < 1) most = 1 # so much is what asking makes of itself
        if (load > most) print most
    }')
[ -n "$limit" ] && busy="the load is $load, should be $limit or less (CPUs: ${cpus:-1})"
fact heavy.busy "$busy"
[ -z "$busy" ] || return

# The same place as the first probe found: the first where something can be made
IFS=$cc_nl
# shellcheck disable=SC2046 # the lines are wanted
set -- $(nfs_mounts)
unset IFS
name=$ours-$$-timed
made='' why='' place=''
trap '[ -z "$made" ] || within 4 rm -rf "$made"' EXIT
trap 'exit 143' HUP TERM
for line; do
    take "$line"
    case ,$options, in *,ro,*) continue ;; esac
    make mkdir
    [ "$why" = hung ] && break
    if [ "$why" = 'done' ]; then
        case $throughput_dir in '' | "$place") break ;; esac
        within 4 rm -rf "$made"
        made=
        why='throughput_dir is not on NFS'
    fi
done
fact heavy.place "$place"

# Something took too long: does the mount answer still, and its server?
gone=
ask_again() {
    answers_still 10 && return
    gone=1
    gate_of
    why='not tried'
    [ -n "$gate" ] && reach "${gate%/*}" "${gate##*/}"
    fact heavy.gone "$why"
}
if [ "$why" = hung ]; then
    ask_again
fi
if [ "$why" != 'done' ]; then
    fact heavy.refused "${why:-no mount}"
    return
fi

# Writes $2 MiB within $1 s
written() {
    # shellcheck disable=SC2016,SC2086 # the inner sh expands it; $flags are words
    text=$(within "$1" sh -c '
        exec 8>"$1" && rm -f "$1" && shift && exec dd if=/dev/zero bs=1048576 "$@" >&8
        ' sh "$made/zeros" count="$2" $flags 2>&1)
    status=$?
    case $status in 124 | 137) ask_again ;; esac
    return "$status"
}

now() {
    at_time=$(date +%s.%N)
    case $at_time in
    *.*[!0-9]* | *.) read -r at_time _ 2>/dev/null <"$ROOT/proc/uptime" ;;
    esac
}

# A step of the small files: one command for all of them
timed() {
    step=$1
    shift
    now
    began=$at_time
    # shellcheck disable=SC2016 # the inner sh expands it
    within 10 sh -c 'cd "$1" && shift && exec "$@"' sh "$made" "$@" >/dev/null 2>&1
    status=$?
    now
    fact "heavy.small@$step" "$status $began $at_time"
    case $status in 124 | 137) ask_again ;; esac
    return "$status"
}

time_it() {
    text=$(within 4 stat -f -c '%S %a' "$ROOT$place" 2>/dev/null)
    said $?
    if [ "$why" = hung ]; then
        ask_again
        return
    fi
    # shellcheck disable=SC2086 # the words are wanted
    set -- $text
    free_mb=$((${1:-0} * ${2:-0} / 1048576))
    fact heavy.free_mb "$free_mb"
    if [ "$free_mb" -lt $((size_mb * 4)) ]; then
        return
    fi
    quota=
    have quota && quota=$(within 4 quota -w -p 2>/dev/null | awk -v source="${line#* - }" '
        BEGIN { split(source, word, " ") }
        $1 == word[2] && $4 > 0 { sub(/\*/, "", $2); print int(($4 - $2) / 1024) }' | head -n 1)
    fact heavy.quota_mb "$quota"
    if [ -n "$quota" ] && [ "$quota" -lt $((size_mb * 2)) ]; then
        return
    fi

    route=$(within 3 ip route get "$server" 2>/dev/null)
    device=${route##* dev }
    device=${device%% *}
    speed=
    [ -n "$route" ] && [ -n "$device" ] &&
        read -r speed 2>/dev/null <"$ROOT/sys/class/net/$device/speed"
    fact heavy.device "${route:+$device}"
    fact heavy.speed "$speed"

    # shellcheck disable=SC3045 # dash, bash and busybox all know -S
    ulimit -S -f unlimited
    direct=yes flags='oflag=direct conv=fsync'
    case $(within 2 dd --version 2>&1) in
    *oreutils*) ;;
    *) direct=no flags=conv=fsync ;; # another dd may take the word and not heed it
    esac
    written 20 8
    case $status$text in
    0* | 124* | 137* | *'No space'* | *uota*) ;;
    *)
        direct=no flags=conv=fsync
        written 20 8
        ;;
    esac
    fact heavy.direct "$direct"
    fact heavy.first_status "$status"
    fact heavy.first "$text"
    [ "$status" = 0 ] || return
    count=$(printf '%s\n' "$text" | awk -v size="$size_mb" -v most="$max_seconds" '
        / copied, / {
            sub(/.* copied, /, ""); seconds = $1 + 0.000001
            n = int(8 * most / seconds); print (n > size ? size : n)
        }')
    if [ "${count:-0}" -ge 16 ]; then
        written 25 "$count"
        fact heavy.dd_status "$status"
        fact heavy.dd "$text"
        case $status in 124 | 137) return ;; esac
    fi

    words='' n=0
    while [ "$n" -lt "$small_files" ]; do
        words="$words f$n"
        n=$((n + 1))
    done
    # shellcheck disable=SC2086 # the words are wanted
    timed create touch $words && timed stat ls -l && within 4 mkdir "$made/f" &&
        timed rename mv $words f && timed unlink sh -c 'cd f && rm -f f*'
}
time_it
seconds=10
[ -z "$gone" ] || seconds=1
within "$seconds" rm -rf "$made" || fact heavy.left "${made#"$ROOT"}"
made=
"""
)
