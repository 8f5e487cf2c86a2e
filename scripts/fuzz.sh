#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# fuzz.sh - runs every fuzz target of a build folder for a while, JOBS at once; ends with "N passed, N failed".
#
#   scripts/fuzz.sh BUILD SECONDS
#
# A target is a program tests/fuzz/fuzz_NAME; its seeds are in tests/fuzz/corpus/NAME. What libFuzzer finds is kept in
# BUILD/fuzz-NAME (crash-*: rerun the target on that file).
set -u
cd "$(dirname "$0")/.." || exit 2
build=${1:?usage: scripts/fuzz.sh BUILD SECONDS}
seconds=${2:?usage: scripts/fuzz.sh BUILD SECONDS}
export build seconds

# Runs one target; the last line of what it prints is "ok: ..." or "FAILED: ...".
fuzz_one() {
    local name=${1##*/fuzz_} work corpus runs
    work=$build/fuzz-$name
    mkdir -p "$work/corpus"
    corpus=("$work/corpus")
    [ -d "tests/fuzz/corpus/$name" ] && corpus+=("tests/fuzz/corpus/$name")
    if "$1" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
        -artifact_prefix="$work/" "${corpus[@]}" >"$work/log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work/log")
        if [ "${runs:-0}" -gt 0 ]; then
            echo "ok: $name, $runs inputs in $seconds s"
            return
        fi
    fi
    # One write, so that targets that run at once do not mix their lines.
    printf '%s\nFAILED: %s (inputs and log in %s)\n' "$(tail -n 40 "$work/log")" "$name" "$work"
}
export -f fuzz_one

targets=()
for target in "$build"/tests/fuzz/fuzz_*; do
    if [ -f "$target" ] && [ -x "$target" ]; then
        targets+=("$target")
    fi
done
results=$build/fuzz-results
printf '%s\n' "${targets[@]}" | xargs -r -P "${JOBS:-2}" -I '{}' bash -c 'fuzz_one {}' | tee "$results"

passed=$(grep -c '^ok: ' "$results")
failed=$((${#targets[@]} - passed))
if [ ${#targets[@]} = 0 ]; then
    failed=1
    echo "FAILED: no fuzz target in $build/tests/fuzz"
fi
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
