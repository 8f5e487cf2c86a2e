# SPDX-License-Identifier: Apache-2.0
"""programs.py - programs under `braid emu`: a command on a host of an emulated fabric, perftest's and UCX's server and client."""
import os
import socket
import subprocess
import time


class Fabric:
    """An emulated fabric that commands meet in; braid: the program."""

    def __init__(self, braid, spec):
        self.braid, self.spec, self.name = braid, spec, f"programs-{os.getpid()}"

    def emu(self, *args, timeout=60):
        """`braid emu ARGS`: (status, what it said)."""
        done = subprocess.run([self.braid, "emu", *args], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=timeout)
        return done.returncode, done.stdout

    def inside(self, host, *command):
        return ["--fabric", self.spec, "--name", self.name, "--host", host, "--", *command]

    def start(self, host, *command):
        return subprocess.Popen([self.braid, "emu", *self.inside(host, *command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True)

    def left_behind(self):
        return [n for n in os.listdir("/dev/shm") if self.name in n]

    def pair(self, server_args, client_args, refused):
        """Server on h0, client on h1, which is started until the server listens: (both ended well, what they said)."""
        server = self.start("h0", *server_args)
        for _ in range(20):
            time.sleep(0.3)
            client = self.start("h1", *client_args)
            said = client.communicate(timeout=60)[0]
            if client.returncode == 0 or server.poll() is not None or refused not in said:
                break
        if client.returncode != 0:
            server.kill()
        said += server.communicate(timeout=60)[0]
        return client.returncode == 0 and server.returncode == 0, said

    def perftest(self, tool, *args):
        common = [tool, "-d", "mlx5_0", "-p", free_port(), *args]
        return self.pair(common, [*common, "localhost"], "Couldn't connect")

    def ucx(self, test, size):
        """ucx_perftest over rc_verbs, whose connections are made by UD."""
        common = ["env", "UCX_TLS=rc_verbs,ud_verbs:aux,self", "UCX_NET_DEVICES=mlx5_0:1", "UCX_LOG_LEVEL=info", "ucx_perftest", "-p",
                  free_port()]
        good, said = self.pair(common, [*common, "127.0.0.1", "-t", test, "-s", size, "-n", "100", "-w", "10"], "refused")
        return good and "rc_verbs/mlx5_0:1" in said, said


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])
