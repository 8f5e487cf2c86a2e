# SPDX-License-Identifier: Apache-2.0
"""braid_nvshmem - loads braid's NVSHMEM plugin into this process, so that NVSHMEM takes it for its IBRC transport.

    import braid_nvshmem        # before NVSHMEM starts: before nvshmem.core.init(), deep_ep.Buffer(...), ...

NVSHMEM opens its transport by a bare file name; an object with that name that is in the process already is taken before the
library's own search path. So this is one dlopen, of the one file that the NVSHMEM host library in use wants. Where that library
cannot be found, or two disagree, the import fails (NotLoaded, an ImportError) and says what was seen: nothing is guessed.

    python -m braid_nvshmem     # says what would be loaded, and why
"""
import ctypes
import os
import sys
import warnings

from . import find
from .find import NotLoaded

__all__ = ["NotLoaded", "load", "loaded"]
__version__ = "0.1.0"

_loaded = None


def loaded():
    """The plugin file that load() has loaded, or None."""
    return _loaded


def load(host_lib=None):
    """Loads the plugin for the NVSHMEM host library of this process and returns its path. host_lib: the file of that
    library, where it cannot be found by itself. Again: does nothing. Raises NotLoaded."""
    global _loaded
    if _loaded:
        return _loaded
    host = find.host(host_lib)
    plugin = find.plugin(host)
    others = [p for p in find.mapped("nvshmem_transport_ibrc.so") if os.path.realpath(p) != plugin]
    if others:
        warnings.warn(f"braid_nvshmem: {others[0]} is loaded already, so NVSHMEM goes on using it; import braid_nvshmem "
                      "before NVSHMEM starts", RuntimeWarning, stacklevel=2)
    try:
        ctypes.CDLL(plugin, mode=os.RTLD_NOW | os.RTLD_GLOBAL)
    except OSError as e:
        raise NotLoaded(f"seen {plugin}, which cannot be loaded: {e}") from e
    _loaded = plugin
    return plugin


# `python -m braid_nvshmem` only tells.
if sys.argv[:1] != ["-m"]:
    load()
