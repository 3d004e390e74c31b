#!/bin/sh
# Makes .venv, or brings it up to pyproject.toml. PYTHON names the Python (default: python3).
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

stop() {
    echo "$1" >&2
    exit 1
}

command -v "$python" >/dev/null ||
    stop "$python is absent: install Python 3.10 or newer, or name one: make PYTHON=python3.12 …"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    stop "Python 3.10 or newer is needed, $python is $version: name one: make PYTHON=python3.12 …"

if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    package=python$version-venv
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "$python has no venv module: install it, as with: sudo apt install $package"
    fi
    echo "installing $package, which $python needs"
    log=$(mktemp)
    { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y "$package"; } \
        >"$log" 2>&1 || { cat "$log" >&2 && stop "$package could not be installed"; }
    rm "$log"
fi

# Of another Python, or moved with the folder: of no more use.
if [ "$(.venv/bin/python -c 'import sys; print("%d.%d" % sys.version_info[:2], sys.prefix)' \
    2>/dev/null)" != "$version $PWD/.venv" ]; then
    rm -rf .venv
    "$python" -m venv .venv
fi
echo 'setting up .venv'
.venv/bin/python -m pip install --disable-pip-version-check -e '.[dev]' >.venv/pip.log 2>&1 || {
    tail -n 20 .venv/pip.log >&2
    stop 'pip could not install clustercheck and its development tools into .venv'
}
touch .venv/ready
