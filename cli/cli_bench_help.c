/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_bench_help.c - what `braid bench --help` prints. Called by cli_bench_args.c; man/braid-bench.1 tells the same at
 * length.
 */
#include "cli_bench.h"

static const char cli_bench_usage[] =
    "usage: braid bench put|get|atomic|signal|moe [OPTIONS]\n\n"
    "Moves bytes over an emulated RDMA fabric in virtual time and checks every one. put and get are streams from\n"
    "PE 0 to (from) others; signal puts chunks with a signal behind each and compares a chunk the moment its signal is\n"
    "seen; atomic lets many PEs change one word of PE 0; moe is DeepEP's dispatch and combine, a job for each GPU index. All\n"
    "figures are emulated (virtual time), the same on any machine.\n\n"
    "what runs\n"
    "  --fabric SPEC|FILE    the cluster (default nodes=2,gpus=1,ports=2,rate=200G,latency=2.5us; see braid-bench(1));\n"
    "                        or live: each PE is a process that a launcher has started, on the devices that it finds\n"
    "  --ports N             rails a PE opens (default: all it has); a list with --sweep\n"
    "  --size BYTES          of a put: 8, 64K, 1M; a list with --sweep (default 1M; signal 448K; atomic 8, or 4)\n"
    "  --window N            puts outstanding for each peer (default 16; signal 4); atomics for each PE\n"
    "  --count N             puts for each peer; atomics in all (default: about 2 ms worth)\n"
    "  --peers N             PEs that PE 0 sends to (default 1); PEs that do atomics (default all others)\n"
    "  --all                 every PE sends; the slowest one's figures count\n"
    "  --except PE           leaves the stream to this PE out of the figures\n"
    "  --seed N              decides every random choice (default 1)\n\n"
    "with --fabric live\n"
    "  --nap MICROSECONDS    longest sleep between two looks in vain (default: 1000 where CPUs are few, else 0)\n"
    "  --patience SECONDS    a process waits so long while nothing moves (default 300)\n\n"
    "how\n"
    "  --engine NAME         what moves the bytes: braid (default), plugin:FILE (an NVSHMEM transport plugin under the minihost;\n"
    "                        FILE@3a says as which host), model:nic-rr (a model of published behaviour)\n"
    "  --order MODE          release (default), strict or drain\n"
    "  --tail on|off         a striped put's last bytes come last (default off)\n"
    "  --signal-every N      a signal after so many puts (signal: 1; put: none)\n"
    "  --signal add|set      an atomic add of 1, or a write of the next number (default add)\n"
    "  --watch-last          the receiver also watches each put's last 8 bytes\n"
    "  --rewrite             each put follows one of other bytes to the same place\n"
    "  --one-word            signals of a PE's senders add to one word; only their sum is checked\n"
    "  --one-call            signal: a put and its signal are one call (put_signal)\n"
    "  --op OP               atomic: add, fetch-add, cswap, set, swap, and, or, xor, fetch (default add)\n"
    "  --stock               one port a PE, and GPUs that share ports (topo=pxb) take the same one, as stock transports do\n"
    "  --unreachable N       peers that do not reach the home rail (needs topo=rail)\n"
    "  --set NAME=VALUE      any option of libbraid (see braid options); may be repeated\n"
    "  --fault RULE          switches one decision off: defer, flush, own-flush, keys, overlap, home, dedup, tail, order\n\n";

static const char cli_bench_usage_more[] =
    "moe\n"
    "  --moe-phase LIST      dispatch-bf16, dispatch-fp8, combine (default: each of them)\n"
    "  --moe-tokens N        of a rank (default 4096)\n"
    "  --moe-channels N      DeepEP's channels (default 10)\n"
    "  --moe-chunk N         tokens of a put (default: DeepEP's, by the number of nodes)\n"
    "  --moe-ring N          slots of a ring, rounded up to whole chunks (default 128)\n"
    "  --moe-skew S          experts are popular as k^-S (default 0: all alike)\n"
    "  --moe-gpu SPEC        ideal (default), or COPY:FORWARD:SEEus: GB/s of a channel's kernels, and the delay to their proxy\n"
    "  --tune                all chunks from 4 to 32 tokens, as DeepEP's test does\n\n"
    "what is shown\n"
    "  --compare LIST        runs side by side: ENGINE,ORDER,PORTS;ENGINE,ORDER,PORTS;...\n"
    "  --sweep               all sizes x all ports, as a table and as curves (gnuplot)\n"
    "  --svg FILE            where --sweep draws (default braid-bench.svg)\n"
    "  --json                schema braid.bench/1 (docs/bench-json.md)\n\n"
    "exit status: 0 all bytes right, 1 wrong bytes or a run that failed, 2 used wrongly\n\n"
    "example: braid bench signal --peers 3 --fabric nodes=4,ports=2 --compare 'braid,release,2;braid,drain,2'\n"
    "example: braid bench moe --fabric nodes=4,gpus=8,topo=pxb --compare 'braid,release,2;braid,drain,2;model:nic-rr,release,2'\n"
    "example: mpirun -n 16 braid bench moe --fabric live\n"
    "example: braid bench put --compare 'plugin:nvshmem_transport_ibrc.so.3,release,2;braid,release,2'\n"
    "example: braid bench put --size 1M --ports 1,2,4 --fabric nodes=2,ports=4 --sweep --svg curves.svg\n";

void cli_bench_help(FILE *to)
{
    fputs(cli_bench_usage, to); /* a C compiler need not take longer strings */
    fputs(cli_bench_usage_more, to);
}
