#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# deps.sh - installs what a make target needs and this machine lacks.
#
#   scripts/deps.sh [build|test|demo|lint|sanitize|coverage|fuzz|costs|live|peers|rxe|all]...     (default: build)
#   scripts/deps.sh --list KIND...        prints what would be checked, installs nothing
#
# Looks first (offline, quick) and calls the package manager only for what is missing; sudo only when not root.
# Environment: BRAID_NO_INSTALL=1 turns a missing package into an error instead of installing it.
set -eu

# One row a need: kinds that want it | how to see that it is there | apt name | dnf name.
#   cmd:NAME  a program     pkg:NAME  a pkg-config module
#   hdr:NAME  a header      lib:NAME  a library that gcc finds         clang-rt  clang's fuzzer runtime
#   mpirun    Open MPI's, on the path or where Fedora keeps it
#   py:NAME   a Python module that is a program                  drv:NAME  libibverbs' driver for such devices
NEEDS='
build test demo lint sanitize coverage fuzz | cmd:gcc        | gcc            | gcc
build test demo lint sanitize coverage fuzz | cmd:cc         | gcc libc6-dev  | gcc glibc-devel
build test demo lint sanitize coverage fuzz | hdr:stdio.h    | libc6-dev      | glibc-devel
build test demo lint sanitize coverage fuzz | cmd:python3    | python3        | python3
build test demo lint sanitize coverage fuzz | cmd:meson      | meson          | meson
build test demo lint sanitize coverage fuzz | cmd:ninja      | ninja-build    | ninja-build
build test demo lint sanitize coverage fuzz | cmd:pkg-config | pkg-config     | pkgconf-pkg-config
build test demo lint sanitize coverage fuzz | pkg:libibverbs | libibverbs-dev | rdma-core-devel
build test demo lint sanitize coverage fuzz | pkg:cmocka     | libcmocka-dev  | libcmocka-devel
build test demo lint sanitize coverage fuzz | pkg:jansson    | libjansson-dev | jansson-devel
build test demo lint sanitize coverage fuzz | pkg:hwloc      | libhwloc-dev   | hwloc-devel
build test demo lint sanitize coverage fuzz | pkg:libxml-2.0 | libxml2-dev    | libxml2-devel
build test demo lint sanitize coverage fuzz | pkg:pmix       | libpmix-dev    | pmix-devel
test coverage live                          | mpirun         | openmpi-bin    | openmpi
test demo coverage                          | cmd:gnuplot    | gnuplot-nox    | gnuplot
test coverage                               | cmd:g++        | g++            | gcc-c++
test coverage                               | cmd:readelf    | binutils       | binutils
sanitize                                    | lib:libasan.so | gcc            | libasan
sanitize                                    | lib:libubsan.so | gcc           | libubsan
sanitize                                    | lib:libtsan.so | gcc            | libtsan
lint fuzz                                   | cmd:clang      | clang          | clang
lint                                        | cmd:git        | git            | git-core
lint                                        | cmd:clang-format | clang-format | clang-tools-extra
lint                                        | cmd:clang-tidy | clang-tidy     | clang-tools-extra
lint                                        | cmd:cppcheck   | cppcheck       | cppcheck
lint                                        | cmd:shellcheck | shellcheck     | ShellCheck
lint                                        | cmd:mandoc     | mandoc         | mandoc
fuzz                                        | clang-rt       | libclang-rt-dev | compiler-rt
costs                                       | cmd:valgrind   | valgrind       | valgrind
test peers                                  | py:pip         | python3-pip    | python3-pip
rxe                                         | cmd:qemu-system-x86_64 | qemu-system-x86 | qemu-system-x86-core
rxe                                         | cmd:busybox    | busybox-static | busybox
rxe                                         | cmd:cpio       | cpio           | cpio
rxe                                         | cmd:modprobe   | kmod           | kmod
rxe                                         | cmd:xz         | xz-utils       | xz
rxe                                         | cmd:rdma       | iproute2       | iproute
rxe                                         | cmd:tc         | iproute2       | iproute-tc
peers                                       | cmd:ucx_perftest | ucx-utils    | ucx
peers                                       | cmd:ib_write_bw | perftest      | perftest
rxe                                         | drv:rxe        | ibverbs-providers | libibverbs
coverage                                    | cmd:gcovr      | gcovr          | gcovr
'

say() { printf 'deps: %s\n' "$*" >&2; }

# Exit status 0 when the need $1 is met.
met() {
    case $1 in
    cmd:*) command -v "${1#cmd:}" >/dev/null 2>&1 ;;
    pkg:*) command -v pkg-config >/dev/null 2>&1 && pkg-config --exists "${1#pkg:}" ;;
    hdr:*) [ -e "/usr/include/${1#hdr:}" ] ;;
    lib:*) command -v gcc >/dev/null 2>&1 && [ -e "$(gcc -print-file-name="${1#lib:}")" ] ;;
    drv:*) grep -qsx "driver ${1#drv:}" /etc/libibverbs.d/*.driver ;;
    py:*) python3 -m "${1#py:}" --version >/dev/null 2>&1 ;;
    mpirun) command -v mpirun >/dev/null 2>&1 || [ -x /usr/lib64/openmpi/bin/mpirun ] ;;
    clang-rt)
        command -v clang >/dev/null 2>&1 &&
            ls "$(clang -print-resource-dir)"/lib/*/*clang_rt.fuzzer*.a >/dev/null 2>&1
        ;;
    *) say "unknown check '$1' in the table" && exit 2 ;;
    esac
}

trim() { printf '%s' "$1" | sed 's/^ *//; s/ *$//'; }

# Prints "check|apt|dnf" for each row of the kinds asked for that is not met (or all of them with listing=1).
rows() {
    printf '%s' "$NEEDS" | while IFS='|' read -r kinds check apt dnf; do
        [ -n "$check" ] || continue
        check=$(trim "$check")
        for kind in $wanted; do
            case " $kinds " in *" $kind "*) ;; *) [ "$kind" = all ] || continue ;; esac
            if [ "$listing" = 1 ] || ! met "$check"; then
                printf '%s|%s|%s\n' "$check" "$(trim "$apt")" "$(trim "$dnf")"
            fi
            break
        done
    done
}

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

# Said before the first attempt, whose own messages are not shown.
may_install() {
    [ "$(id -u)" = 0 ] || command -v sudo >/dev/null 2>&1 || {
        say "not root and no sudo here: as root, install $1; then try again"
        exit 1
    }
}

install_apt() {
    # The names are words on purpose.
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $1 >&2
}

listing=0
wanted=
for arg in "$@"; do
    case $arg in
    --list) listing=1 ;;
    build | test | demo | lint | sanitize | coverage | fuzz | costs | live | peers | rxe | all) wanted="$wanted $arg" ;;
    *) say "unknown kind '$arg'; expected build, test, demo, lint, sanitize, coverage, fuzz, costs, live, peers, rxe or all" && exit 2 ;;
    esac
done
wanted=${wanted:-build}

missing=$(rows)
[ "$listing" = 0 ] || { printf '%s\n' "$missing" && exit 0; }
[ -n "$missing" ] || exit 0

checks=$(printf '%s\n' "$missing" | cut -d'|' -f1 | tr '\n' ' ')
say "missing for$wanted: $checks"
if [ "${BRAID_NO_INSTALL:-0}" = 1 ]; then
    say "BRAID_NO_INSTALL=1: nothing was installed"
    exit 1
fi

if command -v apt-get >/dev/null 2>&1; then
    packages=$(printf '%s\n' "$missing" | cut -d'|' -f2 | tr ' ' '\n' | sort -u | tr '\n' ' ')
    say "installing with apt: $packages"
    # The lists on this machine may do; a stale or absent list is the usual reason why they do not.
    may_install "$packages"
    install_apt "$packages" 2>/dev/null || {
        as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >&2
        install_apt "$packages"
    }
elif command -v dnf >/dev/null 2>&1; then
    packages=$(printf '%s\n' "$missing" | cut -d'|' -f3 | tr ' ' '\n' | sort -u | tr '\n' ' ')
    say "installing with dnf: $packages (cmocka, meson and ninja need the CRB repository on RHEL)"
    may_install "$packages"
    # shellcheck disable=SC2086
    as_root dnf install -y --setopt=install_weak_deps=False $packages >&2
else
    say "no apt-get and no dnf here; install by hand what provides: $checks"
    exit 1
fi

missing=$(rows)
[ -z "$missing" ] || {
    say "still missing after the installation: $(printf '%s\n' "$missing" | cut -d'|' -f1 | tr '\n' ' ')"
    exit 1
}
