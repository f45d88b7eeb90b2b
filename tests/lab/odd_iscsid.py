#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""An iSCSI target that is odd or hostile on the control plane: at login, at the first command, in its list of LUNs, in a
discovery session. For clients' tests; the data path is canned_iscsid's affair.

  odd_iscsid.py PORT_FILE [KEY=VALUE ...]     listens on 127.0.0.1, and writes its port into PORT_FILE

at=login|command|read|discovery do=WHAT   what it does there, in place of an answer:
  login, command, read (the first READ): data-in r2t reject async garbage oversize wrong-itt trickle (1 to 7 bytes at a time) nop-flood
        nop-flood-asking silent close
  login: web (as a web server answers), continue (the C bit, for ever), keys (64 KiB in one go), never-done
  command: data-beyond (more than was asked for), unit-attention and busy (for ever)
  discovery: endless (never the F bit)
redirect=ADDRESS before=auth|chap    sends every login on, at once or when CHAP is through
chap=USER:PASSWORD algorithm=5|6|7|8 mutual=USER:PASSWORD
digest=header|data|both answer=reject|value|status          requires digests, and says so like that (it does not do them)
luns=HEX,HEX ...   16 digits each: the list, and the only forms in which it knows its LUNs (default 0000000000000000)
size=MIB  then=MIB  after=N          the LUN's size in the first N sessions (1), and later
refuse=STATUS      of every login that is not for discovery: 4 hexadecimal digits
on=HEX,HEX say=WHAT times=N  the first N (all) of these commands, operation code and for INQUIRY's pages the page ("5e",
                   "1283"), are answered with: busy conflict attention hardware aborted illegal field empty short
cache=yes          MODE SENSE is known, and SYNCHRONIZE CACHE
names=TEXT,TEXT    what SendTargets gives (percent-encoded)
"""
import hashlib
import os
import random
import socket
import struct
import sys
import threading
import time
from urllib.parse import unquote

HASHES = {5: hashlib.md5, 6: hashlib.sha1, 7: hashlib.sha256, 8: hashlib.sha3_256}
opts = dict(word.split('=', 1) for word in sys.argv[2:])
luns = [bytes.fromhex(x) for x in opts.get('luns', '0' * 16).split(',')]
sessions = 0
said = 0  # of on= and say=
last_challenge = b''  # of an initiator that wants us to prove ourselves


class Gone(Exception):
    pass


class Conn:
    def __init__(self, sock):
        self.sock, self.sn, self.cmd_sn, self.itt = sock, 1, 1, b'\0\0\0\1'
        self.chapped, self.challenge, self.ident, self.discovery = 'chap' not in opts, b'', 0, False
        self.session = 0

    # ---- PDUs ----
    def recv(self, n):
        data = b''
        while len(data) < n:
            more = self.sock.recv(n - len(data))
            if not more:
                raise Gone
            data += more
        return data

    def pdu(self):
        bhs = self.recv(48)
        n = struct.unpack('>I', b'\0' + bhs[5:8])[0]
        data = self.recv(n + -n % 4)[:n] if n else b''
        self.itt = bhs[16:20]
        self.cmd_sn = struct.unpack('>I', bhs[24:28])[0] + (0 if bhs[0] & 0x40 else 1)
        return bhs, data

    def header(self, opcode, flags, n, itt=None):
        h = bytearray(48)
        h[0], h[1], h[5:8], h[16:20] = opcode, flags, n.to_bytes(3, 'big'), itt or self.itt
        h[24:36] = struct.pack('>III', self.sn, self.cmd_sn, self.cmd_sn + 31)
        return h

    def send(self, h, data=b''):
        self.sock.sendall(bytes(h) + data + b'\0' * (-len(data) % 4))
        self.sn += 1

    # ---- oddities ----
    def odd(self, what, answer):
        """`answer`: header and data that would be right."""
        h, data = answer
        if what in ('data-in', 'data-beyond'):
            n = 100000 if what == 'data-beyond' else 64
            for at in range(0, n, 8192):
                d = self.header(0x25, 0, min(8192, n - at))
                d[20:24], d[40:44] = b'\xff' * 4, struct.pack('>I', at)
                self.send(d, b'd' * min(8192, n - at))
        elif what == 'r2t':
            d = self.header(0x31, 0x80, 0)
            d[20:24], d[44:48] = b'\0\0\0\5', b'\0\1\0\0'
            self.send(d)
        elif what == 'reject':
            d = self.header(0x3f, 0x80, 48, b'\xff' * 4)
            d[2] = 4
            self.send(d, bytes(48))
        elif what == 'async':
            d = self.header(0x32, 0x80, 0, b'\xff' * 4)
            d[36] = 1
            self.send(d)
        elif what == 'garbage':
            self.sock.sendall(random.Random(1).randbytes(4096))
        elif what == 'oversize':
            h[5:8] = b'\xff\xff\xfc'
            self.sock.sendall(bytes(h))
            while True:
                self.sock.sendall(bytes(65536))
        elif what == 'wrong-itt':
            h[16:20] = b'\x12\x34\x56\x78'
            self.send(h, data)
        elif what == 'trickle':
            h[5:8] = (8000).to_bytes(3, 'big')
            whole, at = bytes(h) + b'X' * 8000, 0
            while at < len(whole):
                n = random.randint(1, 7)
                self.sock.sendall(whole[at:at + n])
                at += n
                time.sleep(0.05)
        elif what.startswith('nop-flood'):
            d = self.header(0x20, 0x80, 0, b'\xff' * 4)
            d[20:24] = b'\0\0\0\7' if what.endswith('asking') else b'\xff' * 4
            threading.Thread(target=self.drain, daemon=True).start()
            flood = bytes(d) * 20000  # faster than anybody reads it
            while True:
                self.sock.sendall(flood)
        elif what == 'continue':
            h[1], h[5:8] = (h[1] & 0x0c) | 0x40, b'\0\0\6'
            self.send(h, b'X-a=b\0')
        elif what == 'keys':
            h[1], h[5:8] = h[1] & 0x0c, b'\1\0\0'
            self.send(h, b''.join(b'X-%d=%s\0' % (i, b'v' * 200) for i in range(400))[:65536])
        elif what == 'never-done':
            h[1] &= 0x0c
            self.send(h, b'')
        elif what == 'web':
            self.sock.sendall(b'HTTP/1.1 400 Bad Request\r\nConnection: keep-alive\r\n\r\n')
            self.drain()
        elif what == 'silent':
            self.drain()
        elif what in ('unit-attention', 'busy'):
            self.scsi_response(8 if what == 'busy' else 2, b'\x70\0\x06\0\0\0\0\x0a\0\0\0\0\x29\0\0\0\0\0')
            return
        if what not in ('continue', 'never-done', 'wrong-itt', 'data-in', 'r2t'):
            raise Gone

    def drain(self):
        try:
            while self.sock.recv(65536):
                pass
        except OSError:
            pass

    # ---- login ----
    def login_answer(self, bhs, flags, status, pairs, odd=None):
        data = b''.join(p.encode('latin1') + b'\0' for p in pairs)
        h = self.header(0x23, flags, len(data))
        h[8:14], h[14:16], h[36:38] = bhs[8:14], b'\0\1', struct.pack('>H', status)
        if odd:
            return self.odd(odd, (h, data))
        self.send(h, data)
        if status:
            raise Gone
        return None

    def digest(self, alg, ident, secret, challenge):
        return HASHES[alg](bytes([ident]) + secret.encode() + challenge).digest()

    def chap(self, bhs, keys):
        global last_challenge
        user, secret = opts['chap'].split(':')
        alg = int(opts.get('algorithm', '5'))
        if 'CHAP_A' in keys:
            if str(alg) not in keys['CHAP_A'].split(','):
                return self.login_answer(bhs, 0, 0x0201, [])
            self.ident, self.challenge = random.randrange(256), os.urandom(24)
            return self.login_answer(bhs, 0, 0, ['CHAP_A=%d' % alg, 'CHAP_I=%d' % self.ident,
                                                'CHAP_C=0x' + self.challenge.hex()])
        if 'CHAP_R' not in keys:
            return self.login_answer(bhs, 0, 0, ['AuthMethod=CHAP', 'TargetPortalGroupTag=1'])
        if keys.get('CHAP_N') != user or \
           bytes.fromhex(keys['CHAP_R'][2:]) != self.digest(alg, self.ident, secret, self.challenge):
            return self.login_answer(bhs, 0, 0x0201, [])
        pairs = []
        if 'CHAP_C' in keys:
            if bytes.fromhex(keys['CHAP_C'][2:]) == last_challenge:
                print('the initiator uses one challenge twice', flush=True)
            last_challenge = bytes.fromhex(keys['CHAP_C'][2:])
            name, own = opts['mutual'].split(':')
            pairs = ['CHAP_N=' + name, 'CHAP_R=0x' + self.digest(alg, int(keys['CHAP_I']), own, last_challenge).hex()]
        self.chapped = True
        if 'redirect' in opts:
            return self.login_answer(bhs, 0, 0x0101, ['TargetAddress=' + unquote(opts['redirect'])])
        return self.login_answer(bhs, 0x81, 0, pairs)

    def operational(self, bhs, keys):
        want = opts.get('digest')
        if want:
            names = [n for n, w in (('HeaderDigest', 'header'), ('DataDigest', 'data')) if want in (w, 'both')]
            how = opts.get('answer', 'reject')
            if any('CRC32C' not in keys.get(n, '') for n in names):
                return self.login_answer(bhs, 0x87 if how == 'value' else 0, 0x0200 if how != 'value' else 0,
                                         [] if how == 'status' else
                                         [n + ('=Reject' if how == 'reject' else '=CRC32C') for n in names])
        return self.login_answer(bhs, 0x87, 0, ['MaxRecvDataSegmentLength=8192', 'HeaderDigest=None', 'DataDigest=None',
                                                'InitialR2T=Yes', 'ImmediateData=Yes'])

    def login(self):
        global sessions
        while True:
            bhs, data = self.pdu()
            if bhs[0] & 0x3f != 3:
                raise Gone
            keys = dict(t.split('=', 1) for t in data.decode('latin1').split('\0') if '=' in t)
            self.discovery |= keys.get('SessionType') == 'Discovery'
            stage = bhs[1] >> 2 & 3
            if opts.get('at') == 'login':
                self.login_answer(bhs, 0x81 if stage == 0 else 0x87, 0, [], opts['do'])
            elif 'refuse' in opts and not self.discovery:
                self.login_answer(bhs, 0, int(opts['refuse'], 16), [])
            elif 'redirect' in opts and opts.get('before', 'auth') == 'auth':
                self.login_answer(bhs, 0, 0x0102, ['TargetAddress=' + unquote(opts['redirect'])])
            elif stage == 0 and not self.chapped:
                self.chap(bhs, keys)
            elif stage == 0:
                self.login_answer(bhs, 0x81 if bhs[1] & 0x80 else 0, 0, ['AuthMethod=None', 'TargetPortalGroupTag=1'])
            else:
                self.operational(bhs, keys)
                if not self.discovery:
                    sessions += 1
                self.session = sessions
                return

    # ---- commands ----
    def scsi_response(self, status=0, sense=b''):
        data = struct.pack('>H', len(sense)) + sense if sense and status == 2 else b''
        h = self.header(0x21, 0x80, len(data))
        h[3] = status
        self.send(h, data)

    def check(self, key, ascq):
        self.scsi_response(2, b'\x70\0' + bytes([key]) + b'\0\0\0\0\x0a\0\0\0\0' + struct.pack('>H', ascq) + bytes(4))

    def illegal(self, ascq):
        self.check(5, ascq)

    def says(self, cdb, alloc):
        """Is this one of on=? Then it is answered."""
        global said
        name = '%02x' % cdb[0] + ('%02x' % cdb[2] if cdb[0] == 0x12 and cdb[1] & 1 else '')
        if name not in opts.get('on', '').split(',') or said >= int(opts.get('times', '1000000000')):
            return False
        said += 1
        what = opts['say']
        senses = dict(attention=(6, 0x2900), hardware=(4, 0x4400), aborted=(11, 0x4700), illegal=(5, 0x2000),
                      field=(5, 0x2400))
        if what in senses:
            self.check(*senses[what])
        elif what in ('empty', 'short'):
            self.data(bytes(3 if what == 'short' else 0), alloc)
        else:
            self.scsi_response(dict(busy=8, conflict=0x18)[what])
        return True

    def data(self, payload, alloc):
        payload = payload[:alloc]
        h = self.header(0x25, 0x81, len(payload))
        h[20:24] = b'\xff' * 4
        self.send(h, payload)

    def command(self, bhs):
        cdb, lun, alloc = bhs[32:48], bhs[8:16], struct.unpack('>I', bhs[20:24])[0]
        if opts.get('at') == 'command' or (opts.get('at') == 'read' and cdb[0] == 0x88):
            self.odd(opts['do'], (self.header(0x21, 0x80, 0), b''))
        elif self.says(cdb, alloc):
            pass
        elif cdb[0] == 0xa0 and lun in (bytes(8), b'\xc1\1' + bytes(6)):
            self.data(struct.pack('>II', 8 * len(luns), 0) + b''.join(luns), alloc)
        elif lun not in luns:
            self.illegal(0x2500)
        elif cdb[0] == 0x00:
            self.scsi_response()
        elif cdb[0] == 0x12 and not cdb[1] & 1:
            self.data(b'\0\0\6\2\x5b\0\0\2' + b'SAMEDISK' + b'odd target      ' + b'1   ' + bytes(60), alloc)
        elif cdb[0] == 0x12 and cdb[2] == 0:
            self.data(bytes([0, 0, 0, 2, 0, 0x83]), alloc)
        elif cdb[0] == 0x12 and cdb[2] == 0x83:
            self.data(bytes([0, 0x83, 0, 12, 1, 3, 0, 8, 0x50, 1, 2, 3, 4, 5, 6, lun[1]]), alloc)
        elif cdb[0] == 0x9e and cdb[1] == 0x10:
            mib = int(opts['then'] if 'then' in opts and self.session > int(opts.get('after', '1')) else opts.get('size', '16'))
            self.data(struct.pack('>QI', mib * 2048 - 1, 512) + bytes(20), alloc)
        elif cdb[0] == 0x88:
            self.data(bytes(alloc), alloc)
        elif cdb[0] == 0x5e:
            self.data(bytes(8), alloc)
        elif cdb[0] == 0x5a and 'cache' in opts:
            self.data(b'\0\x1a' + bytes(6) + b'\x08\x12\4' + bytes(17), alloc)
        elif cdb[0] in (0x91, 0x35) and 'cache' in opts:
            self.scsi_response()
        else:
            self.illegal(0x2000)

    def text(self):
        names = [unquote(n) for n in opts.get('names', 'iqn.2026-01.org.samedisk:odd').split(',')]
        data = b''.join(b'TargetName=%s\0TargetAddress=127.0.0.1:3260,1\0' % n.encode('latin1') for n in names)
        if opts.get('at') == 'discovery':
            h = self.header(0x24, 0x40, len(data))
            h[20:24] = b'\0\0\0\1'
        else:
            h = self.header(0x24, 0x80, len(data))
            h[20:24] = b'\xff' * 4
        self.send(h, data)

    def serve(self):
        try:
            self.login()
            while True:
                bhs, _ = self.pdu()
                op = bhs[0] & 0x3f
                if op == 1:
                    self.command(bhs)
                elif op == 4:
                    self.text()
                elif op == 0 and bhs[16:20] != b'\xff' * 4:
                    h = self.header(0x20, 0x80, 0)
                    h[20:24] = b'\xff' * 4
                    self.send(h)
                elif op == 6:
                    self.send(self.header(0x26, 0x80, 0))
                    raise Gone
        except (Gone, OSError):
            pass
        finally:
            self.sock.close()


listener = socket.socket()
listener.bind(('127.0.0.1', 0))
listener.listen(64)
with open(sys.argv[1] + '.new', 'w', encoding='ascii') as out:
    out.write('%d\n' % listener.getsockname()[1])
os.rename(sys.argv[1] + '.new', sys.argv[1])
while True:
    connection, _ = listener.accept()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    threading.Thread(target=Conn(connection).serve, daemon=True).start()
