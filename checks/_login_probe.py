"""The probe of the check login."""

from ._waiting import SETTLE

PROBE = (
    SETTLE
    + r"""
uid=$(id -u)
fact uid "$uid"

# Who may not log in
number=0
for file in /etc/nologin /run/nologin /var/run/nologin; do
    [ -e "$ROOT$file" ] || continue
    [ "$file" = /var/run/nologin ] && [ -L "$ROOT/var/run" ] && continue
    text=
    read -r text 2>/dev/null <"$ROOT$file"
    number=$((number + 1))
    fact "nologin@$number" "$file $text"
done
fact nologins "$number"

home=${HOME:-}
fact home "$home"
if [ -n "$home" ]; then
    text=$(within 4 ls -ldnL "$ROOT$home/." 2>&1)
    status=$?
    case $status in
    0)
        # shellcheck disable=SC2086 # the words are wanted
        set -- $text
        fact home_owner "$3"
        [ -w "$ROOT$home" ] && writable=yes || writable=no
        fact home_writable "$writable"
        state=directory
        ;;
    124 | 137) state=hung ;;
    *) state=${text##*: } ;;
    esac
    fact home_state "${state:-no reason given}"
fi

# What this session may take: "Max locked memory  65536  65536  bytes", …
lock='' files=''
if [ -r "$ROOT/proc/self/limits" ]; then
    while read -r line; do
        # shellcheck disable=SC2086 # the words are wanted
        set -- $line
        case $line in
        'Max locked memory '*) lock=$4 ;;
        'Max open files '*) files=$4 ;;
        esac
    done <"$ROOT/proc/self/limits"
fi
fact locked_memory "$lock"
fact open_files "$files"

shell=${SHELL:-}
way=
[ -n "${SSH_CONNECTION:-}" ] && way=ssh
fact way "$way"
fact shell "$shell"
[ "$start_shell" != no ] && [ -n "$way" ] && [ -x "$shell" ] || return

# csh is a login shell by its name only
case $start_shell:${shell##*/} in
plain:* | *:csh | *:tcsh) set -- -c true ;;
*) set -- -l -c true ;;
esac

# Starts the shell with the words $3… within $1 seconds, and says how long it took, as $2. Nothing
# of it may hold the channel of the facts.
time_it() {
    seconds=$1 key=$2
    shift 2
    from='' till=''
    read -r from _ 2>/dev/null <"$ROOT/proc/uptime"
    # shellcheck disable=SC2016 # sh expands it
    within "$seconds" sh -c 'exec "$@" 3>&-' sh "$shell" "$@" 2>/dev/null
    status=$?
    read -r till _ 2>/dev/null <"$ROOT/proc/uptime"
    fact "$key" "$status ${from:-?} ${till:-?}"
}

# $youngest: the process of this session that began last, which a start that hangs is waiting for.
find_youngest() {
    youngest='' last=0
    for file in "$ROOT"/proc/[0-9]*/stat; do
        stat=
        read -r stat 2>/dev/null <"$file" || continue
        comm=${stat#*\(}
        # shellcheck disable=SC2086 # the words are wanted
        set -- "${comm%)*}" ${stat##*) }
        [ "$5" = "$$" ] && [ "$2" != Z ] && [ "$1" != timeout ] && [ "${21}" -ge "$last" ] ||
            continue
        last=${21}
        place=${file%/stat}
        wchan=
        read -r wchan 2>/dev/null <"$place/wchan"
        youngest="${place##*/} $2 ${wchan:-0} $1"
    done
}

waiting=
time_it "$fail_seconds" start "$@" &
waiting=" start=$!"
settle $((fail_seconds * 10 - 4))
if [ -n "$waiting" ]; then
    find_youngest
    fact youngest "$youngest"
    settle 25
    [ -n "$waiting" ] && fact hung@start yes
elif [ "$turns" -ge $((${warn_seconds%%.*} * 5)) ]; then
    # A first start may wait for what is read from a server: the second has it.
    time_it "$fail_seconds" again "$@" &
    waiting=" again=$!"
    settle $((fail_seconds * 10 + 20))
fi

# As scp and rsync start it: what it prints would spoil what they say to each other.
{
    # shellcheck disable=SC2016 # sh expands it
    text=$({
        SHLVL=0 within 5 sh -c 'exec "$@" 3>&-' sh "$shell" -c true 2>/dev/null
        echo "status $?"
    } | head -c 2000)
    fact noise "$text"
} &
waiting=" noise=$!"
settle 75
[ -n "$waiting" ] && fact hung@noise yes
"""
)
