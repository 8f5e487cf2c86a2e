# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# parts.sh - what is tested inside a VM, a function a part. Each runs programs that print TAP by program(), which leaves VM.NAME.out and
# VM.NAME.rc in the shared folder, and the name in VM.programs; test_rxe.py makes one TAP of them. Sourced by the guest's command, after
# guest.sh, with $build (folder) and $QUICK (empty: everything).

# program NAME SECONDS COMMAND...: runs it, by the environment that the caller has set.
program() {
    local name=$1 limit=$2
    shift 2
    echo "$vm.$name" >>"$vm.programs"
    timeout --kill-after=5 "$limit" "$@" >"$vm.$name.out" 2>&1
    echo $? >"$vm.$name.rc"
}

# The conformance list between two hosts' ports, with a cable that can be cut.
conformance() {
    rails 2 1
    program conformance 120 "$build/tests/emu/braid-conformance" --device h0p0 --peer h1p0 \
        --cable-out 'ip link set sh1p0 down' --cable-in 'ip link set sh1p0 up'
    [ -z "$QUICK" ] || return
    mtu=1500 rails 2 1 # path MTU 1024
    program conformance_mtu_1024 120 "$build/tests/emu/braid-conformance" --device h0p0 --peer h1p0 \
        --only state_,write_,read_,send_,psn_,mixed_,ud_
}

# given PORTS HOSTS: the first PORTS of each of HOSTS, for programs that take their ports from BRAID_TEST_PORTS. Their queue pairs wait a
# second for an acknowledgement, as packets stand in queues here, and give up: 7 would be endless.
given() {
    local h p
    export BRAID_RETRY=6 BRAID_TIMEOUT=18 CMOCKA_MESSAGE_OUTPUT=TAP BRAID_QUICK=$QUICK BRAID_TEST_PORTS=
    [ -n "$QUICK" ] || unset BRAID_QUICK
    for ((h = 0; h < $2; h++)); do
        BRAID_TEST_PORTS+="${BRAID_TEST_PORTS:+ }h${h}p0:1"
        for ((p = 1; p < $1; p++)); do BRAID_TEST_PORTS+=",h${h}p$p:1"; done
    done
}

# libbraid's data: streams with signals, atomics, gets, a peer that dies.
data() {
    local ports
    rails 4 4
    if [ -n "$QUICK" ]; then
        given 2 2
        program data_2_ports 60 "$build/tests/real/test_real_braid"
        return
    fi
    for ports in 1 2 4; do
        given $ports 4
        program data_${ports}_ports 120 "$build/tests/real/test_real_braid"
    done
}

# Ports of a limited rate: two carry twice as much as one, four four times.
rates() {
    rails 2 4
    limit 8mbit eh{0,1}p{0,1,2,3} # what a VM on a busy machine carries four times
    if [ -n "$QUICK" ]; then given 2 2; else given 4 2; fi
    program rates 120 "$build/tests/real/test_real_braid" --rates
}

# Order: litmus tests of up to three hosts.
litmus() {
    rails 3 4
    if [ -n "$QUICK" ]; then
        given 2 3
        program litmus 60 "$build/tests/litmus/litmus" --test put_signal --mode release --ports 2 --count 10 --jobs 1 --tap
        return
    fi
    given 4 3
    local mode
    for mode in release strict; do
        program litmus_$mode 400 "$build/tests/litmus/litmus" --mode $mode --count 1 --jobs 1 --tap
    done
}

# NVSHMEM's plugin under the minihost.
plugin() {
    rails 3 4
    given 4 3
    local file=$build/plugin/nvshmem/nvshmem_transport_ibrc.so suite=$build/tests/host/host_suite
    if [ -n "$QUICK" ]; then
        program plugin 60 "$suite" --plugin "$file.6" --caller c++ --ports 2 --pes 2 --only put_signal
        return
    fi
    program plugin_3 240 "$suite" --plugin "$file.3" --caller c++ --ports 1,4 --pes 2
    program plugin_6 240 "$suite" --plugin "$file.6" --caller c++ --ports 2 --pes 3
}

# Both of two VMs, each a host whose ports are links to the other: libbraid's data. They meet through files in the folder that they share.
two() {
    given 1 2 # its options; the ports have other names here
    export BRAID_TEST_PORTS='rxe0:1,rxe1:1 rxe0:1,rxe1:1' BRAID_TEST_MEET=$PWD/meet BRAID_TEST_RANK=0
    [ "$vm" = a ] || BRAID_TEST_RANK=1
    mkdir -p meet
    program two_data 240 "$build/tests/real/test_real_braid"
}
