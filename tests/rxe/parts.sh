# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# parts.sh - what is tested inside a VM, a function a part. Each runs programs that print TAP by program(), which leaves for each NAME.out
# and NAME.rc in the shared folder, and its name in "programs"; test_rxe.py makes one TAP of them. Sourced by the guest's command, after
# guest.sh and with $build.

# program NAME SECONDS COMMAND...: runs it, by the environment that the caller has set.
program() {
    local name=$1 limit=$2
    shift 2
    echo "$name" >>programs
    timeout --kill-after=5 "$limit" "$@" >"$name.out" 2>&1
    echo $? >"$name.rc"
}

# The conformance list between two hosts' ports, with a cable that can be cut.
conformance() {
    rails 2 1
    program conformance 120 "$build/tests/emu/braid-conformance" --device h0p0 --peer h1p0 \
        --cable-out 'ip link set sh1p0 down' --cable-in 'ip link set sh1p0 up'
}
