# Makes the virtual environment that ./relaycast and ./check run in; both source this file.
#
# Law: a start finds a whole environment or makes one. The stamp in .venv names the pyproject.toml, the extras and the folder
# that the environment was made for; it is written last. One start installs, the others wait for it. An environment that this
# file did not make is added to, never removed.
#
# Needs: root (the clone), extras ("-", "dev" or "dev,soak"). Exit codes: 2 when no environment can be made, 130 after Ctrl-C.

stamp=$root/.venv/.relaycast
lock=$root/.venv.lock
fresh=
child=
log=
scratch=
midline=

wanted() {
    printf '%s %s\n' "$(cksum < "$root/pyproject.toml")" "$root"
}

# The stamp holds "<extras> <checksum> <bytes> <folder>".
ready() {
    [ -x "$root/.venv/bin/relaycast" ] && [ -r "$stamp" ] && read -r made_extras made_for < "$stamp" &&
        serves && [ "$made_for" = "$(wanted)" ]
}

# Tells whether the environment was made with the wanted extras: "dev,soak" serves "dev", and all serve a start that wants none.
serves() {
    case ",${made_extras--}," in *",$extras,"*) return 0 ;; esac
    [ "$extras" = - ]
}

# One line, or the end of the line that announced the install.
say() {
    [ -n "$midline" ] || printf 'relaycast: ' >&2
    printf '%s\n' "$1" >&2
    midline=
}

refuse() {
    say "$1"
    release
    exit 2
}

release() {
    [ -z "$fresh" ] || rm -rf "$root/.venv"
    rm -rf "$lock"
}

interrupted() {
    trap '' INT TERM HUP
    [ -z "$child" ] || { kill -TERM "$child" 2>/dev/null && wait "$child" 2>/dev/null; }
    say "install interrupted, nothing is left half made"
    release
    [ -z "$log" ] || rm -f "$log"
    [ -z "$scratch" ] || rm -rf "$scratch"
    exit 130
}

# Runs a command so that an interrupt reaches it at once: a shell that waits for a foreground command would act only after it.
step() {
    "$@" >> "$log" 2>&1 < /dev/null &
    child=$!
    wait "$child"
    code=$?
    child=
    return $code
}

# A lock names its holder at once; one that still names none after five seconds belongs to a start that was killed.
take_lock() {
    waited=0
    while ! mkdir "$lock" 2>/dev/null; do
        [ -d "$lock" ] || { say "cannot write in $root, where .venv would go: make it writable, or clone elsewhere"; exit 2; }
        holder=$(cat "$lock/pid" 2>/dev/null) || holder=
        if [ -n "$holder" ] && ! kill -0 "$holder" 2>/dev/null; then
            abandon "$holder"
        elif [ -z "$holder" ] && [ $waited -ge 5 ]; then
            abandon ""
        else
            [ $waited -gt 0 ] || say "another start is installing, waiting for it"
            waited=$((waited + 1))
            sleep 1
        fi
    done
    echo $$ > "$lock/pid"
}

# Clears what a killed start left. The lock is renamed first, so that of two starts only one clears.
abandon() {
    mv "$lock" "$lock.$$" 2>/dev/null || return 0
    if [ "$(cat "$lock.$$/pid" 2>/dev/null)" = "$1" ]; then
        [ ! -e "$lock.$$/fresh" ] || rm -rf "$root/.venv"
    fi
    rm -rf "$lock.$$"
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' > /dev/null 2>&1
}

find_python() {
    for python in ${RELAYCAST_PYTHON:-python3 python3.13 python3.12 python3.11 python3.14 python}; do
        if new_enough "$python"; then return 0; fi
    done
    [ -z "${RELAYCAST_PYTHON-}" ] || refuse "RELAYCAST_PYTHON=$RELAYCAST_PYTHON is no Python of 3.11 or newer"
    if command -v uv > /dev/null 2>&1; then
        python=$(uv python find --no-python-downloads '>=3.11' 2>/dev/null) && return 0
    fi
    found=$(python3 -V 2>/dev/null) || found="no Python"
    refuse "$found found, 3.11 or newer is needed: install one, or name it in RELAYCAST_PYTHON"
}

make_environment() {
    if [ -e "$root/.venv" ]; then
        new_enough "$root/.venv/bin/python" && return 0
        [ -e "$stamp" ] || refuse "$root/.venv holds no Python of 3.11 or newer: remove it and start again"
        rm -rf "$root/.venv"
    fi
    find_python
    fresh=yes
    : > "$lock/fresh"
    { command -v uv > /dev/null 2>&1 && step uv venv --quiet --python "$python" "$root/.venv"; } ||
        step "$python" -m venv "$root/.venv" || fail
}

pip_install() {
    "$root/.venv/bin/python" -m pip --version > /dev/null 2>&1 || step "$root/.venv/bin/python" -m ensurepip
    step "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --retries 2 "$@"
}

# Installs with the uv on the PATH, or else with one that pip brings into .venv and that asks the indexes pip is set to.
# The latter keeps no cache: each install would leave the 1.4 GB that PySpark takes to build in the user's home.
# Fails where there is no uv, and where pip is set to ask no index.
uv_install() {
    if command -v uv > /dev/null 2>&1; then
        step uv pip install --quiet --python "$root/.venv/bin/python" "$@"
        return
    fi
    [ -x "$root/.venv/bin/uv" ] || pip_install --retries 0 --only-binary uv uv || return 1
    settings=$("$root/.venv/bin/python" -m pip config list 2> /dev/null) || settings=
    [ -z "$(setting no-index)" ] || return 1
    for index in $(setting index-url); do set -- --default-index "$index" "$@"; done
    for index in $(setting extra-index-url); do set -- --index "$index" "$@"; done
    for place in $(setting find-links); do set -- --find-links "$place" "$@"; done
    step env UV_SYSTEM_CERTS=true UV_INDEX_STRATEGY=unsafe-best-match UV_CACHE_DIR="$root/.venv/uv-cache" \
        "$root/.venv/bin/uv" pip install --quiet --python "$root/.venv/bin/python" "$@"
    status=$?
    rm -rf "$root/.venv/uv-cache"
    return $status
}

# A setting of pip: those of the environment are listed before those of files. Several values stand on one line.
setting() {
    printf '%s\n' "$settings" | while IFS= read -r line; do
        case $line in
            *".$1='"*) value=${line#*=\'}; printf '%b\n' "${value%\'}"; break ;;
        esac
    done
}

# uv takes a third of pip's time; pip installs where uv cannot be had, or fails.
install() {
    if [ "$extras" = - ]; then target=$root; else target="$root[$extras]"; fi
    uv_install --editable "$target" || pip_install --editable "$target" || fail
}

# Lets Python compile what a run loads, and keep it: where PYTHONDONTWRITEBYTECODE is set, every start would compile it anew.
compile_once() {
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/relaycast-first-run.XXXXXX") || return 0
    step env -u PYTHONDONTWRITEBYTECODE "$root/.venv/bin/relaycast" demo --blocks 1 --out "$scratch"
    rm -rf "$scratch"
}

fail() {
    reason=$(grep -i 'no space left' "$log" | tail -n 1)
    [ -n "$reason" ] || reason=$(grep -i 'error' "$log" | tail -n 1)
    [ -n "$reason" ] || reason=$(tail -n 1 "$log")
    refuse "install failed: ${reason:-no message}; the whole log is $log"
}

prepare() {
    take_lock
    trap interrupted INT TERM HUP
    log=$(mktemp "${TMPDIR:-/tmp}/relaycast-install.XXXXXX") || refuse "cannot write in ${TMPDIR:-/tmp}, where the install's log would go"
    if ! ready; then
        [ ! -r "$stamp" ] || ! serves || extras=${made_extras--}
        started=$(date +%s)
        if [ "$extras" = - ]; then what=relaycast; else what="relaycast and the tools of ./check"; fi
        printf 'relaycast: installing %s into .venv, once ... ' "$what" >&2
        midline=yes
        make_environment
        rm -f "$stamp"
        install
        compile_once
        printf '%s %s\n' "$extras" "$(wanted)" > "$stamp"
        say "done in $(($(date +%s) - started)) s"
        fresh=
    fi
    rm -f "$log"
    release
    trap - INT TERM HUP
}

ready || prepare
