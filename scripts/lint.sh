#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# lint.sh - every static check, each one a line; ends with "N passed, N failed".
#
#   scripts/lint.sh BUILD [CHECK]...      BUILD: a Meson folder (its compile_commands.json is used)
#
# CHECK is one of: format tidy cppcheck shellcheck spdx whitespace man words (default: all).
set -u
cd "$(dirname "$0")/.." || exit 2

build=${1:?usage: scripts/lint.sh BUILD [CHECK]...}
shift
jobs=${JOBS:-$(nproc)}
tmp=$(mktemp -d) || exit 2
trap 'rm -rf "$tmp"' EXIT

# Files under version control and new ones that are not ignored; without git, what looks like sources.
files() {
    { git ls-files --cached --others --exclude-standard -- "$@" 2>/dev/null || false; } | while read -r f; do
        [ -f "$f" ] && printf '%s\n' "$f"
    done
}

# Without a list of files every check below would have nothing to find fault with.
[ -n "$(files)" ] || { echo "lint: not a git checkout: no list of files" && exit 2; }

check_format() {
    files '*.c' '*.h' | xargs -r clang-format --dry-run -Werror --style=file
}

# clang-tidy over every C file that the build compiles, several at once.
check_tidy() {
    [ -f "$build/compile_commands.json" ] || { echo "no $build/compile_commands.json" && return 1; }
    python3 - "$build" >"$tmp/units" <<'PY'
import json, os, sys
build = sys.argv[1]
seen = {os.path.realpath(os.path.join(c["directory"], c["file"]))
        for c in json.load(open(os.path.join(build, "compile_commands.json")))}
print("\n".join(sorted(f for f in seen if not f.startswith(os.path.realpath(build) + os.sep))))
PY
    [ -s "$tmp/units" ] || { echo "no C file in $build/compile_commands.json" && return 1; }
    xargs -P "$jobs" -n 1 clang-tidy -p "$build" --quiet <"$tmp/units" 2>"$tmp/tidy.err"
    rc=$?
    grep -v -e 'warnings generated' -e 'Suppressed' -e 'Use -header-filter' -e 'warnings treated' "$tmp/tidy.err"
    return $rc
}

check_cppcheck() {
    # --check-config style noise is off; what is suppressed in a file says why there.
    cppcheck --quiet -j "$jobs" --std=c11 --language=c --error-exitcode=1 --inline-suppr \
        --enable=warning,performance,portability --suppress=missingIncludeSystem --suppress=unmatchedSuppression \
        -D_GNU_SOURCE '-DElfW(type)=Elf64_##type' -I include -I emu -I src/common -I src/plan -I src/verbs -I src/rail -I src/api \
        --file-list=<(files '*.c') --template='{file}:{line}: {severity}: {id}: {message}'
}

check_shellcheck() {
    files '*.sh' .ci/run | xargs -r shellcheck --severity=style
}

# The licence line is among the first three lines of everything that is a program.
check_spdx() {
    bad=0
    while read -r f; do
        head -n 3 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0' || { echo "$f: no SPDX line" && bad=1; }
    done < <(files '*.c' '*.h' '*.py' '*.sh' '*meson.build' 'meson_options.txt' Makefile .ci/run '*.map' 'man/*')
    return $bad
}

check_whitespace() {
    bad=0
    while read -r f; do
        grep -Iq . "$f" || continue
        grep -nP '[ \t]+$' "$f" /dev/null && bad=1
        grep -lP '\r' "$f" && echo "$f: carriage return" && bad=1
        case $f in *.c | *.h | *.py | *.sh | *meson.build) grep -nP '\t' "$f" /dev/null && echo "tab in $f" && bad=1 ;; esac
        [ -z "$(tail -c 1 "$f")" ] || { echo "$f: no newline at the end" && bad=1; }
    done < <(files | grep -v -e '^tests/golden/' -e '^tests/fuzz/corpus/')
    return $bad
}

check_man() {
    files 'man/*' | grep '\.[1-8]$' >"$tmp/man" || { echo "no man page found" && return 1; }
    xargs mandoc -Tlint -Wwarning <"$tmp/man" || return 1
    # The generated part is checked by the rule tests; here a row stands for it.
    sed "s/^@OPTIONS@$/.It Cm name/" man/braid.7.in | mandoc -Tlint -Wwarning
}

# Nothing that belongs to one machine, one person or one run may be under version control. The patterns are written so
# that they do not match themselves.
WORDS='(^|[^[:alnum:]_.])/([w]ork|[r]oot|[h]ome|[U]sers)/
\.([i]nternal|[c]orp|[i]ntranet)([^[:alnum:]]|$)
([B]EGIN [A-Z ]*PRIVATE KEY|[p]assword *=)
(^|[^[:alnum:]])([F]IXME|[X]XX)([^[:alnum:]]|$)
[D]O NOT SUBMIT'

check_words() {
    printf '%s\n' "$WORDS" >"$tmp/words"
    if files | xargs grep -InE -f "$tmp/words" /dev/null; then
        return 1
    fi
}

passed=0 failed=0
for check in "${@:-format tidy cppcheck shellcheck spdx whitespace man words}"; do
    for name in $check; do
        declare -F "check_$name" >/dev/null || { echo "lint: no check '$name'" && exit 2; }
        start=$SECONDS
        if "check_$name" >"$tmp/out" 2>&1; then
            passed=$((passed + 1))
            echo "ok: $name ($((SECONDS - start)) s)"
        else
            failed=$((failed + 1))
            cat "$tmp/out"
            echo "FAILED: $name ($((SECONDS - start)) s)"
        fi
    done
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
