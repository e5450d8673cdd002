# SPDX-License-Identifier: BSL-1.0
# shellcheck shell=bash
# Sourced by tests/run, examples/run and bench/run: what they need, installed with the system's package manager.

# Where to build: a folder of its own per kind of build, all under one ignored folder.
build_root() { echo "${HONE_BUILD_DIR:-$root/build}"; }

job_count() { echo "${HONE_JOBS:-$(nproc 2>/dev/null || echo 2)}"; }

# Runs a command quietly and shows what it said only where it failed.
quietly() {
    local log
    log=$(mktemp)
    if "$@" >"$log" 2>&1 </dev/null; then
        rm -f "$log"
    else
        local code=$?
        tail -n 60 "$log" >&2
        rm -f "$log"
        echo "failed: $*" >&2
        return $code
    fi
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; }

# need WHAT package[:command]… installs the packages that are missing; a command that exists stands for its package.
# Returns 1 where that is not possible, and says then what to install.
need() {
    local what=$1 item package command missing=()
    shift
    for item in "$@"; do
        package=${item%%:*}
        command=
        [ "$item" = "$package" ] || command=${item#*:}
        if [ -n "$command" ] && command -v "$command" >/dev/null 2>&1; then continue; fi
        if command -v dpkg-query >/dev/null 2>&1 && installed "$package"; then continue; fi
        missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    local as_root=()
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "$what: this system has no apt-get. Install what corresponds to these Debian packages: ${missing[*]}" >&2
        return 1
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null 2>&1; then
            echo "$what: neither root nor sudo. Have this run for you: apt-get install ${missing[*]}" >&2
            return 1
        fi
        as_root=(sudo)
        [ -t 0 ] || as_root=(sudo -n)  # nobody is there to type a password
    fi
    echo "$what: installing ${missing[*]}"
    local install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
        apt-get install -y -q --no-install-recommends "${missing[@]}")
    # The package lists of a fresh container are empty, those of an old one name versions that are gone.
    if "${install[@]}" >/dev/null 2>&1 </dev/null; then return 0; fi
    quietly "${as_root[@]}" apt-get update -q || true
    if quietly "${install[@]}"; then return 0; fi
    echo "$what: apt-get install ${missing[*]} failed" >&2
    return 1
}

# need_cmake WHAT package…: a compiler, CMake and the CMake packages. Where they cannot be installed CMake downloads its
# packages itself. Sets fetch, arguments for cmake.
fetch=()
need_cmake() {
    local what=$1
    shift
    need "$what" g++:c++ cmake:cmake ninja-build:ninja || true
    for tool in cmake c++; do
        command -v "$tool" >/dev/null 2>&1 && continue
        echo "$what: there is no $tool, and no way to install it" >&2
        return 1
    done
    if ! need "$what" "$@"; then
        echo "$what: CMake is asked to download what it does not find (HONE_FETCH_DEPS)" >&2
        fetch=(-DHONE_FETCH_DEPS=ON)
    fi
    [ -n "${CMAKE_GENERATOR:-}" ] || ! command -v ninja >/dev/null 2>&1 || export CMAKE_GENERATOR=Ninja
}

# forget_other FOLDER: one that another generator or checkout made is of no use to this one.
forget_other() {
    if [ -f "$1/CMakeCache.txt" ]; then
        grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$root" "$1/CMakeCache.txt" &&
            grep -qxF "CMAKE_GENERATOR:INTERNAL=${CMAKE_GENERATOR:-Unix Makefiles}" "$1/CMakeCache.txt" ||
            rm -rf "$1"
    fi
}

# configure_and_build FOLDER cmake-argument…
configure_and_build() {
    local folder=$1
    shift
    forget_other "$folder"
    quietly cmake -S "$root" -B "$folder" -DCMAKE_BUILD_TYPE=Release "${fetch[@]}" "$@"
    quietly cmake --build "$folder" -j "$(job_count)"
}
