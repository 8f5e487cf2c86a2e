# SPDX-License-Identifier: Apache-2.0
"""python -m braid_nvshmem [HOST_LIB] - says which plugin `import braid_nvshmem` would load here, and why. Loads nothing.
Exit status: 0 one was found, 1 none was, 2 used wrongly."""
import sys

from . import find


def main(arguments):
    if len(arguments) > 1 or arguments[:1] in (["-h"], ["--help"]):
        print(__doc__)
        return 0 if len(arguments) == 1 else 2
    try:
        host = find.host(arguments[0] if arguments else None)
        print(f"host library  {host}")
        print(f"plugin        {find.plugin(host)}")
    except find.NotLoaded as e:
        print(f"braid_nvshmem: {e}", file=sys.stderr)
        return 1
    return 0


sys.exit(main(sys.argv[1:]))
