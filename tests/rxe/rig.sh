#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# rig.sh - boots one or two small virtual machines (QEMU's software emulation, no KVM needed) whose Debian kernel gives real verbs
# devices through rdma_rxe (soft-RoCE). Called by test_rxe.py; next: init, the guest's first process.
#
#   rig.sh build                    fetches the kernel and makes the initramfs, where they are not there yet
#   rig.sh run DIR NICS CMD [CMD]   boots one VM for each CMD, named a and b; NICS point-to-point links join them. Each runs its CMD with
#                                   bash in DIR, which is shared for reading and writing, while the machine's / is its read-only root.
#                                   DIR/a.log and b.log get what it prints, a.rc and b.rc its status, a.console the kernel's words.
#                                   Exit status 0 if every CMD's was.
#
# Environment: RIG (what is kept between runs; default ~/.cache/braid/rxe), CPUS and MEM (MiB) a VM, LIMIT (seconds), MTU.
# Exit status 77: something is missing here, and one line says what.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
RIG=${RIG:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/braid/rxe}
CPUS=${CPUS:-2} MEM=${MEM:-768} LIMIT=${LIMIT:-300} MTU=${MTU:-9000}

# Loaded by the guest in this order, each after what it depends on. crc32_generic: rdma_rxe asks for it by name, and a guest has no modprobe.
modules='virtio_pci 9pnet_virtio 9p virtio_net veth bridge crc32_generic rdma_rxe ib_uverbs rdma_ucm sch_tbf sch_netem'

missing() {
    printf 'rig: %s\n' "$*" >&2
    exit 77
}

need() {
    local program
    for program in "$@"; do
        command -v "$program" >/dev/null || missing "no $program here; scripts/deps.sh rxe installs what is needed"
    done
}

# The kernel's package, unpacked and not installed; prints the kernel's version.
kernel() {
    local image version
    image=$(apt-cache depends linux-image-amd64 2>/dev/null | awk '/Depends: linux-image/ { print $2; exit }')
    [ -n "$image" ] || missing "apt knows no linux-image-amd64; its lists may be missing (apt-get update)"
    version=${image#linux-image-}
    if [ ! -e "$RIG/kernel/$version/done" ]; then
        rm -rf "$RIG/kernel"
        mkdir -p "$RIG/kernel/$version"
        (cd "$RIG/kernel" && apt-get download -qq "$image" >&2) || missing "apt-get download $image failed"
        dpkg-deb -x "$RIG/kernel/$image"_*.deb "$RIG/kernel/$version"
        rm -f "$RIG/kernel/$image"_*.deb
        depmod -b "$RIG/kernel/$version" "$version"
        touch "$RIG/kernel/$version/done"
    fi
    printf '%s' "$version"
}

build() {
    local tree version packed at m wanted
    need qemu-system-x86_64 busybox cpio modprobe depmod xz ip rdma tc apt-get dpkg-deb
    mkdir -p "$RIG"
    exec 9>"$RIG/lock"
    flock 9
    version=$(kernel)
    wanted=$(printf '%s\n' "$version" "$modules" | cat - "$here/init" | sha256sum)
    [ "$(cat "$RIG/built" 2>/dev/null)" != "$wanted" ] || return 0
    tree=$RIG/kernel/$version
    # Unpacked here, once, the kernel boots 4 s sooner than when it unpacks itself in the emulation: the xz stream in vmlinuz is an ELF
    # file that QEMU loads as it is.
    packed=$tree/boot/vmlinuz-$version
    at=$(LC_ALL=C grep -aboP '\xfd7zXZ\x00' "$packed" | head -1 | cut -d: -f1)
    xz -dc --single-stream < <(tail -c +$((at + 1)) "$packed") >"$RIG/vmlinux"
    rm -rf "$RIG/initrd.d"
    mkdir -p "$RIG/initrd.d/bin"
    for m in $modules; do
        modprobe -d "$tree" -S "$version" --show-depends "$m" | awk '$1 == "insmod" { print $2 }'
    done | awk '!seen[$0]++' | while read -r m; do
        cp "$m" "$RIG/initrd.d/"
        echo "/${m##*/}" >>"$RIG/initrd.d/modules"
    done
    cp "$(command -v busybox)" "$RIG/initrd.d/bin/"
    install -m 755 "$here/init" "$RIG/initrd.d/init"
    (cd "$RIG/initrd.d" && find . | cpio -o -H newc --quiet | gzip -1) >"$RIG/initrd"
    printf '%s\n' "$wanted" >"$RIG/built"
}

# One VM in the foreground: vm NAME PEER DIR NICS
vm() {
    local name=$1 peer=$2 dir=$3 nics=$4 i nic=()
    for ((i = 0; i < nics; i++)); do
        nic+=(-netdev "dgram,id=n$i,local.type=unix,local.path=$dir/$name$i.sock,remote.type=unix,remote.path=$dir/$peer$i.sock")
        nic+=(-device "virtio-net-pci,netdev=n$i,romfile=,mac=52:54:00:00:0${name}:0$i")
    done
    # erms=off: the kernel would copy by "rep movsb", which the emulation does a byte at a time.
    exec timeout "$LIMIT" qemu-system-x86_64 -accel tcg,thread=multi -cpu max,erms=off \
        -smp "$CPUS" -m "$MEM" -nodefaults -no-reboot -display none \
        -serial "file:$dir/$name.console" \
        -chardev "socket,id=monitor,path=$dir/$name.sock,server=on,wait=off" -mon monitor \
        -chardev "socket,id=wire,path=$dir/$name.sock" -serial chardev:wire -kernel "$RIG/vmlinux" -initrd "$RIG/initrd" \
        -append "console=ttyS0 loglevel=5 panic=-1 mitigations=off nokaslr vm=$name nics=$nics mtu=$MTU" \
        -fsdev local,id=root,path=/,security_model=none,readonly=on,multidevs=remap \
        -device virtio-9p-pci,fsdev=root,mount_tag=root \
        -fsdev "local,id=shared,path=$dir,security_model=none" \
        -device virtio-9p-pci,fsdev=shared,mount_tag=shared \
        ${nic[@]+"${nic[@]}"}
}

run() {
    local dir nics=$2 names=(a b) peers=(b a) pids=() bad=0 i
    [ -e "$RIG/built" ] || missing "nothing in $RIG: rig.sh build comes first"
    mkdir -p "$1"
    dir=$(cd "$1" && pwd)
    shift 2
    rm -f "$dir"/*.sock "$dir"/[ab].{rc,log,console,cmd} "$dir"/[ab].at.*
    for ((i = 0; i < $#; i++)); do
        printf '%s\n' "${@:i+1:1}" >"$dir/${names[i]}.cmd"
        (vm "${names[i]}" "${peers[i]}" "$dir" "$nics") >"$dir/${names[i]}.qemu" 2>&1 &
        pids+=($!)
    done
    # shellcheck disable=SC2064
    trap "kill ${pids[*]} 2>/dev/null || true" EXIT
    trap 'exit 143' TERM INT
    for ((i = 0; i < ${#pids[@]}; i++)); do
        wait "${pids[i]}" || true
        [ "$(cat "$dir/${names[i]}.rc" 2>/dev/null)" = 0 ] || bad=1
    done
    trap - EXIT
    return $bad
}

case ${1:-} in
build | run) "$@" ;;
*) echo "rig: seen '${1:-}', expected build or run; see the head of this file" >&2 && exit 2 ;;
esac
