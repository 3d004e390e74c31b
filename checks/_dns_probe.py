"""What a node is asked about names: by getent, so by the same resolver as Slurm's.

All names of the run are resolved, and a sum of hashes stands for the table of their addresses; the
table itself is sent by those only whose sum differs (`_dns_view.py`). getent ahosts takes many
names at once, yet does not say which line belongs to which: so each name has a number before it,
the address 0.0.0.1, which no name of a node has.
"""

_COMMON = r"""
set -f
database=hosts
case $(within 3 getent ahosts 127.0.0.1 2>/dev/null) in *STREAM*) database=ahosts ;; esac

# Hundredths of a second since boot.
now() {
    read -r up _ 2>/dev/null <"$ROOT/proc/uptime" || up=0.00
    up=${up%.*}${up#*.}
}

# Whom a look-up of the names waits for after half a second, by the far ends of sockets to port 53;
# the word "quick" where it waits no more.
waited_for() {
    within 1 getent "$database" "$@" >/dev/null 2>&1 &
    sleep 0.5 2>/dev/null || return 0
    state=Z # as of one that has ended
    read -r _ _ state _ 2>/dev/null <"$ROOT/proc/$!/stat"
    if [ "$state" = Z ] && [ -r "$ROOT/proc/self/stat" ]; then
        echo quick
        return
    fi
    awk '$3 ~ /:0035$/ { print $3 }' "$ROOT/proc/net/udp" "$ROOT/proc/net/udp6" 2>/dev/null
}

# What getent says of the names, "0.0.0.1 STREAM" before each.
look_up() {
    if [ "$database" = ahosts ]; then
        names=$*
        set --
        for name in $names; do set -- "$@" 0.0.0.1 "$name"; done
        within 12 getent ahosts "$@" 2>/dev/null
        [ $? != 124 ] || return 124
        return 0
    fi
    for name; do # musl's getent of old takes one name at a time
        printf '0.0.0.1 STREAM\n'
        said=$(within 12 getent hosts "$name" 2>/dev/null)
        [ $? != 124 ] || return 124
        printf '%s\n' "$said" | sed -n 's/^\([0-9a-fA-F:.]\{1,\}\).*/\1 STREAM/p'
    done
}

# A row "NAME IPv4,… IPv6,…" for each of the names, "-" where there is none.
rows() {
    said=$(look_up "$@") || return 124
    { printf '%s\n' "$@" && printf '\n%s\n' "$said"; } | awk '
        function put(list, address,   parts, count, i, out) {
            count = split(list, parts, ",")
            for (i = 1; i <= count; i++) {
                if (parts[i] == address) return list
                if (address != "" && address < parts[i]) { out = out "," address; address = "" }
                out = out "," parts[i]
            }
            if (address != "") out = out "," address
            return substr(out, 2)
        }
        !after { if ($0 == "") after = 1; else name[++names] = $1; next }
        $2 != "STREAM" { next }
        {
            address = tolower($1)
            if (address ~ /^::ffff:.*\./) sub(/^::ffff:/, "", address)
            sub(/%.*/, "", address)
        }
        address == "0.0.0.1" { place++; next }
        address ~ /:/ { six[place] = put(six[place], address); next }
        { four[place] = put(four[place], address) }
        END {
            for (i = 1; i <= names; i++)
                print tolower(name[i]), four[i] == "" ? "-" : four[i], six[i] == "" ? "-" : six[i]
        }'
}

# The rows of all names of the run that are no addresses; ends early after $most hundredths of a
# second. Of 10,000 lines in /etc/hosts, glibc reads half for each name: 10,000 names take 15 s.
# Where look-ups are known to be slow ($batch is 1), the first one shows whether there is any hope.
most=3000 batch=64
try() {
    rows "$@" && return
    until=0
    # A port where nobody listens refuses the first questions at once, and later ones in silence.
    for end in $(waited_for "$@"); do
        [ "$end" = quick ] || printf 'waits %s\n' "$end"
    done
}
table() {
    # shellcheck disable=SC2086 # a word each
    set -- $NODES
    count=$#
    now
    until=$((up + most)) total=0 begun=$up
    set --
    for name in $NODES; do
        case $name in
        *:* | localhost) continue ;;
        *[!0-9.]*) ;;
        *) continue ;;
        esac
        total=$((total + 1))
        [ "$up" -lt "$until" ] || continue
        set -- "$@" "$name"
        [ $# = "$batch" ] || continue
        try "$@"
        set --
        now
        if [ "$batch" = 1 ]; then
            batch=64
            [ $(((up - begun) * count)) -lt "$most" ] || until=0
        fi
    done
    if [ $# != 0 ] && [ "$up" -lt "$until" ]; then try "$@"; fi
    printf 'total %s\n' "$total"
}
"""

PROBE = (
    _COMMON
    + r"""
own=''
read -r own 2>/dev/null <"$ROOT/proc/sys/kernel/hostname"
fact hostname "$own"
# IPv4 addresses of the interfaces stand below the word LOCAL, IPv6 addresses as 32 digits.
local=''
if [ -r "$ROOT/proc/net/fib_trie" ]; then
    local=$(awk '$1 == "|--" { address = $2 } $1 == "/32" && $3 == "LOCAL" { print address }' \
        "$ROOT/proc/net/fib_trie" | sort -u)
fi
fact addresses.four "$local"
if [ -r "$ROOT/proc/net/if_inet6" ]; then
    fact addresses.six "$(awk '$4 != "20" { print $1 }' "$ROOT/proc/net/if_inet6")"
fi

for file in /etc/resolv.conf /run/systemd/resolve/resolv.conf /etc/nsswitch.conf /etc/hosts; do
    key=${file##*/}
    [ "${file%/*}" = /etc ] || key=upstream
    if [ ! -e "$ROOT$file" ]; then
        fact "$key.file" absent
    elif [ ! -r "$ROOT$file" ]; then
        fact "$key.file" unreadable
    else
        fact "$key.file" read
        case $key in
        hosts) # of a long file, the lines with the node's own name
            fact hosts "$(awk -v own="$own" '
                BEGIN { own = tolower(own); sub(/\..*/, "", own) }
                {
                    line = $0
                    sub(/#.*/, "")
                    for (i = 2; i <= NF; i++) {
                        name = tolower($i)
                        sub(/\..*/, "", name)
                        if (name == own && found++ < 5) { print line; break }
                    }
                }' "$ROOT$file")"
            ;;
        nsswitch.conf)
            services=$(sed -n 's/#.*//; s/\[[^]]*\]/ /g; s/^[[:blank:]]*hosts:[[:blank:]]*//p' \
                "$ROOT$file")
            fact services "$services"
            ;;
        *) fact "$key" "$(sed 's/[#;].*//' "$ROOT$file" | head -c 4096)" ;;
        esac
    fi
done

# A name that is in no file and in no cache: how long it takes shows whether name servers answer.
case " ${services-dns} " in
*" dns "* | *" resolve "*)
    domain=''
    if [ -r "$ROOT/etc/resolv.conf" ]; then
        domain=$(awk '$1 == "search" || $1 == "domain" { last = $2 } END { print last }' \
            "$ROOT/etc/resolv.conf")
    fi
    domain=${domain%.}
    now
    begun=$up
    within 11 getent "$database" "clustercheck-test.${domain:-invalid}." >/dev/null 2>&1
    status=$?
    now
    fact asked "$status $((up - begun))"
    if [ $((up - begun)) -ge 90 ]; then
        most=1000 batch=1 # the rest will be as slow
        if [ -r "$ROOT/proc/net/arp" ]; then # addresses where the kernel found nobody
            fact absent "$(awk '$3 == "0x0" { print $1 }' "$ROOT/proc/net/arp")"
        fi
        waits=$(waited_for "clustercheck-wait.${domain:-invalid}.")
        [ "$waits" != quick ] || most=3000 batch=64
        fact waits "$waits"
    fi
    ;;
*) fact asked no ;;
esac

said=''
if [ -n "$own" ]; then
    said=$(within 11 getent "$database" "$own" 2>/dev/null)
    [ $? = 124 ] && said=late
fi
fact own "$said"

# Services that make up the node's own name, record or not, are left out once.
set --
plain='' resolve=''
for service in ${services-}; do
    case $service in
    resolve) resolve=1 ;;
    myhostname | mymachines | mdns*) ;;
    *) plain="$plain $service" ;;
    esac
done
case $resolve/$plain/ in 1/*dns*/) ;; 1/*) plain="$plain dns" ;; esac
plain=${plain# }
case " ${services-} " in
*" resolve "* | *" myhostname "*)
    set -- -s "hosts:${plain:-files}"
    said=$(within 11 getent "$@" "$database" "$own" 2>/dev/null)
    [ $? = 124 ] && said=late
    fact plain "${plain:-files}"
    fact own.plain "$said"
    ;;
esac

if [ "$said" != late ]; then
    said=$(printf '%s\n' "$said" | awk '
        $1 ~ /[:.]/ && $1 !~ /^127\./ && $1 != "::1" && !seen[$1]++ && count++ < 8 { print $1 }')
    if [ -n "$said" ]; then
        # shellcheck disable=SC2086 # a word each
        said=$(within 11 getent "$@" hosts $said 2>/dev/null)
        [ $? = 124 ] && said=late
        fact reverse "$said"
    fi
fi

[ -n "$all_names" ] || return 0
table | awk -v own="$own" -v mine="$local" '
    BEGIN {
        for (i = 32; i < 127; i++) code[sprintf("%c", i)] = i
        count = split(mine, words)
        for (i = 1; i <= count; i++) is_mine[words[i]] = 1
        own = tolower(own)
        sub(/\..*/, "", own)
    }
    # Of the third power, for in a mere sum two names with swapped addresses would not show.
    function cube(h, prime) { return h * h % prime * h % prime }
    function add(family, text,   a, b, i, c) {
        a = b = 7
        for (i = 1; i <= length(text); i++) {
            c = code[substr(text, i, 1)]
            a = (a * 131 + c) % 67108859
            b = (b * 137 + c) % 33554393
        }
        first[family] = (first[family] + cube(a, 67108859)) % 67108859
        second[family] = (second[family] + cube(b, 33554393)) % 33554393
        rows[family]++
    }
    $1 == "total" && NF == 2 { total = $2; next }
    $1 == "waits" && NF == 2 { if (!asked[$2]++) print; next }
    NF != 3 { next }
    {
        names++
        if ($2 != "-") add(4, $1 " " $2)
        if ($3 != "-") add(6, $1 " " $3)
        if ($2 $3 == "--") { if (missing++ < 50) print "missing", $1; next }
        short = $1
        sub(/\..*/, "", short)
        local = short == own || $2 ~ /(^|,)127\./ || $3 ~ /(^|,)::1(,|$)/
        count = split($2, words, ",")
        for (i = 1; i <= count; i++) if (words[i] in is_mine) local = 1
        if (local && shown++ < 50) print "mine", $0
    }
    END {
        for (i = 4; i <= 6; i += 2) printf "sum%d %d %d %d\n", i, rows[i], first[i], second[i]
        printf "names %d %d %d\n", names, total, missing
    }' | lines names
"""
)

FOLLOW_PROBE = (
    _COMMON
    + r"""
# a line has 40 bytes of its own
table | awk '{ printf "%s%s", $0, NR % 16 ? ";" : "\n" }' | lines table
"""
)
