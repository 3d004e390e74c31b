"""The part of the light probe of the check nfs that looks at one mount."""

LOOK = r"""
# Has the mount stopped to answer? Else it was one command that took too long.
hangs() {
    answers_still 4 && return 1
    fact "state@$number" hung
}

# Removes the file $1 by the command $2. False where the mount hangs by now.
remove() {
    text=$("$2" rm -f "$1" 2>&1)
    said $?
    [ "$why" = 'done' ] && return
    [ "$why" = hung ] && hangs && return 1
    fact "left@$number" "${1#"$ROOT"}"
}
by_user() { within 4 "$@"; }

# What root may do in $place: a squashed root owns nothing and gives nothing away. False where the
# mount hangs by now.
look_as_root() {
    fact "step@$number" "root's file"
    file=$ROOT${place%/}/$name-root
    text=$(by_root touch "$file" 2>&1)
    said $?
    [ "$why" = hung ] && hangs && return 1
    fact "root.touch@$number" "$why"
    if [ "$why" = 'done' ]; then
        fact "root.owner@$number" "$(by_root stat -c %u "$file" 2>/dev/null)"
        text=$(by_root chown 1 "$file" 2>&1)
        said $?
        [ "$why" = hung ] && hangs && return 1
        fact "root.chown@$number" "$why"
        remove "$file" by_root || return
    fi
    file=
}

# The same as the login user
look_as_user() {
    fact "step@$number" 'an empty file'
    make touch
    [ "$why" = hung ] && hangs && return 1
    fact "touch@$number" "$why"
    if [ "$why" = 'done' ]; then
        fact "owner@$number" "$(within 4 stat -c %u "$made" 2>/dev/null)"
        text=$(within 4 chmod 600 "$made" 2>&1)
        said $?
        [ "$why" = hung ] && hangs && return 1
        fact "chmod@$number" "$why"
        remove "$made" by_user || return
    fi
    made=
    [ -n "$HOME" ] && is_here "$ROOT$HOME" &&
        fact "home@$number" "$(within 4 stat -L -c %u "$ROOT$HOME" 2>/dev/null)"
    return 0
}

# What killed runs have left in $place is removed where this node left it, else told when it is an
# hour old. A run that goes on is told by its process; none takes an hour.
look_for_leftovers() {
    fact "step@$number" 'its directory'
    found=$(within 4 find "$ROOT$place/." ! -name . -prune -name '.clustercheck-nfs-*' 2>/dev/null |
        sed 's,.*/,,' | head -n 20)
    [ -n "$found" ] || return
    aged=$cc_nl$(within 4 find "$ROOT$place/." ! -name . -prune -name '.clustercheck-nfs-*' \
        -mmin +60 2>/dev/null | sed 's,.*/,,')$cc_nl
    removed='' old=''
    IFS=$cc_nl
    # shellcheck disable=SC2086 # the lines are wanted
    set -- $found
    unset IFS
    for entry; do
        is_old=
        case $aged in *"$cc_nl$entry$cc_nl"*) is_old=1 ;; esac
        owner=${entry#"$ours-"}
        owner=${owner%%-*}
        case $entry$is_old in
        "$ours-"*)
            case $owner in '' | *[!0-9]*) continue ;; esac
            [ -d "$ROOT/proc/$owner" ] && continue
            ;;
        ".clustercheck-nfs-${host:-node}-"*1) [ -n "$is_old" ] || continue ;;
        *)
            [ -n "$is_old" ] && old="$old$entry "
            continue
            ;;
        esac
        case $entry in
        *-root) [ -n "$root" ] && by_root rm -f "$ROOT$place/$entry" ;;
        *) within 4 rm -rf "$ROOT$place/$entry" ;;
        esac 2>/dev/null
        # shellcheck disable=SC2181 # of what was chosen above
        if [ $? = 0 ]; then removed="$removed$entry "; else old="$old$entry "; fi
    done
    fact "old@$number" "$old"
    fact "removed@$number" "$removed"
}

# One mount, in a process of its own: one that hangs harms no other. False where it hangs.
look() {
    number=$1
    take "$2"
    fact "step@$number" 'its free space'
    text=$(within 4 stat -f -c '%S %b %a %c %d' "$at" 2>&1)
    said $?
    case $why in
    'done') fact "state@$number" answers && fact "size@$number" "$text" ;;
    *)
        fact "state@$number" "$why"
        [ "$why" != hung ]
        return
        ;;
    esac
    case ,$options, in *,ro,*) return ;; esac
    [ -n "$write" ] || return 0
    name=$ours-$$-$number
    file='' made='' place=''
    trap '
        seconds=1
        [ -z "$made" ] || within 1 rm -f "$made"
        [ -z "$file" ] || by_root rm -f "$file"
    ' EXIT
    trap 'exit 143' HUP TERM
    if [ "$uid" = 0 ]; then
        find_place
    else
        look_as_user || return
    fi
    if [ -n "$root" ]; then
        look_as_root || return
    fi
    fact "place@$number" "${place:-/}"
    look_for_leftovers
    fact "step@$number" 'nothing'
}
"""
