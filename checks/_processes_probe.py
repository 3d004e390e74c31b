"""The probe of the check processes: /proc is read once, and again for what looks stuck."""

PROBE = r"""
# every_stat: one line for each process. By xargs, since a node may have more than a command takes.
every_stat() {
    if [ "$seen" = all ]; then
        printf '%s\n' "$ROOT"/proc/[0-9]*/stat | xargs cat 2>/dev/null
    else
        # shellcheck disable=SC2016 # it is for that shell
        as_root sh -c 'printf "%s\n" "$1"/proc/[0-9]*/stat | xargs cat' sh "$ROOT" 2>/dev/null
        set -- "$?"
        case $1 in
        126 | 127) printf '%s\n' "$ROOT"/proc/[0-9]*/stat | xargs cat 2>/dev/null ;;
        *) echo 'seen root' ;;
        esac
    fi
}

# what /proc has on the process $1: $state, how often its first thread gave up the processor in
# $changes, and the signals that wait for it in $waiting
look() {
    state=gone changes=- waiting=
    while read -r key value _; do
        case $key in
        State:) state=$value ;;
        SigPnd: | ShdPnd:) waiting=$waiting${waiting:+/}$value ;;
        voluntary_ctxt_switches:) changes=$value ;;
        esac
    done 2>/dev/null <"$ROOT/proc/$1/status"
}

# the letter of the process $1's state, in $state
state_of() {
    state=gone stat=
    read -r stat 2>/dev/null <"$ROOT/proc/$1/stat" || return
    stat=${stat##*) }
    state=${stat%% *}
}

# what the process $1 waits on, in $wait; of another user's only root is told
wait_of() {
    wait=
    read -r wait 2>/dev/null <"$ROOT/proc/$1/wchan"
    case $wait in
    '' | 0) wait=$(as_root cat "$ROOT/proc/$1/wchan" 2>/dev/null) ;;
    esac
    case $wait in
    '' | 0) wait=- ;;
    esac
}

# the control groups of the process $1, in $groups
groups_of() {
    groups=''
    while IFS=: read -r _ _ group; do
        case "$groups," in
        *",$group,"*) ;;
        *) [ "$group" = / ] || groups=$groups,${group%% *} ;;
        esac
    done 2>/dev/null <"$ROOT/proc/$1/cgroup"
}

# owners PID…: "PID UID" of each
owners() {
    paths=
    for pid in "$@"; do
        paths="$paths $ROOT/proc/$pid"
    done
    # shellcheck disable=SC2086 # the words are wanted
    [ -z "$paths" ] || within 5 ls -ldn $paths 2>/dev/null |
        awk '{ n = split($NF, part, "/"); print part[n], $3 }'
}

# /proc may hide what is not one's own (hidepid)
seen=own
read -r first 2>/dev/null <"$ROOT/proc/1/stat" && [ -n "$first" ] && seen=all
# "KIND/PID/…" of what is looked at again, and how many there are: numbers alone
table=$(every_stat | awk -v strays="$strays" '
    $0 == "seen root" { print "root/1"; next }
    !/^[0-9]+ \(/ { next }
    {
        rest = $0
        sub(/^.*\) /, "", rest)
        if (split(rest, f, " ") < 20) next
        command = $0
        sub(/^[0-9]+ \(/, "", command)
        sub(/\) [^)]*$/, "", command)
        total++
        # threads of the kernel may wait for ever, by design (PF_KTHREAD)
        if (int(f[7] / 2097152) % 2) next
        if (command == "slurmd") slurmd = 1
        if (command == "slurmstepd") steps[$1] = 1
        parent[$1] = f[2]
        started[$1] = f[20]
        if (f[1] == "D" && ++waiting <= 40) print "D/" $1
        # with more threads than one, only the first has ended and the others run
        if ((f[1] == "Z" || f[1] == "X") && f[18] < 2 && ++dead <= 400) print "Z/" $1 "/" f[2]
    }
    END {
        if (strays == "always" || (strays == "slurmd" && slurmd))
            for (pid in parent) {
                if (parent[pid] in steps) print "J/" pid
                else if (parent[pid] == 1 && !(pid in steps) && ++alone <= 2000)
                    print "O/" pid "/" started[pid]
            }
        print "total/" total + 0
        print "waiting/" waiting + 0
        print "dead/" dead + 0
        if (slurmd) print "slurmd/1"
    }')
before='' dead='' counts='' owned='' alone=''
for item in $table; do
    rest=${item#*/}
    case $item in
    D/*)
        look "$rest"
        [ "$state" = D ] && before="$before $rest/$changes"
        ;;
    Z/*) dead="$dead $rest" ;;
    J/*) owned="$owned $rest" ;;
    O/*) owned="$owned ${rest%/*}" alone="$alone $rest" ;;
    root/*) seen=all ;;
    *) counts="$counts ${item%/*} $rest" ;;
    esac
done
fact seen "$seen"
fact counts "${counts# }"

# What waits in the kernel and does not run meanwhile is stuck; what is dead should be collected.
[ -n "$before$dead" ] && sleep 2
for one in $before; do
    pid=${one%/*}
    look "$pid"
    [ "$state" = D ] && [ "$changes" = "${one#*/}" ] || continue
    wait_of "$pid"
    command=
    read -r command 2>/dev/null <"$ROOT/proc/$pid/comm"
    owner=$(owners "$pid")
    owner=${owner##* }
    printf '%s %s %s %s %s\n' "$pid" "${owner:--}" "$wait" "${waiting:--}" "$command"
done | lines stuck
for one in $dead; do
    pid=${one%/*}
    state_of "$pid"
    case $state in
    Z | X) ;;
    *) continue ;;
    esac
    above='' command=''
    read -r above 2>/dev/null <"$ROOT/proc/${one#*/}/comm"
    read -r command 2>/dev/null <"$ROOT/proc/$pid/comm"
    printf '%s %s %s/%s\n' "$pid" "${one#*/}" "${above:--}" "${command:--}"
done | lines zombies

# "USERS-OF-JOBS", then "PID UID SECONDS GROUPS COMMAND" of what belongs to nobody but init
uptime=
read -r uptime _ 2>/dev/null <"$ROOT/proc/uptime"
uptime=${uptime%%.*}
if [ -n "$owned" ]; then
    # shellcheck disable=SC2086 # the words are wanted
    users=" $(owners $owned | while read -r pid uid; do printf '%s/%s ' "$pid" "$uid"; done)"
    jobs=' '
    for item in $table; do
        case $item in
        J/*)
            case $users in
            *" ${item#J/}/"*)
                uid=${users#*" ${item#J/}/"}
                jobs="$jobs${uid%% *} "
                ;;
            esac
            ;;
        esac
    done
    for one in $alone; do
        pid=${one%/*}
        case $users in
        *" $pid/"*) uid=${users#*" $pid/"} uid=${uid%% *} ;;
        *) continue ;;
        esac
        case $jobs in
        *" $uid "*) continue ;;
        esac
        [ "$uid" -ge "$first_uid" ] 2>/dev/null || continue
        groups_of "$pid"
        command=
        read -r command 2>/dev/null <"$ROOT/proc/$pid/comm"
        started=${one#*/}
        age=-
        # in ticks of which Linux tells a hundred a second to all programs
        [ -n "$uptime" ] && age=$((uptime - ${started%??} / 1))
        printf '%s %s %s %s %s\n' "$pid" "$uid" "$age" "${groups:--}" "$command"
    done | lines strays
else
    fact strays ''
fi
"""
