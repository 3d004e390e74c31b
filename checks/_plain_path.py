"""A function of sh for probes that read paths as the kernel writes them."""

PLAINLY = r"""
# $path is the text $1 without the kernel's octal escapes; a backslash is one of them itself.
plainly() {
    path=$1
    case $1 in
    *\\*)
        # shellcheck disable=SC2059 # the text is the format
        path=$(printf "$(printf '%s' "$1" | sed 's/%/%%/g')" && echo .)
        path=${path%.}
        ;;
    esac
}
"""
