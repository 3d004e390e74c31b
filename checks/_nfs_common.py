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

# Makes the empty file $file in the first directory of $at's file system where this user may.
# $why is "done" or why not, $place the directory.
make_file() {
    device=$(within 4 stat -L -c %d "$at/." 2>/dev/null)
    IFS=$cc_nl
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $throughput_dir $write_dirs
    unset IFS
    chosen=
    for place; do
        is_here "$ROOT$place" && chosen=1 && break
    done
    if [ -n "$chosen" ]; then
        set -- "$place"
    else
        set -- "${at#"$ROOT"}"
        [ -n "$HOME" ] && set -- "$@" "$HOME"
    fi
    why='Permission denied'
    for place; do
        is_here "$ROOT$place" || continue
        file=$ROOT${place%/}/$name
        text=$(within 4 touch "$file" 2>&1)
        case $? in
        0) why='done' ;;
        124 | 137) why=hung ;;
        *) reason "$text" ;;
        esac
        [ "$why" = 'Permission denied' ] || return
    done
    place=${at#"$ROOT"}
    place=${place:-/}
}

host=
read -r host 2>/dev/null <"$ROOT/proc/sys/kernel/hostname"
set -f
""".replace("MOST_MOUNTS", str(MOST_MOUNTS))
