# SPDX-License-Identifier: GPL-2.0-or-later
"""The two sides: command lines of samedisk and fio for one and the same load, and what they say about it."""
import contextlib
import json
import os
import shutil
import subprocess
from collections import namedtuple

RAMP = 0.2
CANNED_SIZE = 1 << 30
LIMIT = 20  # seconds over the expected that a program may take
IQN = "iqn.2026-01.com.example:canned"

Figures = namedtuple("Figures", "ios iops cpu mean")  # cpu: ns per I/O; mean: latency in us


class Failed(Exception):
    """One side could not be measured; the words stand in the table."""


def cpus():
    """(server's, client's) prefixes: a CPU for each, where there are two."""
    if (os.cpu_count() or 1) < 2 or not shutil.which("taskset"):
        return [], []
    return ["taskset", "-c", "0"], ["taskset", "-c", "1"]


def execute(command, seconds):
    """What it printed. It cannot hang: after `seconds` it and its children are ended."""
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          errors="replace", start_new_session=True) as p:
        try:
            out, err = p.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            p.communicate()
            raise Failed("hung") from None
    if p.returncode:
        last = (err.strip() or out.strip() or "exit status %d" % p.returncode).splitlines()[-1]
        raise Failed("failed: " + last.replace(os.environ["BENCH_DIR"] + "/", "")[:60])
    return out, err


# ---- where a load goes to ----

Target = namedtuple("Target", "url fio")  # fio: engine and its arguments


@contextlib.contextmanager
def canned(program, options=(), record=None):
    """A canned server for the time of the block: its port."""
    command = cpus()[0] + [os.path.join(os.environ["BENCH_TOOLS"], "lab", program), "--until-stdin-closes"]
    command += list(options) + (["--record", record] if record else [])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline().strip()
            if not line.startswith("port="):
                raise Failed("%s did not start" % program)
            yield int(line[5:])
        finally:
            server.stdin.close()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()


def nfs_url(port):
    return "nfs://127.0.0.1/canned/d?nfsport=%d&mountport=%d" % (port, port)


def iscsi_url(port):
    return "iscsi://127.0.0.1:%d/%s/0" % (port, IQN)


def _fio_nfs(url):
    base, _, query = url.partition("?")
    directory, _, name = base.rpartition("/")
    return ["nfs", "--nfs_url=%s?%s" % (directory, query), "--filename=" + name]


def _fio_iscsi(url):
    return ["libiscsi", "--filename=" + url.replace(":", "\\:")]


def _local(variable, what):
    path = os.environ.get(variable)
    if not path:
        raise Failed("not run: " + what)
    return path


@contextlib.contextmanager
def place(name):
    """The target of a case, for the time of the block."""
    if name == "canned-nfs":
        with canned("canned_nfsd", ["--file", "d=%d" % CANNED_SIZE]) as port:
            yield Target(nfs_url(port), _fio_nfs(nfs_url(port)))
    elif name == "canned-iscsi":
        with canned("canned_iscsid", ["--target", IQN, "--size", str(CANNED_SIZE)]) as port:
            yield Target(iscsi_url(port), _fio_iscsi(iscsi_url(port)))
    elif name == "ganesha":
        url = _local("BENCH_NFS", "no NFS-Ganesha")
        yield Target(url, _fio_nfs(url))
    elif name == "tgt":
        url = _local("BENCH_ISCSI", "no tgtd")
        yield Target(url, _fio_iscsi(url))
    elif name == "file":
        path = _local("BENCH_FILE", "no tmpfs")
        yield Target("file:" + path, ["libaio", "--direct=1", "--filename=" + path])
    elif name == "disk":
        path = _local("BENCH_DISK", "no room on the disk")
        yield Target("file:" + path, ["libaio", "--direct=1", "--filename=" + path])
    elif name == "block":
        path = _local("BENCH_LOOP", "no loop device")
        yield Target(path, ["libaio", "--direct=1", "--filename=" + path])
    else:
        yield Target("null:", ["null"])


def size_of(case):
    return CANNED_SIZE if case.place == "null" or case.place.startswith("canned") else 256 << 20


# ---- samedisk ----


class Samedisk:
    label = "samedisk"

    def __init__(self, jobs=None, keys=None):
        """jobs, keys: in place of the case's."""
        self.jobs, self.keys = jobs, keys

    def command(self, case, target, seconds, ramp=RAMP):
        directory = os.environ["BENCH_DIR"]
        lines = ["[bench]", "rounds=1", "prepare=none", "rw=" + case.rw, "bs=" + case.bs, "iodepth=%d" % case.depth,
                 "numjobs=%d" % (self.jobs or case.jobs), "size=%d" % size_of(case)]
        lines += ["ramp_time=%dms" % (ramp * 1000), "runtime=%dms" % (seconds * 1000)]
        with open(directory + "/bench.ini", "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        command = [os.environ["BENCH_SAMEDISK"], "run", directory + "/bench.ini", "t=" + target.url, "--quiet",
                   "--json", directory + "/bench.json"]
        for key in case.keys if self.keys is None else self.keys:
            command += ["--set", "t." + key]
        if case.writes:
            command += ["--destroy", "t=unknown-data"]
        return command

    def begun(self):
        """I/Os of the last run, with those of the ramp and those that were still out at the end."""
        return self._run()["ios_generated"]

    def _run(self):
        with open(os.environ["BENCH_DIR"] + "/bench.json", encoding="utf-8") as f:
            return json.load(f)["runs"][0]

    def read(self, _):
        run = self._run()
        if run["status"] != "ok":
            raise Failed("failed: status " + run["status"])
        total, cpu = run["total"], run["cpu"]
        return Figures(total["ios"], total["iops"], (cpu["user_ns"] + cpu["system_ns"]) / total["ios"],
                       total["lat_ns"]["mean"] / 1000)


# ---- fio ----


class Fio:
    label = "fio"

    def __init__(self, path):
        self.path = path

    def command(self, case, target, seconds=None, ios=None, ramp=RAMP):
        # One process, so that what counts instructions and system calls sees all of it.
        command = [self.path, "--name=bench", "--thread", "--ioengine=" + target.fio[0], *target.fio[1:],
                   "--rw=" + case.rw, "--bs=" + case.bs, "--iodepth=%d" % case.depth, "--size=%d" % size_of(case),
                   "--output-format=json", "--output=" + os.environ["BENCH_DIR"] + "/fio.json"]
        if not case.writes:
            command.append("--readonly")
        if ios:
            return command + ["--io_size=%d" % (ios * case.block)]
        return command + ["--time_based", "--runtime=%dms" % (seconds * 1000), "--ramp_time=%dms" % (ramp * 1000)]

    def read(self, case):
        with open(os.environ["BENCH_DIR"] + "/fio.json", encoding="utf-8") as f:
            text = f.read()
        try:
            job = json.loads(text[text.index("{"):])["jobs"][0]
        except (ValueError, KeyError, IndexError):
            raise Failed("failed: no result") from None
        if job["error"]:
            raise Failed("failed: error %d" % job["error"])
        side = job["write" if case.writes else "read"]
        if not side["total_ios"]:
            raise Failed("failed: no I/Os")
        cpu_ns = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] * 1e6
        return Figures(side["total_ios"], side["iops"], cpu_ns / side["total_ios"], side["lat_ns"]["mean"] / 1000)


def find_fio():
    """{engine: path}: the fio that FIO names, for what it has, else the one in PATH."""
    found = {}
    for path in (os.environ.get("FIO"), shutil.which("fio")):
        if not path:
            continue
        try:
            out, _ = execute([path, "--enghelp"], 10)
        except (Failed, OSError) as e:
            raise SystemExit("bench: %s: %s" % (path, e)) from None
        for word in out.split():
            found.setdefault(word, path)
    return found


def timed(client, case, target, seconds):
    prefix = cpus()[1] if case.pinned else []
    execute(prefix + client.command(case, target, seconds=seconds), seconds + RAMP + LIMIT)
    return client.read(case)
