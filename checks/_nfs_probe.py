"""The light probe of the check nfs."""

from ._nfs_common import COMMON

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
mounted=$cc_nl$(awk '
    index($0, " - nfs ") || index($0, " - nfs4 ") { print $5 }' "$ROOT/proc/self/mountinfo")$cc_nl

# Can a TCP connection be made to port $2 of the address $1? Says how it went.
reach() {
    if have bash; then
        # shellcheck disable=SC2016 # bash expands it
        text=$(within 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1)
        status=$?
    elif have nc; then
        text=$(within 3 nc -v -z -w 2 "$1" "$2" 2>&1)
        status=$?
        case $text in
        *'invalid option'* | *'unrecognized'* | *sage:*)
            text=$(within 3 nc -w 2 "$1" "$2" 2>&1)
            status=$?
            # it gives up connecting after 2 s, so after 3 s it was connected
            case $status in 124 | 137 | 143) status=0 ;; esac
            ;;
        esac
    else
        fact "reach@$1/$2" 'no tool'
        return 0
    fi
    case $status in
    0) why=open ;;
    124 | 137) why='no answer' ;;
    *) reason "$text" ;;
    esac
    fact "reach@$1/$2" "$why"
    [ "$why" = open ]
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
    [ -n "$address" ] && reach "$address" 2049
    have systemd-escape && have journalctl || return
    unit=$(within 2 systemd-escape -p --suffix=mount "$2" 2>/dev/null)
    text=$(within 4 journalctl -b -q --no-pager -o cat -n 40 -u "$unit" 2>/dev/null |
        grep '^mount' | tail -n 1)
    fact "log@$1" "$text"
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
    case $mounted$found in *"$cc_nl$target$cc_nl"*) return ;; esac
    path=$(plainly "$target")
    real=$(within 3 readlink -f "$ROOT$path" 2>/dev/null)
    case $mounted in *"$cc_nl${real#"$ROOT"}$cc_nl"*) return ;; esac
    found=$found$target$cc_nl
    count=$((count + 1))
    fact "absent@$count" "$path"
    absent "$count" "$path" "$2" &
    absences="$absences absent-$count=$!"
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
    reach "$1" "$2" &
    waiting="$waiting $1/$2=$!"
}
# $gate: the server's own port, "" where a connection by TCP says nothing
gate_of() {
    part port "$options"
    gate=$server/${value:-2049}
    case ,$server,$options, in
    ,,* | *,proto=rdma,* | *,proto=udp,*) gate='' ;;
    esac
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
    if have timeout; then as_root timeout -k 1 4 "$@"; else as_root "$@"; fi
}
root=
[ -n "$write" ] && [ $# -gt 0 ] && as_root true && root=1

# What root may do in the mount's directory $1: a squashed root owns nothing and gives nothing away.
look_as_root() {
    fact "step@$number" "root's file"
    file=$ROOT${1%/}/$name-root
    text=$(by_root touch "$file" 2>&1)
    case $? in
    0) why='done' ;;
    124 | 137) why=hung ;;
    *) reason "$text" ;;
    esac
    fact "root.touch@$number" "$why"
    if [ "$why" = 'done' ]; then
        fact "root.owner@$number" "$(by_root stat -c %u "$file" 2>/dev/null)"
        text=$(by_root chown 1 "$file" 2>&1) && text='done'
        reason "$text"
        fact "root.chown@$number" "$why"
        by_root rm -f "$file" || fact "left@$number" "${file#"$ROOT"}"
    fi
}

# One mount, in a process of its own: one that hangs harms no other.
look() {
    number=$1
    take "$2"
    fact "step@$number" 'its free space'
    text=$(within 4 stat -f -c '%S %b %a %c %d' "$at" 2>&1)
    case $? in
    0) fact "state@$number" answers && fact "size@$number" "$text" ;;
    124 | 137)
        fact "state@$number" hung
        return
        ;;
    *)
        reason "$text"
        fact "state@$number" "$why"
        return
        ;;
    esac
    case ,$options, in *,ro,*) return ;; esac
    [ -n "$write" ] || return
    name=.clustercheck-nfs-${host:-node}-$$-$number
    file='' place=''
    trap '[ -n "$file" ] && rm -f "$file"' EXIT
    if [ "$uid" = 0 ]; then
        look_as_root "${at#"$ROOT"}"
        place=${at#"$ROOT"}
    else
        fact "step@$number" 'an empty file'
        make_file
        fact "touch@$number" "$why"
        made=$why
        if [ "$made" = 'done' ]; then
            fact "owner@$number" "$(within 4 stat -c %u "$file" 2>/dev/null)"
            text=$(within 4 chmod 600 "$file" 2>&1) && text='done'
            reason "$text"
            fact "chmod@$number" "$why"
            within 4 rm -f "$file" || fact "left@$number" "${file#"$ROOT"}"
        fi
        [ -n "$HOME" ] && is_here "$ROOT$HOME" &&
            fact "home@$number" "$(within 4 stat -L -c %u "$ROOT$HOME" 2>/dev/null)"
        [ -n "$root" ] && look_as_root "$place"
    fi
    file=
    fact "place@$number" "${place:-/}"
    fact "step@$number" 'its directory'
    fact "old@$number" "$(within 4 find "$ROOT$place/." ! -name . -prune \
        -name '.clustercheck-nfs-*' -mmin +60 2>/dev/null | sed 's,.*/,,' | head -n 5 |
        tr '\n' ' ')"
    fact "step@$number" 'nothing'
}

number=0 waiting=$absences
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
    waiting="$waiting $number=$!"
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
turns=0
while :; do
    jobs >/dev/null 2>&1 # takes note of those that have ended
    left=
    for entry in $waiting; do
        kill -0 "${entry##*=}" 2>/dev/null && left="$left $entry"
    done
    waiting=$left
    if [ -z "$left" ] || [ "$turns" -ge 100 ]; then
        break
    fi
    turns=$((turns + 1))
    sleep 0.1 2>/dev/null || { sleep 1 && turns=$((turns + 10)); }
done
for entry in $waiting; do
    fact "hung@${entry%=*}" yes
done
"""
)
