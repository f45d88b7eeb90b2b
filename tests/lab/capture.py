# SPDX-License-Identifier: GPL-2.0-or-later
"""What went over the wire, by tshark's reading of a capture: another reader of the protocols than samedisk itself."""
import subprocess

NFS_PORT, ISCSI_PORT = "2049", "3260"
COMMIT, SYNC_CACHE16 = 21, 0x91
# A reserved source port, which NFS clients use, may belong to another protocol, and the lower port decides.
TSHARK = ["tshark", "-n", "-d", "tcp.port==512-1023,rpc", "-d", "tcp.port==" + ISCSI_PORT + ",iscsi"]
STABLE = {"0": "unstable", "1": "datasync", "2": "filesync"}

# Expert items of severity warning that runs without any fault give, and why.
EXPLAINED = {
    "Connection reset (RST)": "The NFS library ends its control connections (portmapper, MOUNT, lookups) with a reset",
    "TCP Zero Window segment": "Flow control: the receiver has not read yet what came",
    "TCP window specified by the receiver is now completely full": "Flow control: as much is on the way as may be",
    "D-SACK Sequence": "Something arrived twice: this machine stood still for so long that TCP took it for a loss",
}


def fields(path, names, keep=""):
    """A tuple of lists of strings for each packet."""
    command = TSHARK + ["-r", path, "-T", "fields", "-E", "separator=|", "-E", "aggregator=,"]
    if keep:
        command += ["-Y", keep]
    for name in names:
        command += ["-e", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit("tshark: %s" % done.stderr.strip())
    for line in done.stdout.splitlines():
        yield tuple(f.split(",") if f else [] for f in line.split("|"))


def true(flag):
    """Of a bit: tshark 4.0 says 1, later ones True."""
    return flag in ("1", "True")


class Counts:
    """Of the writes and flushes of one run over NFS and iSCSI."""

    def __init__(self, path):
        self.stable = dict.fromkeys(STABLE.values(), 0)
        self.committed = dict.fromkeys(STABLE.values(), 0)
        self.commits = self.writes = self.fua = self.cache_syncs = self.malformed = self.packets = 0
        commits, writers = {}, set()
        names = ("tcp.stream", "tcp.dstport", "nfs.procedure_v3", "nfs.write.stable", "nfs.write.committed",
                 "iscsi.scsicommand.W", "scsi_sbc.opcode", "scsi_sbc.fua", "_ws.malformed")
        for stream, to, procedure, stable, committed, writes, opcode, fua, malformed in fields(path, names):
            self.packets += 1
            self.malformed += bool(malformed)
            for word in stable:
                self.stable[STABLE[word]] += 1
                writers.add(stream[0])
            for word in committed:
                self.committed[STABLE[word]] += 1
            # Replies carry the number of what they answer; an opcode stands beside a command, and beside its data.
            if to == [NFS_PORT]:
                commits[stream[0]] = commits.get(stream[0], 0) + procedure.count(str(COMMIT))
            if to == [ISCSI_PORT]:
                self.writes += sum(map(true, writes))
                self.cache_syncs += [int(c, 0) for c in opcode].count(SYNC_CACHE16)
                self.fua += sum(map(true, fua))
        # The one that samedisk sends before a run, so that nothing is left of what was before, is not the run's.
        self.commits = sum(n for stream, n in commits.items() if stream in writers)
        self.warnings = warnings(path)


def windows(path, by_client=True, seconds=2.0):
    """By the server's port: the median and the largest of the receive windows, in bytes, that one side has advertised
    on the last connection by which it got much, in the last `seconds` of that. (Earlier ones tried out buffers.)"""
    found, names = {}, ("tcp.stream", "frame.time_relative", "tcp.srcport", "tcp.dstport", "tcp.len", "tcp.window_size")
    for stream, at, source, to, length, window in fields(path, names, "tcp"):
        from_client = to[0] in (NFS_PORT, ISCSI_PORT)
        s = found.setdefault((to[0] if from_client else source[0], stream[0]), {"bytes": 0, "windows": []})
        if from_client == by_client:
            s["windows"].append((float(at[0]), int(window[0])))
        else:
            s["bytes"] += int(length[0])
    last = {}
    for port in (NFS_PORT, ISCSI_PORT):
        mine = [s for (p, _), s in found.items() if p == port]
        most = max(s["bytes"] for s in mine)
        acks = [s for s in mine if s["bytes"] > most / 4][-1]["windows"]
        inside = sorted(window for at, window in acks if at > acks[-1][0] - seconds)
        last[port] = inside[len(inside) // 2], inside[-1]
    return last


def warnings(path):
    """Expert items of severity warning or error: {message: how often}."""
    found = {}
    done = subprocess.run(TSHARK + ["-r", path, "-q", "-z", "expert,warn"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=True)
    for line in done.stdout.splitlines():
        # Frequency, group, protocol, summary.
        words = line.split(None, 3)
        if len(words) == 4 and words[0].isdigit():
            found[words[3]] = found.get(words[3], 0) + int(words[0])
    return found
