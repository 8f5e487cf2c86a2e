#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh - runs every fuzz target of a build folder for a while; ends with "N passed, N failed".
#
#   scripts/fuzz.sh BUILD SECONDS
#
# A target is a program tests/fuzz/fuzz_NAME; its seeds are in tests/fuzz/corpus/NAME. What libFuzzer finds is kept in
# BUILD/fuzz-NAME (crash-*: rerun the target on that file).
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:?usage: scripts/fuzz.sh BUILD SECONDS}
seconds=${2:?usage: scripts/fuzz.sh BUILD SECONDS}

passed=0 failed=0
for target in "$build"/tests/fuzz/fuzz_*; do
    if [ ! -f "$target" ] || [ ! -x "$target" ]; then
        continue
    fi
    name=$(basename "$target")
    name=${name#fuzz_}
    work=$build/fuzz-$name
    mkdir -p "$work/corpus"
    corpus=("$work/corpus")
    [ -d "tests/fuzz/corpus/$name" ] && corpus+=("tests/fuzz/corpus/$name")
    if "$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/" "${corpus[@]}" >"$work/log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
        if [ "${runs:-0}" -gt 0 ]; then
            passed=$((passed + 1))
            echo "ok: $name, $runs inputs in $seconds s"
            continue
        fi
    fi
    failed=$((failed + 1))
    tail -n 40 "$work/log"
    echo "FAILED: $name (inputs and log in $work)"
done
if [ $((passed + failed)) = 0 ]; then
    failed=1
    echo "FAILED: no fuzz target in $build/tests/fuzz"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
