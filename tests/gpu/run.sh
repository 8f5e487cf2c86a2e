#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tests/gpu/run.sh - NVSHMEM programs on a GPU over the emulated fabric, once with NVIDIA's IBRC plugin and once with ours.
#
#   tests/gpu/run.sh --where                 what this machine has; runs nothing else
#   tests/gpu/run.sh --pack DIR              on a machine with Meson: builds, and copies into DIR what --prebuilt takes
#   tests/gpu/run.sh [--prebuilt DIR] [...]  the tests
#
#   --prebuilt DIR   take braid, emulator and plugin from DIR instead of building them with Meson
#   --nvshmem DIR    NVSHMEM (DIR/include, DIR/lib); default: searched, and printed
#   --host DIR       run with the NVSHMEM host library of this folder instead (programs stay built with the other)
#   --nccl FILE      libnccl.so.2 to measure beside them; "none": none; default: searched, and said
#   --out DIR        log, table.txt, verdict.txt, logs.txt with the ends of all programs' output, stats.txt with what the emulator's
#                    engines did while rows ran (default build-gpu/out)
#   --engines LIST   "stock braid"           --ports LIST    "2 1 4"       --rows LIST   rows by name, commas between
#   --rate RATE      of a port, as in a FABRIC SPEC (default 400M: 50 MB/s)
#   --heap KIND      DEVICE (default) or SYSMEM, see NVSHMEM_HEAP_KIND
#   --budget S       for everything (default 530)            --stall S   for a program to print a line (default 45)
#   --work DIR       what is built (default build-gpu)       --no-mps    two processes on one GPU take turns, see below
#
# Two GPUs are used where there are two. On one, MPS lets the kernels of both processes run at once, where
# nvidia-cuda-mps-control is there. Without it they take turns of about 2 ms, and rates are those of the turns.
#
# Needs nvcc, NVSHMEM with its device library, no mpirun, no RDMA device. Exit status: 0 all right, 1 a wrong byte, a row that
# did not end, or two ports below 1.8 times stock's one; 2 used wrongly.
# Figures: "emulated (real time)"; rates are caps of the emulated ports, not of any hardware.
set -u
cd "$(dirname "$0")/../.." || exit 2
root=$PWD

mode=test prebuilt='' nvshmem='' host='' out='' engines='stock braid' ports_list='2 1 4' rows='' rate=400M
nccl='' heap=DEVICE budget=530 stall=45 work=$root/build-gpu mps=1 asked=" $*"
usage() { sed -n '4,30s/^# \{0,1\}//p' "$0"; }
while [ $# -gt 0 ]; do
    case $1 in
    --where) mode=where ;;
    --no-mps) mps=0 ;;
    --help | -h) usage && exit 0 ;;
    --pack | --prebuilt | --nvshmem | --host | --nccl | --out | --engines | --ports | --rows | --rate | --heap | --budget | --stall | --work)
        [ $# -ge 2 ] || { echo "run.sh: $1 needs a value" >&2 && exit 2; }
        case $1 in
        --pack) mode=pack prebuilt=$2 ;;
        --prebuilt) prebuilt=$2 ;;
        --nvshmem) nvshmem=$2 ;;
        --host) host=$2 ;;
        --nccl) nccl=$2 ;;
        --out) out=$2 ;;
        --engines) engines=$2 ;;
        --ports) ports_list=$2 ;;
        --rows) rows=$2 ;;
        --rate) rate=$2 ;;
        --heap) heap=$2 ;;
        --budget) budget=$2 ;;
        --stall) stall=$2 ;;
        --work) work=$2 ;;
        esac
        shift
        ;;
    *) echo "run.sh: seen \"$1\", expected an option (--help lists them)" >&2 && exit 2 ;;
    esac
    shift
done

say() { printf '%s\n' "$*" | tee -a "$out/log"; }
left() { echo $((budget - SECONDS)); }

# ---- what is there --------------------------------------------------------------------------------------------------------

# Folders with NVSHMEM in them, the likely ones first.
nvshmem_folders() {
    likely | while read -r d; do
        d=$(readlink -f "$d" 2>/dev/null) && [ -n "$(host_of "$d")" ] && echo "$d"
    done | awk '!seen[$0]++'
}

# Folders that may be one; --where looks through all of the file system.
likely() {
    [ -z "$nvshmem" ] || echo "$nvshmem"
    for d in "${NVSHMEM_HOME:-}" "${NVSHMEM_DIR:-}" "${NVSHMEM_PREFIX:-}"; do [ -z "$d" ] || echo "$d"; done
    python3 -c 'import sys
for p in sys.path: print(p + "/nvidia/nvshmem")' 2>/dev/null
    echo /usr/local/nvshmem
    [ "$mode" = where ] || return 0
    find / -xdev \( -path /proc -o -path /sys \) -prune -o -name 'libnvshmem_host.so*' -print 2>/dev/null |
        sed 's,/lib[^/]*/[^/]*$,,; s,/lib/x86_64-linux-gnu/.*,,'
}

# The host library below a folder.
host_of() {
    find "$1/lib" "$1/lib64" "$1" -maxdepth 1 -name 'libnvshmem_host.so*' 2>/dev/null | sort | tail -n 1
}

device_of() { find "$1/lib" "$1/lib64" -maxdepth 1 -name 'libnvshmem_device.a' 2>/dev/null | head -n 1; }

headers_of() { find "$1/include" -maxdepth 2 -name nvshmemx.h -printf '%h\n' 2>/dev/null | head -n 1; }

# The release that a host library says it is.
release_of() {
    timeout 20 python3 - "$1" 2>/dev/null <<'PY'
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
v = [ctypes.c_int(-1) for _ in range(3)]
lib.nvshmemx_vendor_get_version_info(*[ctypes.byref(x) for x in v])
print(".".join(str(x.value) for x in v))
PY
}

find_nvcc() {
    command -v nvcc || find /usr/local/cuda*/bin -name nvcc 2>/dev/null | sort | tail -n 1
}

# The NCCL library: named, PyTorch's, the system's.
find_nccl() {
    local d
    [ "$nccl" != none ] || return 0
    [ -z "$nccl" ] || { readlink -f "$nccl" && return 0; }
    python3 -c 'import sys
for p in sys.path: print(p + "/nvidia/nccl/lib")' 2>/dev/null | { cat && echo "${NCCL_HOME:-/usr/local/nccl}/lib" && ls -d /usr/local/cuda*/lib*; echo /usr/lib/x86_64-linux-gnu; } 2>/dev/null |
        while read -r d; do [ ! -e "$d/libnccl.so.2" ] || { readlink -f "$d/libnccl.so.2" && break; }; done
}

where() {
    echo "== machine"
    uname -srm
    grep -h PRETTY_NAME /etc/os-release 2>/dev/null
    ldd --version 2>/dev/null | head -n 1
    echo "cpus $(nproc), $(awk '/MemTotal/ { printf "%d GiB", $2 / 1048576 }' /proc/meminfo), /dev/shm $(df -h /dev/shm 2>/dev/null | awk 'END { print $4 }'), locked memory $(ulimit -l)"
    for p in cc gcc g++ nvcc meson ninja cmake mpirun srun python3 pkg-config readelf nvidia-smi nvidia-cuda-mps-control; do
        printf '%-24s %s\n' "$p" "$(command -v "$p" || echo none)"
    done
    echo "== GPU"
    nvidia-smi --query-gpu=index,name,compute_cap,pci.bus_id,driver_version,compute_mode --format=csv,noheader 2>/dev/null ||
        echo "nvidia-smi: none, or no GPU"
    "$(find_nvcc)" --version 2>/dev/null | tail -n 2
    for f in /sys/module/nvidia_peermem /sys/kernel/mm/memory_peers /sys/class/infiniband /dev/infiniband /dev/gdrdrv; do
        printf '%-34s %s\n' "$f" "$([ -e "$f" ] && echo there || echo none)"
    done
    ldconfig -p 2>/dev/null | grep -E 'libibverbs|libmlx5|libnvshmem|libmpi\.|libjansson|libcuda\.|libgdrapi' || echo "ldconfig: none of ibverbs, mlx5, nvshmem, mpi, jansson, cuda, gdrapi"
    echo "== NVSHMEM"
    nvshmem_folders | while read -r d; do
        echo "$d: release $(release_of "$(host_of "$d")")"
        echo "    host $(host_of "$d"), device $(device_of "$d"), headers $(headers_of "$d")"
        find "$d" -name 'nvshmem_transport_*.so*' -printf '    %f\n' 2>/dev/null | sort | tr -s '\n ' ' '
        echo
    done
    echo "NCCL: $(find_nccl)"
    echo "== environment"
    env | grep -E '^(NVSHMEM|NCCL|CUDA|LD_|BRAID|TORCH_SYMM)' | sort
}

# ---- what is built --------------------------------------------------------------------------------------------------------

PARTS='cli/braid emu/libibverbs.so.1 emu/emu_sysfs.so'

build_with_meson() {
    [ -f "$1/build.ninja" ] || meson setup "$1" >"$1.log" 2>&1 || { cat "$1.log" && return 1; }
    ninja -C "$1" --quiet || return 1
}

# Copies what the tests need of a build folder, and the libraries that another machine may lack.
pack() {
    local build=$root/build f
    build_with_meson "$build" || return 1
    mkdir -p "$prebuilt/lib" || return 1
    for f in $PARTS $(cd "$build" && find plugin src \( -type f -o -type l \) -name '*.so.[0-9]*' 2>/dev/null); do
        mkdir -p "$prebuilt/$(dirname "$f")" && cp -Lf "$build/$f" "$prebuilt/$f" || return 1
    done
    ldd "$build/cli/braid" | awk '/jansson/ { print $3 }' | while read -r f; do cp -Lf "$f" "$prebuilt/lib/"; done
    du -sh "$prebuilt"
}

# Sets braid, plugins and the program's path; builds what is not there.
prepare() {
    local cuda cap device f
    if [ -n "$prebuilt" ]; then
        prebuilt=$(readlink -f "$prebuilt") || return 1
    elif command -v meson >/dev/null && command -v ninja >/dev/null; then
        prebuilt=$work/meson
        build_with_meson "$prebuilt" || return 1
    else
        say "run.sh: no meson here; make a folder with --pack on a machine that has it, and name it with --prebuilt" && return 1
    fi
    for f in $PARTS; do
        [ -e "$prebuilt/$f" ] || { say "run.sh: no $prebuilt/$f" && return 1; }
    done
    # NCCL asks for this name first. Copied from elsewhere it may be missing, and NCCL gets the machine's own, or be a library of its own.
    if [ ! "$prebuilt/emu/libibverbs.so" -ef "$prebuilt/emu/libibverbs.so.1" ]; then
        ln -sf libibverbs.so.1 "$prebuilt/emu/libibverbs.so" || return 1
    fi
    braid=$prebuilt/cli/braid
    chmod +x "$braid"
    export LD_LIBRARY_PATH=${host:+$host:}$prebuilt/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    "$braid" --version >/dev/null || { say "run.sh: $braid does not run here" && return 1; }
    for f in $(nvshmem_folders); do
        [ -n "$(device_of "$f")" ] && [ -n "$(headers_of "$f")" ] && nvshmem=$f && break
    done
    if [ -z "$nvshmem" ] || [ -z "$(device_of "$nvshmem")" ]; then
        say "run.sh: no NVSHMEM with headers and libnvshmem_device.a found; --nvshmem DIR names one"
        return 1
    fi
    cuda=$(find_nvcc)
    [ -n "$cuda" ] || { say "run.sh: no nvcc" && return 1; }
    cap=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1 | tr -d .)
    gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
    say "NVSHMEM $nvshmem, release $(release_of "$(host_of "$nvshmem")"); nvcc $cuda; sm_${cap:-90}; $gpus GPU(s)"
    [ -z "$host" ] || say "host library at run time: $host, release $(release_of "$(host_of "$host")")"
    nccl_found=$(find_nccl)
    say "NCCL ${nccl_found:-none}"
    compile "$cuda" "${cap:-90}" || return 1
    for device in 0 $((gpus > 1 ? 1 : 0)); do "$program" --info --device "$device"; done | sort -u | tee -a "$out/log"
}

compile() {
    local cuda=$1 cap=$2 to=$work/program f pids='' host_lib
    host_lib=$(host_of "$nvshmem")
    program=$to/gpu_test nccl_program=$to/nccl_pair
    mkdir -p "$to"
    if [ -x "$program" ] && [ -z "$(find tests/gpu "$nvshmem/lib" -newer "$program" \( -name '*.cu' -o -name '*.h' -o -name '*.a' \))" ] &&
        { [ -z "$nccl_found" ] || [ -x "$nccl_program" ]; } && [ "$(cat "$to/made")" = "$nvshmem $cap" ]; then
        say "programs as they are in $to"
        return 0
    fi
    for f in tests/gpu/*.cu; do
        "$cuda" -std=c++17 "-arch=sm_$cap" -rdc=true -O2 -I "$(headers_of "$nvshmem")" -I tests/gpu \
            -c "$f" -o "$to/$(basename "$f").o" >"$to/$(basename "$f").log" 2>&1 &
        pids="$pids $!"
    done
    for f in $pids; do wait "$f" || { cat "$to"/*.cu.log | tail -n 40 && return 1; }; done
    if [ -n "$nccl_found" ]; then
        "$cuda" -std=c++17 "-arch=sm_$cap" -O2 tests/gpu/nccl/nccl_pair.cu -o "$nccl_program" -ldl || return 1
    fi
    # RUNPATH, so that LD_LIBRARY_PATH can name another host library.
    "$cuda" "-arch=sm_$cap" -rdc=true "$to"/*.cu.o -o "$program" "$(device_of "$nvshmem")" \
        -L "$(dirname "$host_lib")" "-l:$(basename "$host_lib")" -Xlinker "-rpath=$(dirname "$host_lib")" \
        -Xlinker --enable-new-dtags || return 1
    echo "$nvshmem $cap" >"$to/made"
}

# ---- runs -----------------------------------------------------------------------------------------------------------------

bytes_of_rate() {
    case $rate in
    *M) echo $((${rate%M} * 125000)) ;;
    *G) echo $((${rate%G} * 125000000)) ;;
    *) echo 50000000 ;;
    esac
}

port_list() {
    local i list=''
    for ((i = 0; i < $1; i++)); do list=$list${list:+,}mlx5_$i:1; done
    echo "$list"
}

# launch ENGINE PORTS ROWS SECONDS LOG: both processes; their output in LOG.0 and LOG.1.
launch() {
    local engine=$1 ports=$2 want=$3 limit=$4 log=$5 pe pids=() with=() rc=0
    launches=$((launches + 1))
    local name=gpu$$-$launches
    [ "$engine" = stock ] || with=("$braid" run --ports "$(port_list "$ports")" --)
    rm -f "$log.meet"
    for pe in 0 1; do
        NVSHMEM_DISABLE_P2P=1 NVSHMEM_DISABLE_NVLS=1 NVSHMEM_REMOTE_TRANSPORT=ibrc NVSHMEM_HEAP_KIND=$heap \
            NVSHMEM_SYMMETRIC_SIZE=$((512 << 20)) NVSHMEM_CUMEM_GRANULARITY=$((64 << 20)) NVSHMEM_DISABLE_GDRCOPY=1 \
            NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=${NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME:-lo} \
            NVSHMEM_DISABLE_NCCL=1 NVSHMEM_DEBUG=${NVSHMEM_DEBUG:-WARN} CUDA_MODULE_LOADING=EAGER \
            BRAID_EMU_STATS=0.5 timeout --kill-after=5 "$limit" "$braid" emu --fabric "nodes=2,ports=$ports,rate=$rate,latency=5us" \
            --name "$name" --host "h$pe" -- "${with[@]}" "$program" --pe "$pe" --device "$((gpus > 1 ? pe : 0))" \
            --meet "$log.meet" --rows "$want" --rate "$(bytes_of_rate)" --ports "$ports" >"$log.$pe" 2>&1 </dev/null &
        pids+=("$!")
    done
    watch "$log" "${pids[@]}" || rc=$?
    rm -f "$log.meet"
    return $rc
}

# watch LOG PID PID: waits for both. One that ends badly takes the other with it, and so do $stall seconds without a line of
# output from either: a row's own waits are shorter. The first bad status, 124 for a stall.
watch() {
    local log=$1 a=$2 b=$3 size='' now quiet=0 bad=0 rc p
    while kill -0 "$a" 2>/dev/null || kill -0 "$b" 2>/dev/null; do
        sleep 0.5
        now=$(cat "$log.0" "$log.1" 2>/dev/null | grep -v '^emu: ' | wc -c)
        quiet=$((quiet + 1))
        [ "$now" = "$size" ] || quiet=0
        size=$now
        for p in $a $b; do
            kill -0 "$p" 2>/dev/null && continue
            rc=0
            wait "$p" || rc=$?
            [ "$rc" = 0 ] || [ "$bad" != 0 ] || { bad=$rc && quiet=0; }
        done
        [ "$quiet" -lt $((2 * stall)) ] || [ "$bad" != 0 ] || { bad=124 && quiet=0; }
        # Its last words first.
        [ "$bad" = 0 ] || [ "$quiet" -lt 4 ] || kill "$a" "$b" 2>/dev/null
    done
    for p in $a $b; do
        rc=0
        wait "$p" 2>/dev/null || rc=$?
        [ "$rc" = 0 ] || [ "$bad" != 0 ] || bad=$rc
    done
    return $bad
}

# cell ENGINE PORTS ROW: what is known of it; set_cell adds it.
declare -A cells
note() { cells["$1 $2 $3"]=$4; }

# Reads the lines of both processes: notes each row that both ended; prints those that did not, in order.
harvest() {
    local engine=$1 ports=$2 want=$3 log=$4 row a b rest=''
    for row in ${want//,/ }; do
        a=$(grep "^row $row pe 0 " "$log.0" | tail -n 1)
        b=$(grep "^row $row pe 1 " "$log.1" | tail -n 1)
        [[ $a$b != *stale=* ]] || note "$engine" "$ports" "$row.stale" \
            "$(printf '%s\n%s\n' "$a" "$b" | sed -n 's/.* stale=\([0-9]*\).*/\1/p' | awk '{ n += $1 } END { print n }')"
        if [ -z "$a" ] || [ -z "$b" ]; then
            rest=$rest${rest:+,}$row
        elif [[ $a == *WRONG* || $b == *WRONG* ]]; then
            note "$engine" "$ports" "$row" WRONG
        else
            note "$engine" "$ports" "$row" "ok$(printf '%s\n%s\n' "$a" "$b" | sed -n 's/.*mbs=\([0-9.]*\).*/ \1/p' | sort -n | head -n 1)"
        fi
    done
    echo "$rest" >"$log.rest"
}

# keep_logs LOG STATUS: at once, so that whoever stops us later still has them.
keep_logs() {
    local log=$1 rc=$2 pe
    for pe in 0 1; do
        grep -E '^(row|emu: [0-9.]* s:)' "$log.$pe" | sed "s,^,$(basename "$log") $pe: ," >>"$out/stats.txt"
        sed -i '/^emu: [0-9.]* s: /d' "$log.$pe"
        printf '==== %s, PE %d, status %d\n' "$(basename "$log")" "$pe" "$rc"
        head -n 60 "$log.$pe"
        [ "$(wc -l <"$log.$pe")" -le 60 ] || { echo ... && tail -n +61 "$log.$pe" | tail -n 60; }
    done >>"$out/logs.txt"
}

# All rows of one engine and number of ports. A row that ends the program is noted, and those behind it run in a new one.
run_config() {
    local engine=$1 ports=$2 want=$3 log limit rc first pe
    while [ -n "$want" ]; do
        limit=$(left)
        [ "$limit" -gt 20 ] || { note "$engine" "$ports" "${want%%,*}" "no time" && break; }
        [ "$limit" -lt 150 ] || limit=150
        log=$logs/$engine-$ports-$((launches + 1))
        rc=0
        launch "$engine" "$ports" "$want" "$limit" "$log" || rc=$?
        keep_logs "$log" "$rc"
        harvest "$engine" "$ports" "$want" "$log"
        want=$(cat "$log.rest")
        rm -f "$log.rest"
        if [ -z "$want" ]; then
            [ "$rc" = 0 ] || note "$engine" "$ports" "the end" "status $rc"
            break
        fi
        first=${want%%,*}
        note "$engine" "$ports" "$first" "ended ($rc)"
        if ! grep -q '^init pe' "$log.0" "$log.1"; then
            note "$engine" "$ports" "$first" "no start"
            say "-- $engine, $ports port(s): NVSHMEM did not start (status $rc); the end of $log.0:"
            tail -n 15 "$log.0" | tee -a "$out/log"
            break
        fi
        say "-- $engine, $ports port(s), row $first: ended with status $rc; the ends of its logs:"
        tail -q -n 6 "$log.0" "$log.1" | tee -a "$out/log"
        want=${want#"$first"}
        want=${want#,}
    done
    say "$(date +%T) $engine, $ports port(s) done, $(left) s left"
    table >"$out/table.txt"
}

table() {
    local engine ports row
    echo "emulated (real time), $what: ports capped at $rate, heap $heap; MB/s where a row has a rate"
    printf '%-14s' row
    for engine in $engines; do for ports in $ports_list; do printf '%-14s' "$engine/$ports"; done; done
    echo
    for row in ${rows//,/ }; do
        printf '%-14s' "$row"
        for engine in $engines; do
            for ports in $ports_list; do printf '%-14s' "${cells["$engine $ports $row"]:--}"; done
        done
        echo
    done
}

# What the table's rates say of our engine against the other at as many ports, a row of them each; and what was stale.
ratios() {
    local ports row two one
    for row in ${rows//,/ }; do
        for ports in $ports_list; do
            two=${cells["braid $ports $row"]:-} one=${cells["stock $ports $row"]:-}
            [[ $two == ok\ * && $one == ok\ * ]] || continue
            awk -v row="$row" -v n="$ports" -v a="${two#ok }" -v b="${one#ok }" 'BEGIN {
                printf "%s, %s port(s), ours against stock: %.1f / %.1f MB/s = %.2f\n", row, n, a, b, a / b }'
        done
    done
    for row in ${rows//,/ }; do
        for two in $engines; do
            for ports in $ports_list; do
                one=${cells["$two $ports $row.stale"]:-}
                [ -z "$one" ] || echo "$row, $two, $ports port(s): $one stale words"
            done
        done
    done
}

# Two processes with NCCL alone on the same ports, which it fuses; figures beside the table, not judged. Once with GPU memory behind the
# ports, and where that does not go, with NCCL's own buffers in host memory.
run_nccl() {
    local ports=$1 gdr name log pe pids rc limit devices fused
    devices=$(port_list "$ports" | sed 's/:1//g') fused=''
    [ "$ports" = 1 ] || fused=$devices
    for gdr in SYS LOC; do
        limit=$(left)
        [ "$limit" -gt 25 ] || return
        [ "$limit" -lt 60 ] || limit=60
        launches=$((launches + 1)) name=nccl$$-$launches log=$logs/nccl-$ports-$launches rc=0 pids=()
        rm -f "$log.meet"
        for pe in 0 1; do
            env NCCL_P2P_DISABLE=1 NCCL_SHM_DISABLE=1 NCCL_NVLS_ENABLE=0 NCCL_GIN_ENABLE=0 NCCL_HOSTID=h$pe NCCL_SOCKET_IFNAME=lo NCCL_NET=IB \
                NCCL_IB_HCA="=$devices" ${fused:+NCCL_NET_FORCE_MERGE="$fused"} \
                NCCL_NET_GDR_LEVEL=$gdr NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH CUDA_MODULE_LOADING=EAGER BRAID_EMU_STATS=0.5 \
                timeout --kill-after=5 "$limit" "$braid" emu --fabric "nodes=2,ports=$ports,rate=$rate,latency=5us" \
                --name "$name" --host "h$pe" -- "$nccl_program" --pe "$pe" --device "$((gpus > 1 ? pe : 0))" --meet "$log.meet" \
                --library "$nccl_found" --rate "$(bytes_of_rate)" --ports "$ports" >"$log.$pe" 2>&1 </dev/null &
            pids+=("$!")
        done
        watch "$log" "${pids[@]}" || rc=$?
        rm -f "$log.meet" "$log.meet.part"
        grep -hE 'GDRDMA|NET/IB|vNic|merge|# NCCL' "$log.0" | cut -c1-300 | head -n 60 >>"$out/nccl.txt"
        keep_logs "$log" "$rc"
        grep -h '^row' "$log.0" "$log.1" | sed "s/^/NCCL, $ports port(s), NCCL_NET_GDR_LEVEL=$gdr: /" | tee -a "$out/nccl.txt" "$out/log"
        [ "$rc" != 0 ] || break
        say "-- NCCL, $ports port(s), NCCL_NET_GDR_LEVEL=$gdr: status $rc; the ends of its logs:"
        tail -q -n 30 "$log.0" "$log.1" | cut -c1-300 | tee -a "$out/log"
    done
    say "$(date +%T) NCCL, $ports port(s) done, $(left) s left"
}

# Stock ends the program on these; that is looked at once.
ONLY_OURS=fetch,fetch4,bits
# And may end it on this one: its table of memory has no lock between the thread that registers and the one that puts.
STOCK_MAY=growth

of_stock() {
    local row list=''
    for row in ${rows//,/ }; do
        case ,$ONLY_OURS, in *",$row,"*) ;; *) list=$list${list:+,}$row ;; esac
    done
    echo "$list"
}

# Prints what is wrong with the table, a line each.
verdict() {
    local engine ports row cell two one
    for engine in $engines; do
        for ports in $ports_list; do
            cell=${cells["$engine $ports the end"]:-}
            [ -z "$cell" ] || echo "$engine, $ports port(s), the end: $cell"
            for row in ${rows//,/ }; do
                cell=${cells["$engine $ports $row"]:-missing}
                case $engine,$cell in
                *,ok*) ;;
                stock,*) case ,$ONLY_OURS,$STOCK_MAY, in *",$row,"*) [[ $cell == WRONG ]] || continue ;; esac ;;&
                *) echo "$engine, $ports port(s), $row: $cell" ;;
                esac
            done
        done
    done
    case ,$rows, in *,rate,*) ;; *) return ;; esac
    two=${cells["braid 2 rate"]:-} one=${cells["stock 2 rate"]:-}
    if [[ $two == ok\ * && $one == ok\ * ]]; then
        awk -v a="${two#ok }" -v b="${one#ok }" 'BEGIN {
            printf "%s two ports, ours against stock: %.1f / %.1f MB/s = %.2f (emulated cap)\n",
                (a >= 1.8 * b) ? "#" : "below 1.8:", a, b, a / b }'
    fi
}

# Kernels of both processes on one GPU at once.
mps_start() {
    if [ "$mps" = 0 ] || [ "$gpus" != 1 ] || ! command -v nvidia-cuda-mps-control >/dev/null; then
        mps=0
        return
    fi
    export CUDA_MPS_PIPE_DIRECTORY=$work/mps CUDA_MPS_LOG_DIRECTORY=$work/mps
    mkdir -p "$work/mps"
    if nvidia-cuda-mps-control -d; then
        trap 'echo quit | nvidia-cuda-mps-control' EXIT
    else
        say "run.sh: MPS did not start; going on without"
        unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
        mps=0
    fi
}

[ "$mode" = where ] && where && exit 0
[ "$mode" = pack ] && { pack && exit 0 || exit 1; }

out=${out:-$work/out}
mkdir -p "$out" "$work/logs" && work=$(readlink -f "$work") && logs=$work/logs && out=$(readlink -f "$out") && : >"$out/log" && : >"$out/logs.txt" && : >"$out/stats.txt" && : >"$out/nccl.txt" || exit 2
launches=0
say "$(date -u '+%F %T') UTC, tests/gpu/run.sh$asked"
prepare || exit 1
mps_start
what="$("$program" --info | sed -n 's/^GPU 0: \([^,]*\).*/\1/p'), NVSHMEM $(release_of "$(host_of "${host:-$nvshmem}")")"
if [ "$gpus" -gt 1 ]; then what="$what, a GPU each"; elif [ "$mps" = 1 ]; then what="$what, one GPU with MPS"; else what="$what, one GPU in turns"; fi
rows=${rows:-$("$program" --list | awk '{ printf "%s%s", sep, $1; sep = "," }')}
for ports in $ports_list; do
    for engine in $engines; do
        if [ "$engine" = stock ]; then
            run_config stock "$ports" "$(of_stock)"
        else
            run_config "$engine" "$ports" "$rows"
        fi
    done
done
case " $engines " in *" stock "*)
    if [ "$(of_stock)" != "$rows" ] && [ "$(left)" -gt 40 ]; then
        run_config stock "${ports_list%% *}" fetch
    fi
    ;;
esac
if [ -n "$nccl_found" ]; then
    for ports in $ports_list; do run_nccl "$ports"; done
fi
table >"$out/table.txt"
ratios >>"$out/table.txt"
cat "$out/table.txt"
verdict >"$out/verdict.txt"
cat "$out/verdict.txt"
if grep -q -v '^#' "$out/verdict.txt"; then
    echo "tests/gpu/run.sh: $(grep -c -v '^#' "$out/verdict.txt") thing(s) wrong; logs in $out"
    exit 1
fi
echo "tests/gpu/run.sh: all rows right"
