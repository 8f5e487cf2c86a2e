# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: Apache-2.0
#
# guest.sh - what the commands that run inside a VM are written with: ports, cables, rates. $vm is a or b, $nics the number of links
# between the two. Sourced by the guest's command.

# rails HOSTS PORTS: makes a fabric, in the place of one that there is: PORTS bridges, each joining one NIC of each of HOSTS pretended
# hosts. Host H's port P is the rxe device hHpP on the NIC ehHpP, whose cable ends in the bridge railP as shHpP. Port p reaches port p of
# other hosts only.
rails() {
    local h p n ip='' rdma=''
    for n in /sys/class/net/{eh,rail}*; do
        [ ! -e "$n" ] || ip link del "${n##*/}"
    done
    echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad # else a GID is not usable for a second
    for ((p = 0; p < $2; p++)); do
        ip+="link add rail$p mtu $mtu type bridge mcast_snooping 0"$'\n'
        ip+="link set rail$p addrgenmode none up"$'\n'
        for ((h = 0; h < $1; h++)); do
            n=h${h}p$p
            ip+="link add e$n mtu $mtu type veth peer name s$n mtu $mtu"$'\n'
            ip+="link set s$n addrgenmode none master rail$p up"$'\n'"link set e$n up"$'\n'
            rdma+="link add $n type rxe netdev e$n"$'\n'
        done
    done
    ip -batch - <<<"$ip" && rdma -b - <<<"$rdma"
}

# limit RATE NIC...: makes the NIC's sending side a port of that rate. The whole VM moves some 40 to 90 MB/s, so limits have to be lower.
limit() {
    local rate=$1 n
    shift
    for n in "$@"; do tc qdisc replace dev "$n" root tbf rate "$rate" burst 64kb limit 8mb; done
}
