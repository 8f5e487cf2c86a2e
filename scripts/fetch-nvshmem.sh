#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# fetch-nvshmem.sh - takes NVIDIA's own NVSHMEM plugins from the Python package index, as peers to test against and to measure beside. They go
# to a cache outside the tree and never into it; what they are is under NVIDIA's licence, see the wheel.
#
#   scripts/fetch-nvshmem.sh VERSION...           3.4.5: the transport plugin alone (1 MB of a wheel of 140 MB)
#   scripts/fetch-nvshmem.sh --host VERSION...    the host library and the bootstraps too (160 MB), for machines with a GPU
#   scripts/fetch-nvshmem.sh --all                every version of the table
#   scripts/fetch-nvshmem.sh --list               the versions; --where: the cache
#
# CACHE/VERSION/ holds the libraries; CACHE is $BRAID_NVSHMEM_CACHE, else $XDG_CACHE_HOME/braid/nvshmem, else
# ~/.cache/braid/nvshmem. Each wheel is checked against the hash below before anything of it is unpacked.
#
# Exit status: 0 everything is there; 1 a version is not to be had though the registry answers, or its hash is another; 3 the
# registry does not answer, which is said in one line and left in CACHE/unreachable for the tests to quote; 2 wrong use.
set -eu

# version   sha256 of the wheel for x86-64                                     plugin's interface
TABLE='
3.2.5   e076957d5cc72e51061a04f2d46f55df477be53e8a55d0d621be08f7aefe1d00 3
3.3.20  d00f26d3f9b2e3c3065be895e3059d6479ea5c638a3f38c9fec49b1b9dd7c1e5 3
3.4.5   042f2500f24c021db8a06c5eec2539027d57460e1c1a762055a6554f72c369bd 3
3.5.21  0e51b52bbd78f8896a7667701ac40e3e7a4f0f80703ccce75b304c18f359d73f 4
3.6.5   f86db35f1ced21a790fa255dcae7db8998bf8655a95e76c033a6574190b398e4 5
3.7.2   02b6d3482d90ea8ba214bc400362297f573257763990a98c9846ec5c786a7227 6
3.8.0   b2e5760d6158aefe7bb74348d5128bb1b46a7dd1fd4b7b1e6fe55b4b07888f70 7
'
PACKAGE=nvidia-nvshmem-cu12
CACHE=${BRAID_NVSHMEM_CACHE:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/braid/nvshmem}

say() { printf 'fetch-nvshmem: %s\n' "$*" >&2; }
versions() { printf '%s' "$TABLE" | awk 'NF { print $1 }'; }
field() { printf '%s' "$TABLE" | awk -v v="$1" -v n="$2" '$1 == v { print $n }'; }

# What of a wheel is wanted: the plugin, and with --host the library that loads it and what starts that.
unpack() {
    python3 - "$1" "$2" "$host" <<'PY'
import os, re, sys, zipfile
wheel, to, host = sys.argv[1], sys.argv[2], sys.argv[3] == "1"
wanted = r"nvidia/nvshmem/lib/(nvshmem_transport_ibrc\.so\.\d+" + (r"|libnvshmem_host\.so\.\d+|nvshmem_bootstrap_\w+\.so\.\d+)$"
                                                                   if host else r")$")
with zipfile.ZipFile(wheel) as z:
    names = [n for n in z.namelist() if re.match(wanted, n)]
    if not any("transport_ibrc" in n for n in names):
        sys.exit("no nvshmem_transport_ibrc.so.N in the wheel")
    for name in names:
        part = os.path.join(to, os.path.basename(name) + ".part")
        with open(part, "wb") as f:
            f.write(z.read(name))
        os.replace(part, part[:-5])
PY
}

have() {
    [ -e "$CACHE/$1/nvshmem_transport_ibrc.so.$(field "$1" 3)" ] || return 1
    [ "$host" = 0 ] || ls "$CACHE/$1"/libnvshmem_host.so.* >/dev/null 2>&1
}

# pip says the same of a registry that is away and of a version that is not there, but for these words.
away() { grep -qiE 'connection|timed? ?out|max retries|name resolution|proxy|http error 5|unreachable' "$1"; }

fetch() {
    v=$1
    have "$v" && return 0
    tmp=$(mktemp -d "$CACHE/.fetch.XXXXXX")
    printf '%s==%s --hash=sha256:%s\n' "$PACKAGE" "$v" "$(field "$v" 2)" >"$tmp/wanted.txt"
    if ! python3 -m pip download -q --disable-pip-version-check --no-cache-dir --no-deps --only-binary :all: \
        --platform manylinux2014_x86_64 --require-hashes --retries 2 --timeout 60 -d "$tmp" -r "$tmp/wanted.txt" \
        >"$tmp/log" 2>&1; then
        if away "$tmp/log"; then
            why="the Python package registry does not answer"
            say "$why: $v was not fetched, and tests against it will be skipped"
            printf '%s\n' "$why" >"$CACHE/unreachable"
            rm -rf "$tmp"
            exit 3
        fi
        say "$v: $(grep -i error "$tmp/log" | head -n 1)"
        rm -rf "$tmp"
        return 1
    fi
    mkdir -p "$CACHE/$v"
    if ! unpack "$tmp"/*.whl "$CACHE/$v"; then
        rm -rf "$tmp"
        return 1
    fi
    rm -rf "$tmp"
    say "$v is in $CACHE/$v"
}

host=0 wanted=
for arg in "$@"; do
    case $arg in
    --host) host=1 ;;
    --all) wanted="$wanted $(versions | tr '\n' ' ')" ;;
    --list) versions && exit 0 ;;
    --where) printf '%s\n' "$CACHE" && exit 0 ;;
    *)
        [ -n "$(field "$arg" 2)" ] || {
            say "seen '$arg', expected --host, --all, --list, --where or one of: $(versions | tr '\n' ' ')"
            exit 2
        }
        wanted="$wanted $arg"
        ;;
    esac
done
[ -n "$wanted" ] || { say "which version? one of: $(versions | tr '\n' ' ')" && exit 2; }
if ! python3 -m pip --version >/dev/null 2>&1; then
    say "python3 with pip is missing: run scripts/deps.sh peers"
    exit 1
fi

mkdir -p "$CACHE"
rm -f "$CACHE/unreachable"
status=0
for version in $wanted; do
    fetch "$version" || status=1
done
exit $status
