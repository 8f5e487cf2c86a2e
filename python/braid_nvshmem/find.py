# SPDX-License-Identifier: Apache-2.0
"""find.py - which NVSHMEM host library this process uses or will use, and which plugin file that one opens. Loads nothing
into this process. `braid run` (cli/cli_host.c) looks in the same places; tests/load holds both to the same answers."""
import os
import struct
import subprocess
import sys
import sysconfig

HOST = "libnvshmem_host.so"
STOCK = "nvshmem_transport_ibrc.so."

# NVSHMEM release -> N of the plugin file that it opens.
PLUGINS = {(3, 0): 3, (3, 1): 3, (3, 2): 3, (3, 3): 3, (3, 4): 3, (3, 5): 4, (3, 6): 5, (3, 7): 6}

# Asked in a process of its own: a host library stays out of this one until the program wants it.
ASK = """
import ctypes, sys
lib = ctypes.CDLL(sys.argv[1])
v = [ctypes.c_int(-1) for _ in range(3)]
lib.nvshmemx_vendor_get_version_info(*[ctypes.byref(x) for x in v])
print(*[x.value for x in v])
"""


class NotLoaded(ImportError):
    """The plugin cannot be loaded; the message says what was seen, what was expected and what to do."""


class Host:
    """A host library, or a plugin of NVIDIA's beside a program that has the host library linked in."""

    def __init__(self, path, source):
        self.path, self.source = os.path.realpath(path), source
        self.release, self.number = None, None
        name = os.path.basename(path)
        if name.startswith(STOCK) and name[len(STOCK):].isdigit():
            self.number = int(name[len(STOCK):])

    def __str__(self):
        said = "NVSHMEM " + ".".join(map(str, self.release)) if self.release else "a host with NVSHMEM linked in"
        return f"{self.path} (by {self.source}): {said}, opens {STOCK}{self.number}"

    def judge(self):
        """Finds out which plugin it opens."""
        if self.number is not None:
            return
        try:
            done = subprocess.run([sys.executable or "python3", "-c", ASK, self.path], stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, timeout=30, check=False)
            said = done.stdout.split()
        except (OSError, subprocess.TimeoutExpired) as e:
            raise NotLoaded(f"seen {self.path} (by {self.source}), which cannot be asked for its release: {e}") from e
        if done.returncode != 0 or len(said) != 3 or int(said[0]) <= 0:
            last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
            raise NotLoaded(f"seen {self.path} (by {self.source}), which does not say which release it is: {last}")
        self.release = tuple(map(int, said))
        self.number = PLUGINS.get(self.release[:2])
        if self.release[:2] == (3, 8):
            raise NotLoaded(f"seen {self.path} (by {self.source}): NVSHMEM 3.8 opens a plugin of interface version 7, which "
                            "braid does not have")
        if self.number is None:
            raise NotLoaded(f"seen {self.path} (by {self.source}): NVSHMEM {said[0]}.{said[1]} is none that braid knows "
                            "(3.0 to 3.7)")


def mapped(name):
    """Files in this process whose name begins so."""
    found = []
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as f:
            for line in f:
                path = line.rstrip("\n").split(maxsplit=5)[5:]
                if path and os.path.basename(path[0]).startswith(name) and path[0] not in found:
                    found.append(path[0])
    except OSError:
        pass
    return found


def in_folder(folder, prefixes=(HOST,)):
    """Files in a folder whose names begin with one of the prefixes."""
    try:
        names = sorted(os.listdir(folder or "."))
    except OSError:
        return []
    return [os.path.join(folder, n) for n in names if n.startswith(tuple(prefixes))]


def search_path(path):
    """DT_RPATH and DT_RUNPATH of a 64-bit little-endian ELF file, with $ORIGIN filled in; [] where there is none."""
    try:
        with open(path, "rb") as f:
            data = f.read()
        if data[:6] != b"\x7fELF\x02\x01":
            return []
        at, size, n = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
        heads = [struct.unpack_from("<IIQQQQQ", data, at + i * size) for i in range(n)]
        loads = [(h[3], h[2], h[5]) for h in heads if h[0] == 1]
        entries = [struct.unpack_from("<qQ", data, h[2] + i * 16) for h in heads if h[0] == 2 for i in range(h[5] // 16)]
        table = dict(entries).get(5, 0)
        table = next(offset + table - base for base, offset, length in loads if base <= table < base + length)
        texts = [data[table + v:data.index(b"\0", table + v)].decode() for tag, v in entries if tag in (15, 29)]
    except (OSError, ValueError, struct.error, StopIteration):
        return []
    own = os.path.dirname(os.path.realpath(path))
    return [p.replace("${ORIGIN}", own).replace("$ORIGIN", own) for t in texts for p in t.split(":") if p]


def extensions():
    """Python extensions that may have NVSHMEM linked in, as files; none is imported."""
    found = []
    for folder in sys.path:
        found += in_folder(folder or ".", ("deep_ep_cpp.",))
    return [f for f in found if f.endswith(".so")]


def ldconfig():
    """Host libraries of the system's own list."""
    for program in ("/sbin/ldconfig", "ldconfig"):
        try:
            said = subprocess.run([program, "-p"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=20,
                                  check=False).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        return [line.split(" => ", 1)[1] for line in said.splitlines()
                if line.strip().startswith(HOST) and " => " in line]
    return []


def candidates():
    """Host libraries, in an order: a loaded one alone where there is one."""
    found = [Host(p, "this process, which has loaded it") for p in mapped(HOST)]
    if found:
        return found
    for extension in extensions():
        for folder in search_path(extension):
            found += [Host(p, os.path.basename(extension)) for p in in_folder(folder, (HOST, STOCK))]
    for variable in ("NVSHMEM_HOME", "NVSHMEM_DIR", "NVSHMEM_PREFIX"):
        for below in ("lib", "lib64"):
            if os.environ.get(variable):
                found += [Host(p, variable) for p in in_folder(os.path.join(os.environ[variable], below))]
    for folder in filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":")):
        found += [Host(p, "LD_LIBRARY_PATH") for p in in_folder(folder)]
    for folder in sys.path:
        found += [Host(p, "Python's packages") for p in in_folder(os.path.join(folder or ".", "nvidia", "nvshmem", "lib"))]
    return found + [Host(p, "ldconfig") for p in ldconfig()]


def host(given=None):
    """The one host library of this process: the given one, that of BRAID_HOST_LIB, or what is found. Raises NotLoaded."""
    given = given or os.environ.get("BRAID_HOST_LIB")
    if given and not os.path.isfile(given):
        raise NotLoaded(f"seen host library \"{given}\", expected the file of a {HOST}")
    unique = {}
    for h in [Host(given, "you")] if given else candidates():
        unique.setdefault(h.path, h)
    found = list(unique.values())
    if not found:
        raise NotLoaded(f"seen no {HOST}, expected one: loaded, in the search path of deep_ep_cpp, NVSHMEM_HOME, NVSHMEM_DIR, "
                        "LD_LIBRARY_PATH, Python's packages (nvidia/nvshmem/lib) or ldconfig's list; set BRAID_HOST_LIB to its file")
    for h in found:
        h.judge()
    if len({h.number for h in found}) > 1:
        raise NotLoaded("seen host libraries that open different plugins, expected one kind; set BRAID_HOST_LIB to the file "
                        "of the one that is used:\n  " + "\n  ".join(map(str, found)))
    return found[0]


def plugin(of):
    """braid's plugin file for a host library. Raises NotLoaded."""
    own = os.path.dirname(os.path.realpath(__file__))
    places = [own, os.path.join(own, "..", "..", "build", "plugin", "nvshmem")]
    for prefix in dict.fromkeys((sys.prefix, sys.base_prefix, "/usr/local", "/usr")):
        for lib in dict.fromkeys((os.path.join("lib", sysconfig.get_config_var("MULTIARCH") or ""), "lib64", "lib")):
            places.append(os.path.join(prefix, lib, "braid", "nvshmem"))
    if os.environ.get("BRAID_PLUGINS"):
        places = [os.environ["BRAID_PLUGINS"]]
    for place in places:
        path = os.path.join(place, f"{STOCK}{of.number}")
        if os.path.isfile(path):
            return os.path.realpath(path)
    raise NotLoaded(f"seen no {STOCK}{of.number} of braid in {', '.join(map(os.path.normpath, places))}; build and install "
                    "braid, or set BRAID_PLUGINS to the folder")
