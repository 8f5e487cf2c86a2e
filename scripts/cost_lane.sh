#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cost_lane.sh BUILD - prints the instructions of the hot path of src/rail and src/verbs, counted by callgrind; each line
# with its budget, and exit 1 where one is above it. The program itself adds 7 a post and 12 an end, its provider 5 a post and 11
# a poll. Wants an optimized build without sanitizers.
set -eu
build=${1:?usage: cost_lane.sh BUILD}
counts=$(mktemp)
trap 'rm -f "$counts"' EXIT
valgrind -q --tool=callgrind --callgrind-out-file="$counts" "$build/tests/unit/cost_lane"
callgrind_annotate --inclusive=yes --threshold=100 "$counts" | awk '
    # function  what  calls  records each  budget for a record
    BEGIN {
        row["cost_post_one"] = "queue and ring one write,16000,125"
        row["cost_post_atomic"] = "queue and ring an atomic,16000,170"
        row["cost_post_list"] = "a write in a list of 16,16000,100"
        row["cost_poll_16"] = "poll a completion, of 16,16000,35"
        row["cost_poll_1"] = "poll a completion, alone,1000,100"
        row["cost_poll_none"] = "poll nothing,2000,100"
        row["cost_retire_singles"] = "end a signalled write,16000,65"
        row["cost_retire_atomics"] = "end an atomic,16000,95"
        row["cost_retire_list"] = "end a write of a list,16000,42"
    }
    {
        if (!match($0, /cost_lane\.c:cost_[a-z_0-9]+/))
            next
        name = substr($0, RSTART + 12, RLENGTH - 12)
        if (!(name in row) || name in seen)
            next
        seen[name] = 1
        count = $1
        gsub(",", "", count)
        n = split(row[name], field, ",")
        budget = field[n]
        each = count / field[n - 1]
        what = row[name]
        sub(/,[0-9]+,[0-9]+$/, "", what)
        printf "%-28s %6.1f instructions (budget %d)%s\n", what, each, budget, (each > budget ? "  ABOVE" : "")
        above += each > budget
        rows++
    }
    END { exit (above > 0 || rows != 9) }'
