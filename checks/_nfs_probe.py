"""The light probe of the check nfs."""

from ._nfs_common import COMMON
from ._nfs_look import LOOK

PROBE = (
    COMMON
    + r"""
uid=$(id -u)
fact uid "$uid"
if [ ! -r "$ROOT/proc/self/mountinfo" ]; then
    fact mountinfo unreadable
    return
fi
fact mountinfo 'read'

# A wanted place below an automounter is mounted by looking at it.
if grep -q ' - autofs ' "$ROOT/proc/self/mountinfo"; then
    IFS=$cc_nl
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $mounts
    unset IFS
    for path; do
        within 4 ls -d "$ROOT$path/." 2>/dev/null &
    done
    wait
fi

fact mounts "$(grep -E ' - (nfs4?|autofs) ' "$ROOT/proc/self/mountinfo" | head -n 500)"
# "PLACE KIND SOURCE": what is on top where NFS is mounted
mounted=$cc_nl$(awk '
    {
        split(substr($0, index($0, " - ") + 3), more, " ")
        kind[$5] = more[1]; source[$5] = more[2]
        if (more[1] ~ /^nfs4?$/) has[$5] = 1
    }
    END { for (at in has) print at, kind[at], source[at] }' "$ROOT/proc/self/mountinfo")$cc_nl

tell_reach() {
    reach "$1" "$2"
    fact "reach@$1/$2" "$why"
    case $why in open | 'no tool') ;; *) return 1 ;; esac
}

# A wanted mount that is not there: is its server known and reached, what did mount(8) say?
absent() {
    case $3 in
    \[*\]:*) address=${3#\[} address=${address%%\]*} ;;
    *) address=${3%%:*} ;;
    esac
    fact "server@$1" "$address"
    case $address in
    *:* | '') ;;
    *[!0-9.]*)
        if have getent; then
            text=$(within 4 getent hosts "$address" 2>/dev/null)
            status=$?
            address=${text%%[ 	]*}
            [ "$status" -ge 124 ] && address=hung
            fact "address@$1" "${address:-none}"
            [ "$address" = hung ] && address=''
        fi
        ;;
    esac
    [ -n "$address" ] && tell_reach "$address" 2049
    have systemd-escape && have journalctl || return
    unit=$(within 2 systemd-escape -p --suffix=mount "$2" 2>/dev/null)
    text=$(within 4 journalctl -b -q --no-pager -o cat -n 40 -u "$unit" 2>/dev/null |
        grep '^mount' | tail -n 1)
    fact "log@$1" "$text"
}

is_mounted() {
    case $mounted in
    *"$cc_nl$1 nfs "* | *"$cc_nl$1 nfs4 "* | *"$cc_nl$1 autofs "*) ;;
    *) return 1 ;;
    esac
}

# wanted TARGET SOURCE: TARGET has the kernel's escapes
wanted() {
    target=$1
    while :; do
        case $target in
        ?*/) target=${target%/} ;;
        *) break ;;
        esac
    done
    case $found in *"$cc_nl$target$cc_nl"*) return ;; esac
    if is_mounted "$target"; then
        case $mounted in
        *"$cc_nl$target nfs $2$cc_nl"* | *"$cc_nl$target nfs4 $2$cc_nl"*) return ;;
        esac
        [ -n "$2" ] || return
        whence "$target" "$2" &
        absences="$absences whence=$!"
        return
    fi
    path=$(plainly "$target")
    real=$(within 3 readlink -f "$ROOT$path" 2>/dev/null)
    is_mounted "${real#"$ROOT"}" && return
    found=$found$target$cc_nl
    count=$((count + 1))
    fact "absent@$count" "$path"
    case $mounted in
    *"$cc_nl$target "*)
        cover=${mounted#*"$cc_nl$target "}
        fact "covered@$count" "${cover%%"$cc_nl"*}"
        return
        ;;
    esac
    absent "$count" "$path" "$2" &
    absences="$absences absent-$count=$!"
}

# whence TARGET SOURCE: where another source is mounted there, what /etc/fstab names and the
# addresses of its server, for two names may be one server's ("?" where nobody can be asked)
whence() {
    case $2 in
    \[*\]:*) address=${2#\[} address=${address%%\]*} ;;
    *) address=${2%%:*} ;;
    esac
    case $address in
    *:*) ;;
    *[!0-9.]*)
        if have getent; then
            address=$(within 4 getent ahosts "$address" 2>/dev/null |
                sed 's/[ 	].*//' | sort -u | tr '\n' ' ')
        else
            address='?'
        fi
        ;;
    esac
    fact "whence@$1" "$2 $address"
}

count=0 found=$cc_nl entries='' absences=''
if [ -r "$ROOT/etc/fstab" ]; then
    while read -r source target kind flags _ || [ -n "$source" ]; do
        case $source in '#'*) continue ;; esac
        case $kind in nfs | nfs4) ;; *) continue ;; esac
        entries="$entries$source $target $kind $flags$cc_nl"
        case ,$flags, in
        *,noauto,* | *,x-systemd.automount,* | *,comment=systemd.automount,*) continue ;;
        esac
        [ -n "$require_fstab" ] && wanted "$target" "$source"
    done <"$ROOT/etc/fstab"
    fact fstab "${entries%"$cc_nl"}"
elif [ -e "$ROOT/etc/fstab" ]; then
    fact fstab unreadable
fi
IFS=$cc_nl
# shellcheck disable=SC2086 # the lines are wanted
set -- $mounts
unset IFS
for path; do
    wanted "$(printf '%s' "$path" | sed 's/\\/\\134/g; s/ /\\040/g')" ''
done

# Each server is asked before a mount of it is touched.
IFS=$cc_nl
# shellcheck disable=SC2046 # the lines are wanted
set -- $(nfs_mounts)
unset IFS
asked=' ' closed=' ' waiting=''
ask() {
    case $asked in *" $1/$2 "*) return ;; esac
    asked="$asked$1/$2 "
    tell_reach "$1" "$2" &
    waiting="$waiting $1/$2=$!"
}
for line; do
    take "$line"
    gate_of
    [ -n "$gate" ] || continue
    ask "$server" "${gate##*/}"
    case ,$options, in
    *,nolock,* | *,local_lock=all,*) ;;
    *,vers=3,*)
        ask "$server" 111
        part mountproto "$options"
        mount_proto=$value
        part mountport "$options"
        [ "${value:-0}" != 0 ] && [ "$mount_proto" != udp ] && ask "$server" "$value"
        ;;
    esac
done
for entry in $waiting; do
    wait "${entry##*=}" || closed="$closed${entry%=*} "
done

by_root() {
    if have timeout; then as_root timeout -k 1 "$seconds" "$@"; else as_root "$@"; fi
}
seconds=4
root=
[ -n "$write" ] && [ $# -gt 0 ] && as_root true && root=1
"""
    + LOOK
    + r"""
number=0 looks=''
for line; do
    number=$((number + 1))
    fact "mount@$number" "$line"
    take "$line"
    gate_of
    case $closed in
    *" ${gate:-none} "*)
        fact "state@$number" 'not touched'
        continue
        ;;
    esac
    look "$number" "$line" &
    looks="$looks $number=$!"
done
fact touched "$number"

# Beside that, what is known without a server
uptime=
read -r uptime _ 2>/dev/null <"$ROOT/proc/uptime"
fact uptime "$uptime"
if [ $# -gt 0 ] || [ "$count" -gt 0 ]; then
    log=$(within 3 dmesg 2>/dev/null)
    [ -n "$log" ] || log=$(by_root dmesg 2>/dev/null)
    fact kernel_log "$(printf '%s\n' "$log" | grep -iE 'nfs|lockd' | tail -n 60)"
fi
traffic=$(awk '
    /^device / {
        on = / with fstype nfs4? /
        place = $0; sub(/^.* mounted on /, "", place); sub(/ with fstype .*/, "", place)
        if (on) order[++n] = place
    }
    on && /^[ \t]+[A-Z_]+: [0-9]+ [0-9]+ / { sent[place] += $3; asked[place] += $2 }
    END {
        for (i = 1; i <= n && i <= 100; i++)
            if (asked[order[i]]) printf "%d %d %s\n", asked[order[i]], sent[order[i]], order[i]
    }' "$ROOT/proc/self/mountstats" 2>/dev/null)
fact traffic "$traffic"
exports=
have exportfs && exports=$(within 3 exportfs -v 2>/dev/null)
[ -z "$exports" ] && [ -r "$ROOT/var/lib/nfs/etab" ] && exports=$(cat "$ROOT/var/lib/nfs/etab")
fact exports "$(printf '%s\n' "$exports" | head -n 200)"

# A process that waits in the kernel cannot be ended: it is left behind after this time.
turns=0 waiting=$absences$looks
while :; do
    jobs >/dev/null 2>&1 # takes note of those that have ended
    left=
    for entry in $waiting; do
        kill -0 "${entry##*=}" 2>/dev/null && left="$left $entry"
    done
    waiting=$left
    if [ -z "$left" ] || [ "$turns" -ge 120 ]; then
        break
    fi
    turns=$((turns + 1))
    sleep 0.1 2>/dev/null || { sleep 1 && turns=$((turns + 10)); }
done
hung=${closed# }
for entry in $waiting; do
    fact "hung@${entry%=*}" yes
    hung=1
done
for entry in $looks; do
    case "$waiting " in *" $entry "*) continue ;; esac
    wait "${entry##*=}" || hung=1
done

# Who waits in the kernel, of all processes: those that do so at two looks, and are no kernel's.
stuck() {
    for entry in "$ROOT"/proc/[0-9]*/stat; do
        stat=
        read -r stat 2>/dev/null <"$entry" || continue
        case ${stat##*) } in D*) ;; *) continue ;; esac
        comm=${stat#*(}
        # shellcheck disable=SC2086 # the words are wanted
        set -- ${stat##*) }
        [ "${21}" = 0 ] || printf '%s %s\n' "${stat%% *}" "${comm%)*}"
    done
}
if [ -n "$hung" ]; then
    set +f
    before=$cc_nl$(stuck)$cc_nl
    sleep 1
    stuck | while read -r entry; do
        case $before in *"$cc_nl$entry$cc_nl"*) printf '%s\n' "$entry" ;; esac
    done | head -n 100 | lines stuck
fi
"""
)
