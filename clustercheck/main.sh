# shellcheck shell=sh
# Runs the probes on a node and gathers their answers. Needs a POSIX sh and nothing else; changes
# nothing, and what it makes (one directory, its own processes) is gone when it ends.
#
# Given: cc_mark (random: starts each line of the answer), cc_id (names the directory), cc_sudo (1
# where root is wanted and may be had by sudo), cc_clock (exchanges for the clock, 0 for none),
# cc_at_once (1 where many nodes have this one script and nobody answers one of them), and the
# functions write_probes FILE and launch_probes.

say() { printf '%s - %s\n' "$cc_mark" "$1"; }

# Start of a process in clock ticks since boot: tells a process from a later one of the same id.
born() {
    cc_stat=
    read -r cc_stat 2>/dev/null <"/proc/$1/stat" || return 1
    # shellcheck disable=SC2086 # the words are wanted
    set -- ${cc_stat##*) }
    printf '%s' "${20}"
}

# Every process of the probe's session, as words: PID/STATE/WCHAN/COMMAND
session() {
    for cc_file in /proc/[0-9]*/stat; do
        cc_stat=
        read -r cc_stat 2>/dev/null <"$cc_file" || continue
        cc_comm=${cc_stat#*\(}
        # shellcheck disable=SC2086
        set -- "$1" ${cc_stat##*) }
        if [ "$5" = "$1" ] && [ "$2" != Z ]; then
            cc_pid=${cc_file#/proc/}
            cc_pid=${cc_pid%/stat}
            cc_wchan=
            read -r cc_wchan 2>/dev/null <"/proc/$cc_pid/wchan"
            cc_comm=${cc_comm%)*}
            printf '%s/%s/%s/%s\n' "$cc_pid" "$2" "${cc_wchan:-0}" "$cc_comm"
        fi
    done
}

# Ends a session, with root's right where a command of it may run as root.
end_session() {
    kill -KILL "-$1" 2>/dev/null # its first group, also where /proc does not show it
    for cc_pid in "$1" $(session "$1" | sed 's,/.*,,'); do
        kill -KILL "$cc_pid" 2>/dev/null || {
            [ "$cc_way" = sudo ] && [ -d "/proc/$cc_pid" ] && sudo -n kill -KILL "$cc_pid" 2>/dev/null
        }
    done
}

# A probe may have made something that it removes when it is told to end. For that all of them have
# two seconds together.
cc_patience=20
ask_to_end() {
    for cc_pid in "$1" $(session "$1" | sed 's,/.*,,'); do
        kill -TERM "$cc_pid" 2>/dev/null
    done
    while [ "$cc_patience" -gt 0 ] && [ -n "$(session "$1")" ]; do
        cc_patience=$((cc_patience - 1))
        sleep 0.1 2>/dev/null || { sleep 1 && cc_patience=$((cc_patience - 10)); }
    done
}

tidy() {
    trap '' HUP INT TERM PIPE USR1
    trap - EXIT
    [ -n "$cc_ticker" ] && kill -TERM "$cc_ticker" 2>/dev/null
    for cc_entry in $cc_running; do
        ask_to_end "${cc_entry#*:}"
    done
    for cc_entry in $cc_running; do
        end_session "${cc_entry#*:}"
    done
    [ -n "$cc_dir" ] && rm -rf "$cc_dir"
}

# A directory of a killed run is ours and its owner is gone. One that is younger than a minute may
# be another run's that has not written its owner yet; one in a home that nodes share may be another
# node's, which its boot id tells.
remove_leftovers() {
    for cc_old in "$1"/.clustercheck-*; do
        [ -d "$cc_old" ] && [ ! -L "$cc_old" ] || continue
        [ -n "$(find "$cc_old" -prune -user "$cc_uid" -mmin +1 2>/dev/null)" ] || continue
        cc_owner='' cc_birth='' cc_where=''
        read -r cc_owner cc_birth cc_where 2>/dev/null <"$cc_old/owner"
        if [ "$cc_where" = "$cc_boot" ]; then
            [ -n "$cc_owner" ] && [ "$(born "$cc_owner")" = "$cc_birth" ] && continue
        elif [ "$1" = "$HOME" ]; then
            continue
        fi
        rm -rf "$cc_old" && say "leftover $cc_old"
    done
}

# Memory first: /tmp may be full, read-only or not there.
make_dir() {
    for cc_base in /dev/shm "/run/user/$cc_uid" /tmp /var/tmp "$HOME"; do
        [ -d "$cc_base" ] && [ -w "$cc_base" ] || continue
        remove_leftovers "$cc_base"
        cc_dir=$cc_base/.clustercheck-$cc_id-$$
        mkdir -m 700 "$cc_dir" 2>/dev/null || continue
        TMPDIR=$cc_dir # where some shells put a here-document
        export TMPDIR
        if printf '%s %s %s\n' "$$" "$(born $$)" "$cc_boot" 2>/dev/null >"$cc_dir/owner" &&
            write_probes "$cc_dir/probes" 2>/dev/null; then
            return 0
        fi
        rm -rf "$cc_dir"
    done
    cc_dir=
    say "nodir"
    return 1
}

# Root's rights are asked for once, not by each probe: sudo may be slow, refuse or hang.
find_way_to_root() {
    [ "$cc_uid" = 0 ] && cc_way=direct
    if [ "$cc_way$cc_sudo" = no1 ]; then
        # in a session of its own, as a probe: what it has started is ended with it
        set -- sudo -n true
        [ -n "$cc_setsid" ] && command -v sudo >/dev/null && set -- setsid "$@"
        "$@" >"$cc_dir/sudo" 2>&1 </dev/null &
        cc_running=" sudo/5:$!"
        await sudo 5 $!
        cc_running=''
        if [ "$cc_status" = 0 ]; then
            cc_way=sudo
        else
            say "sudo $cc_status $(tail -c 400 "$cc_dir/sudo" | tr '\n' ' ')"
        fi
    fi
    say "way $cc_way"
}

# launch NAME LIMIT ROOT TOOL…: ROOT is 1 where the probe is worth nothing without root.
launch() {
    cc_name=$1
    cc_limit=$2
    cc_needs_root=$3
    shift 3
    for cc_tool; do
        command -v "$cc_tool" >/dev/null 2>&1 || {
            printf '%s %s ! missing %s\n' "$cc_mark" "$cc_name" "$cc_tool"
            return
        }
    done
    set -- sh "$cc_dir/probes" "$cc_name" "$cc_way"
    if [ -n "$cc_needs_root" ]; then
        case $cc_way in
        no)
            printf '%s %s ! needs-root\n' "$cc_mark" "$cc_name"
            return
            ;;
        sudo) set -- sudo -n -- "$@" ;;
        esac
    fi
    [ -n "$cc_setsid" ] && set -- setsid "$@"
    "$@" >"$cc_dir/$cc_name.out" 2>"$cc_dir/$cc_name.err" </dev/null &
    cc_running="$cc_running $cc_name/$cc_limit:$!"
    printf '%s\n' "$!" >>"$cc_dir/sessions"
}

# await NAME LIMIT PID: a second's tick (USR1) interrupts `wait`, so a hung one holds up nobody.
await() {
    while :; do
        wait "$3"
        cc_status=$?
        if ! kill -0 "$3" 2>/dev/null; then
            # what the probe has left running in its session ends with it
            kill -0 "-$3" 2>/dev/null && end_session "$3"
            # the answer may be cut in the middle of a line
            printf '\n%s %s ! end %s\n' "$cc_mark" "$1" "$cc_status" >>"$cc_dir/$1.end"
            [ -s "$cc_dir/$1.err" ] && [ "$cc_status" != 0 ] &&
                tail -c 400 "$cc_dir/$1.err" | tr '\n' ' ' |
                sed "s/^/$cc_mark $1 ! stderr /; s/\$/\\
/" >>"$cc_dir/$1.end"
            return
        fi
        [ "$cc_now" -lt "$2" ] && continue
        printf '\n' >>"$cc_dir/$1.end"
        session "$3" | sed "s/^/$cc_mark $1 ! hung $2 /" >>"$cc_dir/$1.end"
        end_session "$3"
        sleep 1
        session "$3" | sed "s/^/$cc_mark $1 ! stays /" >>"$cc_dir/$1.end"
        printf '%s %s ! end limit\n' "$cc_mark" "$1" >>"$cc_dir/$1.end"
        cc_status=limit
        return
    done
}

# The time from the kernel, for which busybox has a word; 0x2000 in the status stands for ns.
by_kernel() {
    busybox adjtimex 2>/dev/null | awk '
        $1 == "status:" { nano = int($2 / 8192) % 2 }
        $1 == "time.tv_sec:" { seconds = $2 }
        $1 == "time.tv_usec:" { printf(nano ? "%d.%09d" : "%d.%06d", seconds, $2) }'
}

# The other side sends an empty line when it has noted its time, and reads its clock again when
# the answer comes: this clock's value lies between the two. Where it sends nothing to one node
# alone, it has noted the time when it sent the word that started this.
exchange_clock() {
    cc_turn=0
    while [ "$cc_turn" -lt "$cc_clock" ]; do
        if [ -z "$cc_at_once" ]; then
            say "clock $cc_turn"
            read -r _ || return
        fi
        cc_time=$(date +%s.%N)
        case $cc_time in
        *[!0-9.]*) cc_time=$(by_kernel) ;; # busybox may know no %N, and then says as it stands
        esac
        say "time $cc_turn ${cc_time:-$(date +%s)}"
        cc_turn=$((cc_turn + 1))
    done
}

# Ticks once a second. Should the main shell be killed, this ends the probes and removes the files.
tick() {
    exec </dev/null >/dev/null 2>&1
    cc_nap=''
    trap 'kill -KILL "$cc_nap" 2>/dev/null; exit' TERM # no sleep is left for the rest of a second
    while :; do
        sleep 1 &
        cc_nap=$!
        wait "$cc_nap" || exit
        cc_nap=''
        [ -d "$cc_dir" ] || exit
        cc_stat=
        read -r cc_stat <"/proc/$$/stat"
        case ${cc_stat##*) } in
        Z*) break ;;
        '') [ -r /proc/self/stat ] && break ;; # where nothing can be seen, the signal tells
        esac
        kill -USR1 $$ || break
    done
    while read -r cc_pid; do
        end_session "$cc_pid"
    done <"$cc_dir/sessions"
    rm -rf "$cc_dir"
}

cc_running='' cc_dir='' cc_ticker='' cc_now=0 cc_way=no
umask 077
trap 'tidy; exit 1' HUP INT TERM PIPE
trap tidy EXIT
printf '\n'
cc_uid=$(id -u)
cc_host='' cc_boot=''
read -r cc_host 2>/dev/null <"$ROOT/proc/sys/kernel/hostname"
read -r cc_boot 2>/dev/null </proc/sys/kernel/random/boot_id
say "begin $cc_uid ${cc_boot:-?} $cc_host"
cc_setsid=''
command -v setsid >/dev/null 2>&1 && cc_setsid=1
exchange_clock
make_dir || exit 1
trap 'cc_now=$((cc_now + 1)); say tick' USR1
tick &
cc_ticker=$!
find_way_to_root
launch_probes
cc_files=''
for cc_entry in $cc_running; do
    cc_key=${cc_entry%:*}
    await "${cc_key%/*}" "${cc_key#*/}" "${cc_entry#*:}"
    cc_files="$cc_files $cc_dir/${cc_key%/*}.out $cc_dir/${cc_key%/*}.end"
done
kill -TERM "$cc_ticker" 2>/dev/null
trap '' USR1
cc_ticker='' cc_running=''
say 'done' >"$cc_dir/done"
# Gathered first, for each write is a packet of its own; where there is no room, written as it is.
# shellcheck disable=SC2086 # a list of names without blanks
if cat ${cc_files:-} "$cc_dir/done" >"$cc_dir/all" 2>/dev/null; then
    cat "$cc_dir/all"
else
    cat ${cc_files:-} "$cc_dir/done"
fi
# no room for it: the answer may be cut in the middle of a line
[ -s "$cc_dir/done" ] || { printf '\n' && say full; }
tidy
exit 0
