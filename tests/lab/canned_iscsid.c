/* SPDX-License-Identifier: GPL-2.0-or-later */
/* canned_iscsid: an iSCSI target without disks. It answers as fast as one thread can, so that a client can be measured
 * against it; it holds replies back for a known time; it can answer wrongly on purpose; and it is strict: what the
 * client does against the protocol ends the connection and is counted.
 *
 * Content: the 8 bytes at offset o (a multiple of 8) of any LUN are, little endian, ((o mod PERIOD) + 1) * MIX. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define PROGRAM   "canned_iscsid"
#define BHS       48u
#define TEXT_MAX  16384u
#define R2T_COUNT 28                  /* in a completed write command, see complete_write() */
#define HEAD      (BHS + 4u + 12288u) /* bytes of a PDU that hold all but a payload */
#define NO_TAG    0xffffffffu
#define PORT_GROUP 7
#define CHAP_MAX  1536u /* bytes of id, secret and challenge */
#define BURSTS    16u   /* R2Ts of one command that may be outstanding */

enum opcode { /* RFC 7143, 11.2.1.2 */
              NOP_OUT = 0,
              SCSI_COMMAND,
              TASK_MGMT,
              LOGIN,
              TEXT,
              DATA_OUT,
              LOGOUT,
              NOP_IN = 0x20,
              SCSI_RESPONSE,
              TASK_MGMT_RESPONSE,
              LOGIN_RESPONSE,
              TEXT_RESPONSE,
              DATA_IN,
              LOGOUT_RESPONSE,
              R2T = 0x31,
              ASYNC,
              REJECT = 0x3f
};
enum { FINAL = 0x80, IMMEDIATE = 0x40, READ_BIT = 0x40, WRITE_BIT = 0x20, CONTINUE = 0x40, OVER = 4, UNDER = 2 };
enum { GOOD = 0, CHECK = 2, BUSY = 8, TASK_SET_FULL = 0x28 }; /* SCSI status */

/* What a hostile reply does wrong, or in an unusual way; `ops` are the commands it makes sense for. */
enum { OP_READ = 1, OP_WRITE = 2, OP_DATA = OP_READ | OP_WRITE, OP_SOLICITED = 4 };
enum mode {
    SEPARATE_STATUS,
    SPLIT_DATA_IN,
    CHECK_CONDITION,
    UNIT_ATTENTION,
    BUSY_STATUS,
    FULL_STATUS,
    UNDERFLOW,
    NOP_IN_FIRST,
    ASYNC_LOGOUT,
    REJECT_COMMAND,
    WRONG_ITT,
    WRONG_DATASN,
    DUPLICATE,
    NO_REPLY,
    GARBAGE_LENGTH,
    CLOSE_MID,
    SEGMENTS,
    ODD_R2T,
    REVERSED_R2T,
    NONE
};
static const struct {
    const char *name;
    uint32_t ops;
} modes[] = {
    [SEPARATE_STATUS] = {"separate-status", OP_READ},
    [SPLIT_DATA_IN] = {"split-data-in", OP_READ},
    [CHECK_CONDITION] = {"check-condition", OP_DATA},
    [UNIT_ATTENTION] = {"unit-attention", OP_DATA},
    [BUSY_STATUS] = {"busy", OP_DATA},
    [FULL_STATUS] = {"task-set-full", OP_DATA},
    [UNDERFLOW] = {"underflow", OP_DATA},
    [NOP_IN_FIRST] = {"nop-in", OP_DATA},
    [ASYNC_LOGOUT] = {"async-logout", OP_DATA},
    [REJECT_COMMAND] = {"reject", OP_DATA},
    [WRONG_ITT] = {"wrong-itt", OP_DATA},
    [WRONG_DATASN] = {"wrong-datasn", OP_READ},
    [DUPLICATE] = {"duplicate", OP_DATA},
    [NO_REPLY] = {"no-reply", OP_DATA},
    [GARBAGE_LENGTH] = {"garbage-length", OP_DATA},
    [CLOSE_MID] = {"close-mid", OP_DATA},
    [SEGMENTS] = {"one-byte", OP_DATA},
    [ODD_R2T] = {"r2t-odd", OP_SOLICITED},
    [REVERSED_R2T] = {"r2t-reversed", OP_SOLICITED},
    [NONE] = {NULL, 0},
};

struct config {
    uint64_t size;
    uint32_t block, luns, window;
    uint32_t first_burst, max_burst, max_recv, max_r2t;
    bool immediate, initial_r2t, header_digest, write_cache;
    const char *target, *serial;
    char *chap_user, *chap_pass, *mutual_user, *mutual_pass;
    uint16_t next_tsih;
    uint32_t next_ttt, crc[256];
    int alua; /* of the only target port group; below 0: there are no groups */
    uint64_t nops, nops_answered, r2ts, ahead;
    uint64_t immediate_bytes, unsolicited_bytes, data_outs, data_ins, digests;
    uint64_t longest, r2t_peak; /* data segment of a write; R2Ts of one command at once */
    uint32_t sessions;          /* so many at once, 0: any number */
    uint64_t refused;           /* that were one too many */
    enum { SYNC_BOTH, SYNC_10, SYNC_NONE } sync; /* SYNCHRONIZE CACHE commands that it knows */
    uint64_t syncs;
    struct put_off { unsigned status; uint32_t sense; uint64_t left, from; } put_off; /* WRITEs, after so many */
    /* After so many WRITEs the LUNs are other objects. The next commands then fail as if there was no LUN; harmed: the
     * WRITEs that go into the other object all the same. */
    uint64_t writes, exchange, vanish, harmed;
    bool exchanged;
};

struct burst { /* Data-Out PDUs that are expected: after an R2T, or unsolicited */
    bool open;
    uint32_t ttt, at, len, got, data_sn;
};

struct task { /* a write whose data is not complete */
    struct task *next;
    unsigned char bhs[BHS];
    uint32_t expected, received, asked, r2t_sn;
    uint32_t unsolicited; /* bytes that came without an R2T */
    enum mode mode;
    struct burst burst[BURSTS + 1]; /* [0]: unsolicited */
};

struct session {
    bool full, discovery, named, authenticated, declared, header_digest, initial_r2t, immediate, aborted;
    bool shown;     /* an R2T or NOP-In has carried the StatSN that is next */
    enum mode mode; /* of the reply that is being built */
    unsigned char isid[6], chap_id, challenge[16];
    uint16_t tsih;
    uint32_t stat_sn, exp_cmd_sn, max_cmd_sn, in_flight;
    uint32_t max_recv, first_burst, max_burst, max_r2t; /* max_recv: what the initiator takes */
    size_t text_len;
    char text[TEXT_MAX]; /* keys of this exchange, each ends with NUL */
    char initiator[224];
    struct task *tasks;
};

#include "tests/lab/canned.h"

static uint32_t crc32c(const struct server *s, const unsigned char *p, size_t len) {
    uint32_t crc = ~0u;
    while (len--) crc = crc >> 8 ^ s->p.crc[(crc ^ *p++) & 0xff];
    return ~crc;
}

static void fill_crc(uint32_t table[256]) {
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++) table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78u : 0);
    }
}

/* RFC 1321. */
static void md5(const unsigned char *message, size_t len, unsigned char digest[16]) {
    static const uint32_t sine[64] = {
        0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
        0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
        0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
        0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
        0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
        0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
        0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
        0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
    };
    static const unsigned char turn[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t sum[4] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    unsigned char padded[CHAP_MAX + 72] = {0};
    uint64_t bits = htole64((uint64_t)len * 8);
    size_t end = (len + 9 + 63) & ~(size_t)63;
    memcpy(padded, message, len);
    padded[len] = 0x80;
    memcpy(padded + end - 8, &bits, 8);
    for (const unsigned char *block = padded; block < padded + end; block += 64) {
        uint32_t a = sum[0], b = sum[1], c = sum[2], d = sum[3];
        for (unsigned i = 0; i < 64; i++) {
            unsigned round = i / 16, word = (unsigned[]){i, 5 * i + 1, 3 * i + 5, 7 * i}[round] % 16;
            uint32_t f = (uint32_t[]){(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)}[round], m;
            memcpy(&m, block + 4 * word, 4);
            f += a + sine[i] + le32toh(m);
            a = d;
            d = c;
            c = b;
            b += f << turn[round][i % 4] | f >> (32 - turn[round][i % 4]);
        }
        sum[0] += a;
        sum[1] += b;
        sum[2] += c;
        sum[3] += d;
    }
    for (int i = 0; i < 4; i++) {
        uint32_t v = htole32(sum[i]);
        memcpy(digest + 4 * i, &v, 4);
    }
}

static uint32_t tag(const unsigned char *bhs) {
    return load32(bhs + 16);
}
static uint32_t data_len(const unsigned char *bhs) {
    return load32(bhs + 4) & 0xffffff;
}
static unsigned lun_of(const unsigned char *bhs) {
    return (bhs[8] & 0x3fu) << 8 | bhs[9];
}

static size_t head_len(const struct conn *c, const unsigned char *bhs) {
    return BHS + 4u * bhs[4] + (c->p.header_digest ? 4 : 0);
}

/* The header of a PDU that answers `request`, with its task tag. */
static void answer_header(struct conn *c, unsigned char bhs[BHS], enum opcode op, unsigned flags,
                          const unsigned char *request) {
    memset(bhs, 0, BHS);
    bhs[0] = (unsigned char)op;
    bhs[1] = (unsigned char)flags;
    store32(bhs + 16, c->p.mode == WRONG_ITT ? tag(request) ^ 0x5a5a0000 : tag(request));
}

/* StatSN, ExpCmdSN and MaxCmdSN. The window shrinks by what is in flight; MaxCmdSN itself never goes back. */
static void set_numbers(struct server *s, struct conn *c, unsigned char bhs[BHS], bool status) {
    struct session *p = &c->p;
    uint32_t max = p->exp_cmd_sn + s->p.window - 1 - p->in_flight;
    if ((int32_t)(max - p->max_cmd_sn) > 0) p->max_cmd_sn = max;
    store32(bhs + 24, p->stat_sn);
    store32(bhs + 28, p->exp_cmd_sn);
    store32(bhs + 32, p->max_cmd_sn);
    if (status)
        p->stat_sn++;
    else if ((bhs[0] & 0x3f) != DATA_IN)
        p->shown = true;
}

/* The data are at `data`, or content from `offset` on if that is NULL. */
static void put_pdu(struct server *s, struct conn *c, unsigned char bhs[BHS], const void *data, bool stored,
                    uint64_t offset, uint32_t len) {
    static const unsigned char zeros[4];
    unsigned flags = c->p.mode == SEGMENTS ? ONE_BYTE : 0;
    if (c->p.mode == NO_REPLY) return;
    store32(bhs + 4, c->p.mode == GARBAGE_LENGTH ? 0xfffffc : len);
    if (c->p.mode == CLOSE_MID) {
        put_copy(c, bhs, len ? BHS : BHS / 2, len ? 0 : CLOSE_AFTER);
        if (len && data)
            put_copy(c, data, len / 2, CLOSE_AFTER);
        else
            put_content(s, c, stored, offset, len / 2, CLOSE_AFTER);
        return;
    }
    unsigned char *p = room(c, BHS + 4);
    memcpy(p, bhs, BHS);
    if (c->p.header_digest) {
        uint32_t crc = htole32(crc32c(s, bhs, BHS));
        memcpy(p + BHS, &crc, 4);
    }
    put(c, NULL, c->p.header_digest ? BHS + 4 : BHS, flags);
    if (data)
        put_copy(c, data, len, flags);
    else
        put_content(s, c, stored, offset, len, flags);
    put_copy(c, zeros, -len & 3, flags);
}

/* ---- login and text ---- */

struct text {
    size_t len;
    char bytes[TEXT_MAX];
};

__attribute__((format(printf, 2, 3))) static void say(struct text *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->bytes + t->len, TEXT_MAX - t->len, fmt, ap);
    va_end(ap);
    if (n > 0 && (size_t)n < TEXT_MAX - t->len) t->len += (size_t)n + 1;
}

static const char *find_key(const struct session *p, const char *name) {
    size_t n = strlen(name);
    for (const char *at = p->text; at < p->text + p->text_len; at += strlen(at) + 1)
        if (!strncmp(at, name, n) && at[n] == '=') return at + n + 1;
    return NULL;
}

static bool in_list(const char *list, const char *word) {
    size_t n = strlen(word);
    while (list) {
        if (!strncmp(list, word, n) && (list[n] == ',' || !list[n])) return true;
        list = strchr(list, ',');
        if (list) list++;
    }
    return false;
}

static bool negotiate_number(struct server *s, struct session *p, const char *key, const char *value, struct text *t) {
    const char *burst = find_key(p, "MaxBurstLength"); /* FirstBurstLength must not be larger */
    uint32_t first_max = burst ? (uint32_t)strtoul(burst, NULL, 0) : p->max_burst, ignored;
    if (first_max > s->p.first_burst) first_max = s->p.first_burst;
    const struct {
        const char *key;
        uint32_t ours, *result;
        bool larger;
    } keys[] = {
        {"MaxBurstLength", s->p.max_burst, &p->max_burst, false},
        {"FirstBurstLength", first_max, &p->first_burst, false},
        {"MaxOutstandingR2T", s->p.max_r2t, &p->max_r2t, false},
        {"MaxConnections", 1, &ignored, false},
        {"ErrorRecoveryLevel", 0, &ignored, false},
        {"DefaultTime2Wait", 0, &ignored, true},
        {"DefaultTime2Retain", 0, &ignored, false},
        {"iSCSIProtocolLevel", 1, &ignored, false},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i].key)) continue;
        char *end;
        unsigned long theirs = strtoul(value, &end, 0);
        if (end == value || *end || theirs > 0xffffff) {
            say(t, "%s=Reject", key);
        } else {
            bool take_theirs = keys[i].larger ? theirs > keys[i].ours : theirs < keys[i].ours;
            *keys[i].result = take_theirs ? (uint32_t)theirs : keys[i].ours;
            say(t, "%s=%u", key, *keys[i].result);
        }
        return true;
    }
    return false;
}

static bool negotiate_yes_no(struct server *s, struct session *p, const char *key, const char *value, struct text *t) {
    bool ignored, theirs = !strcmp(value, "Yes");
    const struct {
        const char *key;
        bool ours, *result, both; /* both: Yes only if both sides say so; else if one does */
    } keys[] = {
        {"InitialR2T", s->p.initial_r2t, &p->initial_r2t, false},
        {"ImmediateData", s->p.immediate, &p->immediate, true},
        {"DataPDUInOrder", true, &ignored, false},
        {"DataSequenceInOrder", true, &ignored, false},
        {"IFMarker", false, &ignored, true},
        {"OFMarker", false, &ignored, true},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i].key)) continue;
        *keys[i].result = keys[i].both ? theirs && keys[i].ours : theirs || keys[i].ours;
        say(t, "%s=%s", key, *keys[i].result ? "Yes" : "No");
        return true;
    }
    return false;
}

static void negotiate(struct server *s, struct session *p, const char *key, const char *value, struct text *t) {
    static const char *const declared[] = {"InitiatorName", "InitiatorAlias", "TargetName",
                                           "SessionType",   "AuthMethod",     "SendTargets"};
    for (size_t i = 0; i < sizeof declared / sizeof *declared; i++)
        if (!strcmp(key, declared[i])) return;
    if (negotiate_number(s, p, key, value, t) || negotiate_yes_no(s, p, key, value, t)) return;
    if (!strcmp(key, "MaxRecvDataSegmentLength")) {
        p->max_recv = (uint32_t)strtoul(value, NULL, 0) & 0xfffffc;
        if (p->max_recv < 512) p->max_recv = 512;
    } else if (!strcmp(key, "HeaderDigest") || !strcmp(key, "DataDigest")) {
        bool want = *key == 'H' && s->p.header_digest;
        bool crc = in_list(value, "CRC32C") && *key == 'H' && (want || !in_list(value, "None"));
        if (*key == 'H') p->header_digest = crc;
        say(t, "%s=%s", key, crc ? "CRC32C" : in_list(value, "None") ? "None" : "Reject");
    } else if (!strcmp(key, "TaskReporting")) {
        say(t, "%s=%s", key, in_list(value, "RFC3720") ? "RFC3720" : "Reject");
    } else {
        say(t, "%s=NotUnderstood", key);
    }
}

static void negotiate_all(struct server *s, struct session *p, struct text *t) {
    for (const char *at = p->text; at < p->text + p->text_len; at += strlen(at) + 1) {
        char key[64];
        const char *equals = strchr(at, '=');
        if (!equals || equals - at >= (ptrdiff_t)sizeof key) continue;
        memcpy(key, at, (size_t)(equals - at));
        key[equals - at] = '\0';
        negotiate(s, p, key, equals + 1, t);
    }
}

static int digit(char c, bool base64) {
    static const char hex[] = "0123456789abcdef";
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *set = base64 ? digits : hex;
    if (!base64 && c >= 'A' && c <= 'F') c |= 0x20;
    const char *at = c ? strchr(set, c) : NULL;
    return at ? (int)(at - set) : -1;
}

/* A binary value, 0x... or 0b...; the number of its bytes, 0 if it is none. */
static size_t decode(const char *text, unsigned char *out, size_t max) {
    size_t n = 0;
    if (!text || text[0] != '0' || !strchr("xXbB", text[1])) return 0;
    bool base64 = (text[1] | 0x20) == 'b';
    unsigned have = 0, bits = 0, step = base64 ? 6 : 4;
    text += 2;
    if (!base64 && strlen(text) % 2) have = 4; /* 0xabc is 0x0abc */
    for (; *text && *text != '='; text++) {
        int d = digit(*text, base64);
        if (d < 0 || n == max) return 0;
        bits = bits << step | (unsigned)d;
        have += step;
        if (have >= 8) out[n++] = (unsigned char)(bits >> (have -= 8));
    }
    return n;
}

static void chap_digest(unsigned char id, const char *secret, const unsigned char *challenge, size_t len,
                        unsigned char digest[16]) {
    unsigned char message[CHAP_MAX];
    size_t n = strlen(secret);
    message[0] = id;
    memcpy(message + 1, secret, n);
    memcpy(message + 1 + n, challenge, len);
    md5(message, 1 + n + len, digest);
}

static void say_binary(struct text *t, const char *key, const unsigned char *p, size_t len) {
    char hex[2 * 16 + 1];
    for (size_t i = 0; i < len; i++) sprintf(hex + 2 * i, "%02x", p[i]);
    say(t, "%s=0x%s", key, hex);
}

/* CHAP with MD5 (RFC 7143, 12.1.3). False: the initiator is not who it should be. */
static bool chap(struct server *s, struct session *p, struct text *t) {
    unsigned char ours[16], theirs[17], challenge[1024];
    const char *name = find_key(p, "CHAP_N"), *id = find_key(p, "CHAP_I");
    if (find_key(p, "CHAP_A")) {
        if (!in_list(find_key(p, "CHAP_A"), "5")) return false;
        p->chap_id = (unsigned char)draw(s);
        for (size_t i = 0; i < sizeof p->challenge; i++) p->challenge[i] = (unsigned char)draw(s);
        say(t, "CHAP_A=5");
        say(t, "CHAP_I=%u", p->chap_id);
        say_binary(t, "CHAP_C", p->challenge, sizeof p->challenge);
        return true;
    }
    if (!name) return in_list(find_key(p, "AuthMethod"), "CHAP");
    chap_digest(p->chap_id, s->p.chap_pass, p->challenge, sizeof p->challenge, ours);
    if (strcmp(name, s->p.chap_user) || decode(find_key(p, "CHAP_R"), theirs, sizeof theirs) != 16) return false;
    p->authenticated = !memcmp(ours, theirs, 16);
    if (!id || !p->authenticated) return p->authenticated;
    size_t len = decode(find_key(p, "CHAP_C"), challenge, sizeof challenge);
    if (!len || !s->p.mutual_user) return false;
    chap_digest((unsigned char)strtoul(id, NULL, 0), s->p.mutual_pass, challenge, len, ours);
    say(t, "CHAP_N=%s", s->p.mutual_user);
    say_binary(t, "CHAP_R", ours, 16);
    return true;
}

static void login_answer(struct server *s, struct conn *c, const unsigned char *request, unsigned flags,
                         unsigned status, const struct text *t) {
    unsigned char bhs[BHS];
    answer_header(c, bhs, LOGIN_RESPONSE, flags, request);
    memcpy(bhs + 8, c->p.isid, 6);
    bhs[14] = (unsigned char)(c->p.tsih >> 8);
    bhs[15] = (unsigned char)c->p.tsih;
    set_numbers(s, c, bhs, true);
    bhs[36] = (unsigned char)(status >> 8);
    bhs[37] = (unsigned char)status;
    put_pdu(s, c, bhs, t->bytes, false, 0, (uint32_t)t->len);
    if (status) c->last = true;
}

/* Status of RFC 7143, 11.13.5, 0 if all is well. */
static unsigned login_identity(struct server *s, struct session *p, struct text *t) {
    const char *name = find_key(p, "InitiatorName"), *type = find_key(p, "SessionType");
    const char *target = find_key(p, "TargetName");
    if (p->named) return 0;
    p->discovery = type && !strcmp(type, "Discovery");
    if (!name || strlen(name) >= sizeof p->initiator || (!p->discovery && !target)) return 0x0207;
    if (!p->discovery && strcasecmp(target, s->p.target)) return 0x0203;
    strcpy(p->initiator, name);
    p->named = true;
    if (!p->discovery) say(t, "TargetPortalGroupTag=1");
    return 0;
}

static unsigned login_security(struct server *s, struct session *p, struct text *t) {
    const char *methods = find_key(p, "AuthMethod");
    if (!s->p.chap_user) {
        if (methods && !in_list(methods, "None")) return 0x0201;
        if (methods) say(t, "AuthMethod=None");
        p->authenticated = true;
        return 0;
    }
    if (methods && in_list(methods, "CHAP")) say(t, "AuthMethod=CHAP");
    return chap(s, p, t) ? 0 : 0x0201;
}

static bool one_too_many(struct server *s, const struct conn *c) {
    uint32_t n = 0;
    for (const struct conn *other = s->conns; other; other = other->next)
        n += other != c && other->p.full && !other->p.discovery;
    if (!s->p.sessions || c->p.discovery || n < s->p.sessions) return false;
    s->p.refused++;
    return true;
}

/* The same initiator, with the same ISID, replaces the session that it had (RFC 7143, 6.3.5). */
static void enter_full_feature(struct server *s, struct conn *c) {
    for (struct conn *other = s->conns; other; other = other->next)
        if (other != c && other->p.full && !other->p.discovery && !c->p.discovery &&
            !memcmp(other->p.isid, c->p.isid, 6) && !strcmp(other->p.initiator, c->p.initiator))
            drop(s, other);
    c->p.tsih = ++s->p.next_tsih ? s->p.next_tsih : ++s->p.next_tsih;
}

static bool collect_text(struct session *p, const unsigned char *data, size_t len) {
    if (len > TEXT_MAX - 1 - p->text_len) return false;
    memcpy(p->text + p->text_len, data, len);
    p->text_len += len;
    p->text[p->text_len] = '\0';
    return true;
}

static void start_session(struct conn *c, const unsigned char *request) {
    struct session *p = &c->p;
    memcpy(p->isid, request + 8, 6);
    p->exp_cmd_sn = load32(request + 24);
    p->max_cmd_sn = p->exp_cmd_sn - 1;
    p->stat_sn = 1;
    p->initial_r2t = p->immediate = true; /* these are the defaults of the keys, RFC 7143, 13 */
    p->first_burst = 65536;
    p->max_burst = 262144;
    p->max_recv = 8192;
    p->max_r2t = 1;
}

static void login(struct server *s, struct conn *c, const unsigned char *request, const unsigned char *data,
                  size_t len) {
    struct session *p = &c->p;
    struct text t = {.len = 0};
    unsigned flags = request[1], csg = flags >> 2 & 3, nsg = flags & 3;
    if (!p->stat_sn) start_session(c, request);
    if (!collect_text(p, data, len) || csg > 1 || (flags & FINAL && (nsg <= csg || nsg == 2))) {
        login_answer(s, c, request, 0, 0x0200, &t);
        return;
    }
    if (flags & CONTINUE) {
        login_answer(s, c, request, csg << 2, 0, &t);
        return;
    }
    unsigned status = login_identity(s, p, &t);
    if (!status && csg == 0) status = login_security(s, p, &t);
    if (!status && csg == 1 && s->p.chap_user && !p->authenticated) status = 0x0201;
    if (!status && csg == 1) {
        negotiate_all(s, p, &t);
        if (!p->declared) say(&t, "MaxRecvDataSegmentLength=%u", s->p.max_recv);
        p->declared = true;
        if (p->first_burst > p->max_burst) p->first_burst = p->max_burst;
    }
    p->text_len = 0;
    if (!status && flags & FINAL && nsg == 3 && one_too_many(s, c)) status = 0x0302;
    bool transit = !status && flags & FINAL && (csg == 1 || p->authenticated);
    if (transit && nsg == 3) enter_full_feature(s, c);
    bool header_digest = p->header_digest;
    p->header_digest = false; /* it begins behind the login phase */
    login_answer(s, c, request, (csg << 2) | (transit ? FINAL | nsg : 0), status, &t);
    p->header_digest = header_digest;
    p->full = transit && nsg == 3;
}

static void text_request(struct server *s, struct conn *c, const unsigned char *request, const unsigned char *data,
                         size_t len) {
    unsigned char bhs[BHS];
    struct text t = {.len = 0};
    struct sockaddr_in at = {0};
    socklen_t at_len = sizeof at;
    char address[INET_ADDRSTRLEN];
    if (!collect_text(&c->p, data, len)) {
        violation(s, c, "the text of a Text Request is too long");
        return;
    }
    const char *send = find_key(&c->p, "SendTargets");
    bool more = request[1] & CONTINUE;
    if (!more && send && (!*send || !strcmp(send, "All") || !strcasecmp(send, s->p.target))) {
        getsockname(c->fd, (struct sockaddr *)&at, &at_len);
        inet_ntop(AF_INET, &at.sin_addr, address, sizeof address);
        say(&t, "TargetName=%s", s->p.target);
        say(&t, "TargetAddress=%s:%u,1", address, ntohs(at.sin_port));
    }
    if (!more) {
        negotiate_all(s, &c->p, &t);
        c->p.text_len = 0;
    }
    answer_header(c, bhs, TEXT_RESPONSE, more ? 0 : FINAL, request);
    store32(bhs + 20, more ? 1 : NO_TAG);
    set_numbers(s, c, bhs, true);
    put_pdu(s, c, bhs, t.bytes, false, 0, (uint32_t)t.len);
}

/* ---- SCSI ---- */

struct answer {
    unsigned status;
    uint32_t sense;       /* key << 16 | ASC << 8 | ASCQ */
    uint32_t len;         /* that the command transfers */
    bool content, stored; /* the data are content from `offset` on; else they are in `bytes` */
    uint64_t offset;
    unsigned char bytes[512];
};

static void refuse(struct answer *a, uint32_t sense) {
    a->status = CHECK;
    a->sense = sense;
    a->len = 0;
}

/* Where a READ or WRITE goes, in blocks; OP_READ, OP_WRITE, 0 for any other command. */
static uint32_t extent(const unsigned char *cdb, uint64_t *lba, uint32_t *blocks) {
    *lba = load32(cdb + 2);
    *blocks = (uint32_t)cdb[7] << 8 | cdb[8];
    if (cdb[0] & 0x80) {
        *lba = load64(cdb + 2);
        *blocks = load32(cdb + 10);
    }
    return cdb[0] == 0x28 || cdb[0] == 0x88 ? OP_READ : cdb[0] == 0x2a || cdb[0] == 0x8a ? OP_WRITE : 0;
}

static bool in_range(const struct server *s, uint64_t lba, uint32_t blocks) {
    uint64_t all = s->p.size / s->p.block;
    return lba <= all && blocks <= all - lba;
}

static void fill_text(unsigned char *p, const char *text, size_t len) {
    memset(p, ' ', len);
    memcpy(p, text, strlen(text) < len ? strlen(text) : len);
}

/* Designators of VPD page 83: T10 vendor identification, and a locally assigned NAA made of the serial number. */
static uint32_t identification(const struct server *s, unsigned lun, unsigned char *p) {
    char name[32];
    uint64_t id = lun;
    snprintf(name, sizeof name, "%.16s%04u", s->p.serial, lun);
    for (const char *at = s->p.serial; *at; at++) id = (id ^ (unsigned char)*at) * MIX;
    uint32_t n = (uint32_t)strlen(name);
    memcpy(p, (unsigned char[]){2, 1, 0, 0}, 4);
    p[3] = (unsigned char)(8 + n);
    fill_text(p + 4, "SAMEDISK", 8);
    memcpy(p + 12, name, n);
    p += 12 + n;
    memcpy(p, (unsigned char[]){1, 3, 0, 8}, 4);
    store64(p + 4, (id & 0x0fffffffffffffff) | 0x3000000000000000);
    if (s->p.alua < 0) return 12 + n + 12;
    memcpy(p + 12, (unsigned char[]){1, 0x15, 0, 4, 0, 0, 0, PORT_GROUP}, 8); /* of the target port */
    return 12 + n + 20;
}

static void inquiry_vpd(struct server *s, unsigned lun, unsigned page, struct answer *a) {
    static const unsigned char pages[] = {0x00, 0x80, 0x83, 0xb0, 0xb1, 0xb2};
    unsigned char *b = a->bytes;
    uint32_t n = 0;
    switch (page) {
    case 0x00: memcpy(b + 4, pages, n = sizeof pages); break;
    case 0x80: n = (uint32_t)snprintf((char *)b + 4, 64, "%.16s%04u", s->p.serial, lun); break;
    case 0x83: n = identification(s, lun, b + 4); break;
    case 0xb0:
        store32(b + 8, (16u << 20) / s->p.block); /* maximum transfer length */
        store32(b + 12, (1u << 20) / s->p.block); /* optimal transfer length */
        b[7] = (unsigned char)(4096 / s->p.block);
        n = 60;
        break;
    case 0xb1:
        b[5] = 1; /* it does not rotate */
        n = 60;
        break;
    case 0xb2:
        n = 4; /* fully provisioned, no UNMAP */
        break;
    default: refuse(a, 0x052400); return;
    }
    b[1] = (unsigned char)page;
    b[3] = (unsigned char)n;
    a->len = 4 + n;
}

static void inquiry(struct server *s, const unsigned char *cdb, unsigned lun, struct answer *a) {
    if (cdb[1] & 1) {
        inquiry_vpd(s, lun, cdb[2], a);
    } else if (cdb[2]) {
        refuse(a, 0x052400);
        return;
    } else {
        memcpy(a->bytes, (unsigned char[]){0, 0, 6, 2, 91, 0, 0, 2}, 8); /* SPC-4, command queueing */
        fill_text(a->bytes + 8, "SAMEDISK", 8);
        fill_text(a->bytes + 16, "canned target", 16);
        fill_text(a->bytes + 32, "1", 4);
        memcpy(a->bytes + 58, (unsigned char[]){0x09, 0x60, 0x04, 0x60, 0x04, 0xc0}, 6); /* iSCSI, SPC-4, SBC-3 */
        if (s->p.alua >= 0) a->bytes[5] = 0x10; /* TPGS: implicit */
        a->len = 96;
    }
    if (lun >= s->p.luns) a->bytes[0] = 0x7f;
}

static void mode_sense(struct server *s, const unsigned char *cdb, struct answer *a) {
    unsigned page = cdb[2] & 0x3f, control = cdb[2] >> 6, header = cdb[0] == 0x1a ? 4 : 8;
    unsigned char *b = a->bytes;
    if ((page != 0x08 && page != 0x3f) || (cdb[3] && cdb[3] != 0xff)) {
        refuse(a, 0x052400);
        return;
    }
    if (control == 3) {
        refuse(a, 0x053900); /* saving parameters is not supported */
        return;
    }
    b[header] = 0x08; /* the caching page; nothing in it can be changed */
    b[header + 1] = 18;
    if (control != 1 && s->p.write_cache) b[header + 2] = 0x04;
    a->len = header + 20;
    b[header == 4 ? 0 : 1] = (unsigned char)(a->len - (header == 4 ? 1 : 2));
    b[header == 4 ? 2 : 3] = 0x10; /* DPOFUA */
}

static void read_capacity(struct server *s, bool is16, struct answer *a) {
    uint64_t last = s->p.size / s->p.block - 1;
    unsigned char *b = a->bytes;
    if (is16) {
        store64(b, last);
        store32(b + 8, s->p.block);
        b[13] = s->p.block == 512 ? 3 : 0; /* 4 KiB physical blocks */
        a->len = 32;
    } else {
        store32(b, last > UINT32_MAX ? UINT32_MAX : (uint32_t)last);
        store32(b + 4, s->p.block);
        a->len = 8;
    }
}

static void lba_status(struct server *s, const unsigned char *cdb, struct answer *a) {
    uint64_t lba = load64(cdb + 2), all = s->p.size / s->p.block;
    if (lba >= all) {
        refuse(a, 0x052100);
        return;
    }
    store32(a->bytes, 20);
    store64(a->bytes + 8, lba);
    store32(a->bytes + 16, all - lba > UINT32_MAX ? UINT32_MAX : (uint32_t)(all - lba));
    a->len = 24;
}

/* Commands other than READ and WRITE. */
static void other_command(struct server *s, const unsigned char *cdb, unsigned lun, struct answer *a) {
    uint32_t room_for = UINT32_MAX; /* the allocation length */
    memset(a->bytes, 0, sizeof a->bytes);
    if (lun >= s->p.luns && cdb[0] != 0x12 && cdb[0] != 0xa0) {
        refuse(a, 0x052500);
        return;
    }
    switch (cdb[0]) {
    case 0x00: return; /* TEST UNIT READY */
    case 0x35:
    case 0x91:         /* SYNCHRONIZE CACHE */
        if (s->p.sync == SYNC_NONE || (s->p.sync == SYNC_10 && cdb[0] == 0x91)) refuse(a, 0x052000);
        else s->p.syncs++;
        return;
    case 0x03:         /* REQUEST SENSE: there is none */
        memcpy(a->bytes, (unsigned char[]){0x70, 0, 0, 0, 0, 0, 0, 10}, 8);
        a->len = 18;
        room_for = cdb[4];
        break;
    case 0x12:
        inquiry(s, cdb, lun, a);
        room_for = load32(cdb + 2) >> 8 & 0xffff;
        break;
    case 0x1a:
        mode_sense(s, cdb, a);
        room_for = cdb[4];
        break;
    case 0x5a:
        mode_sense(s, cdb, a);
        room_for = load32(cdb + 5) & 0xffff;
        break;
    case 0x25: read_capacity(s, false, a); break;
    case 0x5e: /* PERSISTENT RESERVE IN: no key, no reservation, no capability */
        if ((cdb[1] & 0x1f) == 2) a->bytes[1] = 8;
        a->len = 8;
        if ((cdb[1] & 0x1f) > 3) refuse(a, 0x052400);
        room_for = load32(cdb + 5) & 0xffff;
        break;
    case 0x9e:
        if ((cdb[1] & 0x1f) == 0x10)
            read_capacity(s, true, a);
        else if ((cdb[1] & 0x1f) == 0x12)
            lba_status(s, cdb, a);
        else
            refuse(a, 0x052400);
        room_for = load32(cdb + 10);
        break;
    case 0xa3: /* REPORT TARGET PORT GROUPS */
        if (s->p.alua < 0 || (cdb[1] & 0x1f) != 0x0a) {
            refuse(a, 0x052000);
            break;
        }
        memcpy(a->bytes, (unsigned char[]){0, 0, 0, 12, (unsigned char)s->p.alua, 0x8f, 0, PORT_GROUP, 0, 0, 0, 1}, 12);
        a->bytes[15] = 1; /* the relative port */
        a->len = 16;
        room_for = load32(cdb + 6);
        break;
    case 0xa0: /* REPORT LUNS */
        store32(a->bytes, 8 * s->p.luns);
        for (unsigned i = 0; i < s->p.luns; i++) a->bytes[8 + 8 * i + 1] = (unsigned char)i;
        a->len = 8 + 8 * s->p.luns;
        room_for = load32(cdb + 6);
        break;
    default: refuse(a, 0x052000);
    }
    if (a->len > room_for) a->len = room_for;
}

static void execute(struct server *s, const unsigned char *request, struct answer *a) {
    const unsigned char *cdb = request + 32;
    uint64_t lba;
    uint32_t blocks, op = extent(cdb, &lba, &blocks);
    unsigned lun = lun_of(request);
    a->status = GOOD;
    a->sense = a->len = 0;
    a->content = a->stored = false;
    if (!op) {
        other_command(s, cdb, lun, a);
    } else if (lun >= s->p.luns) {
        refuse(a, 0x052500);
    } else if (!in_range(s, lba, blocks)) {
        refuse(a, 0x052100);
    } else if (cdb[1] >> 5 || blocks > UINT32_MAX / s->p.block) { /* no protection information */
        refuse(a, 0x052400);
    } else if (blocks && op == OP_WRITE && !(request[1] & WRITE_BIT)) {
        refuse(a, 0x052400); /* its data cannot come */
    } else {
        a->content = op == OP_READ;
        a->stored = s->store && !lun;
        a->offset = lba * s->p.block;
        a->len = blocks * s->p.block;
    }
}

/* Underflow or overflow, as flags of byte 1, and the count. */
static unsigned residual(uint32_t expected, uint32_t len, unsigned char *count) {
    store32(count, expected > len ? expected - len : len - expected);
    return expected > len ? UNDER : expected < len ? OVER : 0;
}

static void scsi_response(struct server *s, struct conn *c, const unsigned char *request, const struct answer *a,
                          uint32_t expected, uint32_t data_pdus) {
    unsigned char bhs[BHS], sense[20] = {0, 18, 0x70, 0, (unsigned char)(a->sense >> 16), 0, 0, 0, 0, 10};
    sense[14] = (unsigned char)(a->sense >> 8);
    sense[15] = (unsigned char)a->sense;
    answer_header(c, bhs, SCSI_RESPONSE, FINAL, request);
    bhs[1] |= residual(expected, a->len, bhs + 44);
    bhs[3] = (unsigned char)a->status;
    set_numbers(s, c, bhs, true);
    store32(bhs + 36, data_pdus);
    put_pdu(s, c, bhs, sense, false, 0, a->sense ? 20 : 0);
}

static void scsi_data(struct server *s, struct conn *c, const unsigned char *request, const struct answer *a,
                      uint32_t expected) {
    unsigned char bhs[BHS];
    uint32_t all = a->len < expected ? a->len : expected, sn = 0, burst = 0;
    bool separate = c->p.mode == SEPARATE_STATUS;
    for (uint32_t at = 0, n; at < all; at += n) {
        uint32_t max = c->p.mode == SPLIT_DATA_IN ? 1000 + (uint32_t)(draw(s) % 1000) : c->p.max_recv;
        n = all - at < max ? all - at : max;
        if (n > c->p.max_recv) n = c->p.max_recv;
        if (n > c->p.max_burst - burst) n = c->p.max_burst - burst;
        burst = burst + n == c->p.max_burst ? 0 : burst + n;
        bool last = at + n == all;
        answer_header(c, bhs, DATA_IN, last || !burst ? FINAL : 0, request);
        store32(bhs + 20, NO_TAG);
        set_numbers(s, c, bhs, last && !separate);
        if (last && !separate)
            bhs[1] |= 1 | residual(expected, a->len, bhs + 44);
        else
            store32(bhs + 24, 0);
        store32(bhs + 36, sn++ + (c->p.mode == WRONG_DATASN));
        store32(bhs + 40, at);
        put_pdu(s, c, bhs, a->content ? NULL : a->bytes + at, a->stored, a->offset + at, n);
        s->p.data_ins += a->content;
    }
    if (separate) scsi_response(s, c, request, a, expected, sn);
}

static void put_nop_in(struct server *s, struct conn *c, const unsigned char *request) {
    unsigned char bhs[BHS];
    answer_header(c, bhs, NOP_IN, FINAL, request);
    memcpy(bhs + 8, request + 8, 8);
    store32(bhs + 16, NO_TAG);
    store32(bhs + 20, s->p.next_ttt);
    s->p.next_ttt = s->p.next_ttt + 1 == NO_TAG ? 0 : s->p.next_ttt + 1;
    set_numbers(s, c, bhs, false);
    put_pdu(s, c, bhs, NULL, false, 0, 0);
    s->p.nops++;
}

static void put_async_logout(struct server *s, struct conn *c, const unsigned char *request) {
    unsigned char bhs[BHS];
    answer_header(c, bhs, ASYNC, FINAL, request);
    store32(bhs + 16, NO_TAG);
    set_numbers(s, c, bhs, true);
    bhs[36] = 1;  /* the target requests a logout ... */
    bhs[43] = 10; /* ... within seconds */
    put_pdu(s, c, bhs, NULL, false, 0, 0);
}

static void put_reject(struct server *s, struct conn *c, const unsigned char *request) {
    unsigned char bhs[BHS];
    answer_header(c, bhs, REJECT, FINAL, request);
    bhs[2] = 0x09; /* invalid PDU field */
    store32(bhs + 16, NO_TAG);
    set_numbers(s, c, bhs, true);
    put_pdu(s, c, bhs, request, false, 0, BHS);
}

/* What becomes of a command that would have gone well. */
static void misfortune(struct server *s, const unsigned char *request, struct answer *a) {
    struct config *p = &s->p;
    uint64_t lba;
    uint32_t blocks, op = extent(request + 32, &lba, &blocks);
    if (op == OP_WRITE && p->put_off.from) {
        p->put_off.from--;
    } else if (op == OP_WRITE && p->put_off.left) {
        p->put_off.left--;
        refuse(a, p->put_off.sense);
        a->status = p->put_off.status;
        return;
    }
    if (op == OP_WRITE && p->exchange && ++p->writes == p->exchange + 1) {
        p->exchanged = true;
        p->serial = "OTHER";
    }
    if (!p->exchanged) return;
    if (op && p->vanish) {
        p->vanish--;
        refuse(a, 0x052500);
    } else if (op == OP_WRITE) {
        p->harmed++;
    }
}

static void scsi_command(struct server *s, struct conn *c, const unsigned char *request) {
    struct answer a;
    bool takes_data = !(request[1] & WRITE_BIT);
    uint32_t expected = request[1] & (READ_BIT | WRITE_BIT) ? load32(request + 20) : 0;
    execute(s, request, &a);
    if (a.status == GOOD) misfortune(s, request, &a);
    switch (c->p.mode) {
    case CHECK_CONDITION: refuse(&a, takes_data ? 0x031100 : 0x030c00); break; /* read error, write error */
    case UNIT_ATTENTION: refuse(&a, 0x062900); break;                          /* power on, reset */
    case BUSY_STATUS:
        a.status = BUSY;
        a.len = 0;
        break;
    case FULL_STATUS:
        a.status = TASK_SET_FULL;
        a.len = 0;
        break;
    case UNDERFLOW: a.len /= 2; break;
    case NOP_IN_FIRST: put_nop_in(s, c, request); break;
    case ASYNC_LOGOUT: put_async_logout(s, c, request); break;
    case REJECT_COMMAND: put_reject(s, c, request); return;
    default: break;
    }
    for (int i = 0; i < (c->p.mode == DUPLICATE ? 2 : 1); i++) {
        if (takes_data && a.len && expected)
            scsi_data(s, c, request, &a, expected);
        else
            scsi_response(s, c, request, &a, expected, takes_data ? 0 : load32(request + R2T_COUNT));
    }
}

/* ---- writes ---- */

static void keep(struct server *s, const unsigned char *command, uint32_t at, const unsigned char *data, uint32_t len) {
    uint64_t lba;
    uint32_t blocks;
    if (!s->store || lun_of(command) || extent(command + 32, &lba, &blocks) != OP_WRITE || !in_range(s, lba, blocks))
        return;
    uint64_t all = (uint64_t)blocks * s->p.block;
    if (at < all) memcpy(s->store + lba * s->p.block + at, data, len < all - at ? len : all - at);
}

static void ask(struct server *s, struct conn *c, struct task *t) {
    for (unsigned i = 1; i <= c->p.max_r2t && t->asked < t->expected; i++) {
        struct burst *b = &t->burst[i];
        uint32_t left = t->expected - t->asked, len = left < c->p.max_burst ? left : c->p.max_burst;
        unsigned char bhs[BHS];
        if (b->open) continue;
        if (t->mode == ODD_R2T) {
            uint32_t odd = 1 + (uint32_t)(draw(s) % 9000);
            if (odd < len) len = odd;
        }
        *b = (struct burst){.open = true, .ttt = s->p.next_ttt, .at = t->asked, .len = len};
        if (t->mode == REVERSED_R2T) b->at = t->unsolicited + left - len;
        s->p.next_ttt = s->p.next_ttt + 1 == NO_TAG ? 0 : s->p.next_ttt + 1;
        t->asked += len;
        answer_header(c, bhs, R2T, FINAL, t->bhs);
        memcpy(bhs + 8, t->bhs + 8, 8);
        store32(bhs + 20, b->ttt);
        set_numbers(s, c, bhs, false);
        store32(bhs + 36, t->r2t_sn++);
        store32(bhs + 40, b->at);
        store32(bhs + 44, b->len);
        put_pdu(s, c, bhs, NULL, false, 0, 0);
        s->p.r2ts++;
    }
    uint64_t open = 0;
    for (unsigned i = 1; i <= c->p.max_r2t; i++) open += t->burst[i].open;
    if (open > s->p.r2t_peak) s->p.r2t_peak = open;
}

/* The command waits for its reply without its data; where it had ExpStatSN it says how many R2Ts it took. */
static void complete_write(struct server *s, struct conn *c, const unsigned char *command, uint32_t r2ts, uint64_t t) {
    unsigned char bhs[BHS];
    memcpy(bhs, command, BHS);
    store32(bhs + R2T_COUNT, r2ts);
    submit(s, c, bhs, BHS, BHS, t);
}

static void write_command(struct server *s, struct conn *c, const unsigned char *p, uint64_t t) {
    struct session *se = &c->p;
    uint32_t expected = load32(p + 20), sent = data_len(p);
    bool final = p[1] & FINAL;
    uint32_t unsolicited = se->first_burst < expected ? se->first_burst : expected;
    if (sent && !se->immediate)
        violation(s, c, "immediate data, with ImmediateData=No");
    else if (sent > unsolicited)
        violation(s, c, "%u bytes of immediate data, %u are allowed", sent, unsolicited);
    else if (!final && se->initial_r2t)
        violation(s, c, "unsolicited data are announced, with InitialR2T=Yes");
    else if (!final && sent == unsolicited)
        violation(s, c, "data are announced that FirstBurstLength forbids");
    if (c->fd < 0) return;
    keep(s, p, 0, p + head_len(c, p), sent);
    s->p.immediate_bytes += sent;
    if (sent > s->p.longest) s->p.longest = sent;
    if (sent == expected) {
        complete_write(s, c, p, 0, t);
        return;
    }
    struct task *task = grow(NULL, sizeof *task);
    *task = (struct task){.next = se->tasks, .expected = expected, .received = sent, .asked = sent, .mode = NONE};
    task->unsolicited = sent;
    memcpy(task->bhs, p, BHS);
    se->tasks = task;
    if (s->hostile != NONE && modes[s->hostile].ops & OP_SOLICITED) task->mode = choose_mode(s, OP_SOLICITED);
    se->mode = NONE;
    if (final)
        ask(s, c, task);
    else
        task->burst[0] = (struct burst){.open = true, .ttt = NO_TAG, .at = sent, .len = unsolicited - sent};
}

static void data_out(struct server *s, struct conn *c, const unsigned char *p, uint64_t t) {
    struct task **at = &c->p.tasks, *task;
    uint32_t ttt = load32(p + 20), len = data_len(p), sn = load32(p + 36), offset = load32(p + 40);
    unsigned i = 0;
    while ((task = *at) && tag(task->bhs) != tag(p)) at = &task->next;
    while (task && i <= BURSTS && !(task->burst[i].open && task->burst[i].ttt == ttt)) i++;
    struct burst *b = task && i <= BURSTS ? &task->burst[i] : NULL;
    if (!task && c->p.aborted) return;
    if (!b)
        violation(s, c, "Data-Out with task tag %#x, transfer tag %#x: nothing waits for it", tag(p), ttt);
    else if (sn != b->data_sn)
        violation(s, c, "Data-Out with DataSN %u, expected %u", sn, b->data_sn);
    else if (offset != b->at + b->got)
        violation(s, c, "Data-Out at %u, expected %u", offset, b->at + b->got);
    else if (len > b->len - b->got)
        violation(s, c, "%u bytes of Data-Out, expected %u", len, b->len - b->got);
    else if (p[1] & FINAL && ttt != NO_TAG && b->got + len < b->len)
        violation(s, c, "an R2T is answered in part");
    else if (!(p[1] & FINAL) && b->got + len == b->len)
        violation(s, c, "the last Data-Out has no F bit");
    if (c->fd < 0) return;
    keep(s, task->bhs, offset, p + head_len(c, p), len);
    b->got += len;
    b->data_sn++;
    s->p.data_outs++;
    if (ttt == NO_TAG) s->p.unsolicited_bytes += len;
    if (len > s->p.longest) s->p.longest = len;
    task->received += len;
    c->p.mode = NONE;
    if (p[1] & FINAL) {
        b->open = false;
        if (ttt == NO_TAG) task->asked = task->unsolicited = task->received;
        ask(s, c, task);
    }
    if (task->received < task->expected) return;
    *at = task->next;
    complete_write(s, c, task->bhs, task->r2t_sn, t);
    free(task);
}

/* ---- other PDUs, and the frame around all ---- */

/* Forgets commands that are not answered yet: the one with the tag, or all. */
static unsigned abort_commands(struct server *s, struct conn *c, bool all, uint32_t itt) {
    unsigned n = 0;
    for (struct task **at = &c->p.tasks, *t; (t = *at);) {
        if (!all && tag(t->bhs) != itt) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        n++;
        c->p.in_flight -= !(t->bhs[0] & IMMEDIATE);
        free(t);
    }
    for (unsigned q = 0; q < 2; q++)
        for (struct held *h = s->head[q]; h; h = h->next) {
            if (h->conn != c || !h->kept || (h->request[0] & 0x3f) != SCSI_COMMAND) continue;
            if (!all && tag(h->request) != itt) continue;
            h->kept = 0;
            n++;
            c->p.in_flight -= !(h->request[0] & IMMEDIATE);
        }
    c->p.aborted |= n > 0;
    return n;
}

static void task_management(struct server *s, struct conn *c, const unsigned char *request) {
    unsigned char bhs[BHS];
    unsigned function = request[1] & 0x7f;
    answer_header(c, bhs, TASK_MGMT_RESPONSE, FINAL, request);
    if (function == 1)
        bhs[2] = abort_commands(s, c, false, load32(request + 20)) ? 0 : 1; /* ABORT TASK */
    else if (function == 2 || (function >= 4 && function <= 7))
        abort_commands(s, c, true, 0);
    else
        bhs[2] = function == 8 ? 4 : 5; /* no reassignment; not supported */
    set_numbers(s, c, bhs, true);
    put_pdu(s, c, bhs, NULL, false, 0, 0);
}

static void nop_out(struct server *s, struct conn *c, const unsigned char *request, const unsigned char *data,
                    size_t len) {
    unsigned char bhs[BHS];
    answer_header(c, bhs, NOP_IN, FINAL, request);
    memcpy(bhs + 8, request + 8, 8);
    store32(bhs + 20, NO_TAG);
    set_numbers(s, c, bhs, true);
    put_pdu(s, c, bhs, data, false, 0, (uint32_t)(len < c->p.max_recv ? len : c->p.max_recv));
}

static void logout(struct server *s, struct conn *c, const unsigned char *request) {
    unsigned char bhs[BHS];
    answer_header(c, bhs, LOGOUT_RESPONSE, FINAL, request);
    set_numbers(s, c, bhs, true);
    put_pdu(s, c, bhs, NULL, false, 0, 0);
    c->last = true;
}

static void serve(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t) {
    unsigned op = p[0] & 0x3f;
    size_t start = op == SCSI_COMMAND ? BHS : head_len(c, p), len = data_len(p);
    uint64_t lba = 0;
    uint32_t blocks, kind = op == SCSI_COMMAND ? extent(p + 32, &lba, &blocks) : 0;
    (void)total;
    if (len > kept - start) len = kept - start;
    if (c->p.full && !(p[0] & IMMEDIATE)) c->p.in_flight--;
    c->p.mode = s->hostile != NONE && modes[s->hostile].ops & OP_SOLICITED ? NONE : choose_mode(s, kind);
    switch (op) {
    case SCSI_COMMAND: scsi_command(s, c, p); break;
    case LOGIN: login(s, c, p, p + start, len); break;
    case TEXT: text_request(s, c, p, p + start, len); break;
    case NOP_OUT: nop_out(s, c, p, p + start, len); break;
    case TASK_MGMT: task_management(s, c, p); break;
    default: logout(s, c, p); break;
    }
    note(s, c, tag(p), op == SCSI_COMMAND ? p[32] : 0x100 | op, lba * s->p.block, t);
}

static size_t frame(struct conn *c, const unsigned char *p, size_t have) {
    return have < BHS ? 0 : head_len(c, p) + ((data_len(p) + 3) & ~3u);
}

/* The numbers of a request in the full feature phase. False: they are wrong. */
static bool check_numbers(struct server *s, struct conn *c, const unsigned char *p) {
    struct session *se = &c->p;
    uint32_t cmd_sn = load32(p + 24), exp_stat_sn = load32(p + 28);
    uint32_t max = se->declared ? s->p.max_recv : 8192;
    if (data_len(p) > max) {
        violation(s, c, "%u bytes of data in a PDU, MaxRecvDataSegmentLength is %u", data_len(p), max);
    } else if ((int32_t)(exp_stat_sn - se->stat_sn) > 1 || (!se->shown && exp_stat_sn == se->stat_sn + 1)) {
        violation(s, c, "ExpStatSN %u, but StatSN is %u", exp_stat_sn, se->stat_sn);
    } else if ((p[0] & 0x3f) != DATA_OUT && !(p[0] & IMMEDIATE)) {
        if (cmd_sn != se->exp_cmd_sn)
            violation(s, c, "CmdSN %u, expected %u", cmd_sn, se->exp_cmd_sn);
        else if ((int32_t)(cmd_sn - se->max_cmd_sn) > 0)
            violation(s, c, "CmdSN %u, but MaxCmdSN is %u", cmd_sn, se->max_cmd_sn);
        se->exp_cmd_sn++;
        se->in_flight++;
    }
    /* libiscsi 1.19 acknowledges the StatSN of an R2T, which is that of the next reply: counted, not punished. */
    s->p.ahead += exp_stat_sn == se->stat_sn + 1;
    return c->fd >= 0;
}

static bool check_digest(struct server *s, struct conn *c, const unsigned char *p) {
    uint32_t crc;
    if (!c->p.header_digest) return true;
    size_t len = head_len(c, p) - 4;
    memcpy(&crc, p + len, 4);
    s->p.digests++;
    if (le32toh(crc) != crc32c(s, p, len)) violation(s, c, "a header digest is wrong");
    return c->fd >= 0;
}

static void arrived(struct server *s, struct conn *c, const unsigned char *p, size_t kept, size_t total, uint64_t t) {
    unsigned op = p[0] & 0x3f;
    if (c->last) return;
    if (!c->p.full) {
        if (op == LOGIN)
            submit(s, c, p, kept, total, t);
        else
            violation(s, c, "opcode %#x before the end of the login", op);
        return;
    }
    if (!check_digest(s, c, p) || !check_numbers(s, c, p)) return;
    if (op == DATA_OUT)
        data_out(s, c, p, t);
    else if (op == NOP_OUT && tag(p) == NO_TAG && !(p[0] & IMMEDIATE))
        violation(s, c, "a NOP-Out has no I bit");
    else if (op == NOP_OUT && tag(p) == NO_TAG)
        s->p.nops_answered += load32(p + 20) != NO_TAG;
    else if (op == SCSI_COMMAND && c->p.discovery)
        violation(s, c, "a SCSI command in a discovery session");
    else if (op == SCSI_COMMAND && p[1] & WRITE_BIT)
        write_command(s, c, p, t);
    else if (op == LOGIN || op > LOGOUT)
        violation(s, c, "opcode %#x is not expected", op);
    else
        submit(s, c, p, kept, total, t);
}

static void forget(struct conn *c) {
    for (struct task *t; (t = c->p.tasks); free(t)) c->p.tasks = t->next;
}

enum {
    O_SIZE = O_OWN,
    O_BLOCK,
    O_LUNS,
    O_WINDOW,
    O_TARGET,
    O_SERIAL,
    O_CHAP,
    O_MUTUAL,
    O_IMMEDIATE,
    O_INITIAL_R2T,
    O_FIRST_BURST,
    O_MAX_BURST,
    O_MAX_RECV,
    O_MAX_R2T,
    O_DIGEST,
    O_CACHE,
    O_ALUA,
    O_SESSIONS,
    O_SYNC_CACHE,
    O_PUT_OFF,
    O_EXCHANGE,
    O_VANISH
};
static const struct option options[] = {COMMON_OPTIONS,
                                        {"size", 1, NULL, O_SIZE},
                                        {"block-size", 1, NULL, O_BLOCK},
                                        {"luns", 1, NULL, O_LUNS},
                                        {"window", 1, NULL, O_WINDOW},
                                        {"target", 1, NULL, O_TARGET},
                                        {"serial", 1, NULL, O_SERIAL},
                                        {"chap", 1, NULL, O_CHAP},
                                        {"mutual-chap", 1, NULL, O_MUTUAL},
                                        {"immediate-data", 1, NULL, O_IMMEDIATE},
                                        {"initial-r2t", 1, NULL, O_INITIAL_R2T},
                                        {"first-burst", 1, NULL, O_FIRST_BURST},
                                        {"max-burst", 1, NULL, O_MAX_BURST},
                                        {"max-recv", 1, NULL, O_MAX_RECV},
                                        {"max-outstanding-r2t", 1, NULL, O_MAX_R2T},
                                        {"header-digest", 1, NULL, O_DIGEST},
                                        {"write-cache", 1, NULL, O_CACHE},
                                        {"alua", 1, NULL, O_ALUA},
                                        {"sessions", 1, NULL, O_SESSIONS},
                                        {"sync-cache", 1, NULL, O_SYNC_CACHE},
                                        {"put-off", 1, NULL, O_PUT_OFF},
                                        {"exchange", 1, NULL, O_EXCHANGE},
                                        {"vanish", 1, NULL, O_VANISH},
                                        {0}};
static const char own_help[] =
    "  --target IQN                name of the target (iqn.2026-01.com.example:canned)\n"
    "  --size N, --block-size N, --luns N  of each LUN (1g, 512), LUNs 0 to N-1 (1)\n"
    "  --serial TEXT               makes serial number and NAA (CANNED)\n"
    "  --write-cache yes|no        WCE of the caching page (yes)\n"
    "  --alua N                    state of the path in REPORT TARGET PORT GROUPS: 0 optimized, 1 not, 2 standby ...\n"
    "  --window N                  commands that may be outstanding (1024)\n"
    "  --chap USER:PASS, --mutual-chap USER:PASS  the initiator's, the target's own\n"
    "  --immediate-data yes|no (yes), --initial-r2t yes|no (no), --first-burst N (256k), --max-burst N (1m)\n"
    "  --max-recv N                MaxRecvDataSegmentLength (256k)\n"
    "  --max-outstanding-r2t N     1 to 16 (1)\n"
    "  --header-digest none|crc32c  which one is preferred (none)\n"
    "  --sessions N                so many at once: one more is refused (any number)\n"
    "  --sync-cache both|10|none   SYNCHRONIZE CACHE commands that it knows (both)\n"
    "  --put-off busy|full|attention|transition:N[+M]  the answer to N WRITEs, after the first M\n"
    "  --exchange N, --vanish M    after N WRITEs all LUNs are others, and M commands find none\n"
    "--store keeps LUN 0.\n";

static bool yes_no(const char *option, const char *text, const char *yes, const char *no) {
    if (strcmp(text, yes) && strcmp(text, no)) die("--%s %s: %s or %s is needed", option, text, yes, no);
    return !strcmp(text, yes);
}

static void user_and_password(const char *option, char *text, char **user, char **password) {
    char *colon = strchr(text, ':');
    if (!colon || strlen(colon + 1) > 255) die("--%s: USER:PASS is needed", option);
    *colon = '\0';
    *user = text;
    *password = colon + 1;
}

static void put_off(struct put_off *p, char *text) {
    static const struct { const char *name; unsigned status; uint32_t sense; } kinds[] = {
        {"busy", BUSY, 0}, {"full", TASK_SET_FULL, 0}, {"attention", CHECK, 0x062900}, {"transition", CHECK, 0x02040a}};
    char *colon = strchr(text, ':'), *plus = colon ? strchr(colon, '+') : NULL;
    if (colon) *colon = '\0';
    if (plus) *plus = '\0';
    for (size_t i = 0; colon && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(text, kinds[i].name))
            *p = (struct put_off){kinds[i].status, kinds[i].sense, number("put-off", colon + 1, 1, UINT64_MAX),
                                  plus ? number("put-off", plus + 1, 0, UINT64_MAX) : 0};
    if (!p->left) die("--put-off: busy, full, attention or transition, and how often");
}

static bool own_option(struct config *p, int opt) {
    switch (opt) {
    case O_SIZE: p->size = number("size", optarg, 4096, (uint64_t)1 << 60) & ~(uint64_t)4095; break;
    case O_BLOCK: p->block = (uint32_t)number("block-size", optarg, 512, 4096); break;
    case O_LUNS: p->luns = (uint32_t)number("luns", optarg, 1, 32); break;
    case O_WINDOW: p->window = (uint32_t)number("window", optarg, 1, 1u << 20); break;
    case O_TARGET: p->target = optarg; break;
    case O_SERIAL: p->serial = optarg; break;
    case O_CHAP: user_and_password("chap", optarg, &p->chap_user, &p->chap_pass); break;
    case O_MUTUAL: user_and_password("mutual-chap", optarg, &p->mutual_user, &p->mutual_pass); break;
    case O_IMMEDIATE: p->immediate = yes_no("immediate-data", optarg, "yes", "no"); break;
    case O_INITIAL_R2T: p->initial_r2t = yes_no("initial-r2t", optarg, "yes", "no"); break;
    case O_FIRST_BURST: p->first_burst = (uint32_t)number("first-burst", optarg, 512, 0xfffffc); break;
    case O_MAX_BURST: p->max_burst = (uint32_t)number("max-burst", optarg, 512, 0xfffffc); break;
    case O_MAX_RECV: p->max_recv = (uint32_t)number("max-recv", optarg, 512, 0xfffffc); break;
    case O_MAX_R2T: p->max_r2t = (uint32_t)number("max-outstanding-r2t", optarg, 1, BURSTS); break;
    case O_DIGEST: p->header_digest = yes_no("header-digest", optarg, "crc32c", "none"); break;
    case O_ALUA: p->alua = (int)number("alua", optarg, 0, 15); break;
    case O_SESSIONS: p->sessions = (uint32_t)number("sessions", optarg, 1, 1000); break;
    case O_SYNC_CACHE:
        p->sync = !strcmp(optarg, "none") ? SYNC_NONE : yes_no("sync-cache", optarg, "10", "both") ? SYNC_10 : SYNC_BOTH;
        break;
    case O_PUT_OFF: put_off(&p->put_off, optarg); break;
    case O_EXCHANGE: p->exchange = number("exchange", optarg, 1, UINT64_MAX); break;
    case O_VANISH: p->vanish = number("vanish", optarg, 1, UINT64_MAX); break;
    case O_CACHE: p->write_cache = yes_no("write-cache", optarg, "yes", "no"); break;
    default: return false;
    }
    return true;
}

int main(int argc, char **argv) {
    struct server *s = grow(NULL, sizeof *s);
    memset(s, 0, sizeof *s);
    common_defaults(s);
    s->p = (struct config){.size = 1u << 30,
                           .block = 512,
                           .luns = 1,
                           .window = 1024,
                           .first_burst = 256 << 10,
                           .max_burst = 1 << 20,
                           .max_recv = 256 << 10,
                           .max_r2t = 1,
                           .immediate = true,
                           .alua = -1,
                           .write_cache = true,
                           .target = "iqn.2026-01.com.example:canned",
                           .serial = "CANNED"};
    fill_crc(s->p.crc);
    for (int opt; (opt = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        if (common_option(s, opt) || own_option(&s->p, opt)) continue;
        if (opt == O_HELP) usage(own_help);
        return 1;
    }
    if (optind < argc) die("%s: not an option; --help lists them", argv[optind]);
    if (s->p.block & (s->p.block - 1)) die("--block-size %u: a power of two is needed", s->p.block);
    if (s->p.mutual_user && !s->p.chap_user) die("--mutual-chap needs --chap");
    open_store(s, s->p.size);
    start(s);
    printf("port=%u\n", s->port);
    fflush(stdout);
    run(s);
    finish(s);
    printf("connections=%" PRIu64 " requests=%" PRIu64 " hostile=%" PRIu64 " errors=%" PRIu64, s->accepted, s->requests,
           s->hits, s->errors);
    printf(" r2ts=%" PRIu64 " nops=%" PRIu64 " answered=%" PRIu64 " acked_early=%" PRIu64, s->p.r2ts, s->p.nops,
           s->p.nops_answered, s->p.ahead);
    printf(" immediate=%" PRIu64 " unsolicited=%" PRIu64 " data_outs=%" PRIu64 " longest=%" PRIu64,
           s->p.immediate_bytes, s->p.unsolicited_bytes, s->p.data_outs, s->p.longest);
    printf(" r2ts_at_once=%" PRIu64 " data_ins=%" PRIu64 " digests=%" PRIu64, s->p.r2t_peak, s->p.data_ins,
           s->p.digests);
    printf(" refused=%" PRIu64 " syncs=%" PRIu64 " harmed=%" PRIu64 "\n", s->p.refused, s->p.syncs, s->p.harmed);
    free(s);
    return 0;
}
