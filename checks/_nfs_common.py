"""What both probes of the check nfs do: find the mounts, and a place to write in."""

MOST_MOUNTS = 64  # a probe looks at

COMMON = r"""
# The text as it is, of the kernel's octal escapes; a backslash is one of them itself.
plainly() {
    case $1 in
    *\\*)
        # shellcheck disable=SC2059 # the text is the format
        printf "$(printf '%s' "$1" | sed 's/%/%%/g')"
        ;;
    *) printf '%s' "$1" ;;
    esac
}

# The value of the option $1 in the list $2
part() {
    value=
    case ,$2, in
    *,"$1"=*)
        value=,$2,
        value=${value#*,"$1"=}
        value=${value%%,*}
        ;;
    esac
}

# NFS mounts as lines of mountinfo: of each place the last, of each file system one.
nfs_mounts() {
    awk '
        { at[$5] = NR; line[NR] = $0; place[NR] = $5; device[NR] = $3 }
        END {
            for (n = 1; n <= NR; n++) {
                kind = substr(line[n], index(line[n], " - ") + 3)
                if (at[place[n]] == n && kind ~ /^nfs4? / && !seen[device[n]]++) print line[n]
            }
        }' "$ROOT/proc/self/mountinfo" | head -n MOST_MOUNTS
}

# Takes a line of nfs_mounts apart: $at (with $ROOT), $server and $options.
take() {
    kind_on=${1#* - }
    # shellcheck disable=SC2086 # the words are wanted
    set -- $1
    at=$(plainly "$5" && echo .)
    at=$ROOT${at%.}
    options=$6,${kind_on##* }
    part addr "$options"
    server=$value
}

# What went wrong, of what a command said: after the last colon of its last line
reason() {
    why=${1##*"$cc_nl"}
    why=${why##*: }
    why=${why:-no reason given}
}

# Is the directory $1 on the file system $device?
is_here() { [ -n "$device" ] && [ "$(within 4 stat -L -c %d "$1" 2>/dev/null)" = "$device" ]; }

# Where to write on $at's file system: $place is the first directory there that the options name
# ($chosen is then set), else the mount's own.
find_place() {
    device=$(within 4 stat -L -c %d "$at/." 2>/dev/null)
    chosen=1
    IFS=$cc_nl
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $throughput_dir $write_dirs
    unset IFS
    for place; do
        is_here "$ROOT$place" && return
    done
    chosen=
    place=${at#"$ROOT"}
    place=${place:-/}
}

# Makes $made, called $name, by the command $1 (touch or mkdir), in the home where this user may
# not in $place. $why is "done", "hung" or why not.
make() {
    find_place
    make_in "$1" "$place" && return
    if [ "$why" = 'Permission denied' ] && [ -z "$chosen" ] && [ -n "$HOME" ] &&
        is_here "$ROOT$HOME" && make_in "$1" "$HOME"; then
        place=$HOME
    fi
}

make_in() {
    made=$ROOT${2%/}/$name
    text=$(within 4 "$1" "$made" 2>&1)
    said $?
    case $why in
    'done' | hung) ;; # what has hung may be made yet
    *)
        made=
        return 1
        ;;
    esac
}

# $why of a command that ended with the status $1 and said $text
said() {
    case $1 in
    0) why='done' ;;
    124 | 137) why=hung ;;
    *) reason "$text" ;;
    esac
}

# Does the mount answer still, after $1 s?
answers_still() {
    within "$1" stat -f "$at" >/dev/null 2>&1
    case $? in 124 | 137) return 1 ;; esac
}

# Can a TCP connection be made to port $2 of the address $1? $why is "open", "no tool" or why not.
reach() {
    if have bash; then
        # shellcheck disable=SC2016 # bash expands it
        answer=$(within 3 bash -c 'exec 3<>"/dev/tcp/$0/$1"' "$1" "$2" 2>&1)
        ended=$?
    elif have nc; then
        answer=$(within 3 nc -v -z -w 2 "$1" "$2" 2>&1)
        ended=$?
        case $answer in
        *'invalid option'* | *'unrecognized'* | *sage:*)
            answer=$(within 3 nc -w 2 "$1" "$2" 2>&1)
            ended=$?
            # it gives up connecting after 2 s, so after 3 s it was connected
            case $ended in 124 | 137 | 143) ended=0 ;; esac
            ;;
        esac
    else
        why='no tool'
        return 0
    fi
    case $ended in
    0) why=open ;;
    124 | 137) why='no answer' ;;
    *) reason "$answer" ;;
    esac
    [ "$why" = open ]
}

# $gate: the port of the mount's server, "" where a connection by TCP says nothing
gate_of() {
    part port "$options"
    gate=$server/${value:-2049}
    case ,$server,$options, in
    ,,* | *,proto=rdma,* | *,proto=udp,*) gate='' ;;
    esac
}

host='' boot=''
read -r host 2>/dev/null <"$ROOT/proc/sys/kernel/hostname"
read -r boot 2>/dev/null <"$ROOT/proc/sys/kernel/random/boot_id"
# What we make tells whose it is: should it be left, the next run on this node knows it by that.
ours=.clustercheck-nfs-${host:-node}-${boot%%-*}
set -f
""".replace("MOST_MOUNTS", str(MOST_MOUNTS))
