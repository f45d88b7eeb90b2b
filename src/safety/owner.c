/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/owner.h"

#include <endian.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"

#define OWNER_MAGIC 0x314e574f64656d61ULL /* "amedOWN1" in a dump */

/* ---- this process ---- */

static bool read_text(const char *path, char *buf, size_t len) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buf, len - 1);

    if (fd >= 0) close(fd);
    buf[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* When a process began, in ticks; 0: there is none. The name, in parentheses, may hold anything. */
static uint64_t start_of(const char *proc, pid_t pid) {
    char path[128], text[1024];

    snprintf(path, sizeof(path), "%s/%d/stat", proc, (int)pid);
    if (!read_text(path, text, sizeof(text))) return 0;
    const char *at = strrchr(text, ')');
    if (!at || strlen(at) < 4) return 0;
    char state = at[2];
    for (unsigned field = 2; at && field < 22; field++) at = strchr(at + 1, ' ');
    return at && state != 'Z' && state != 'X' ? strtoull(at, NULL, 10) : 0;
}

/* "6b3c...-..." of 32 digits. */
static void read_boot(const char *proc, uint8_t boot[16]) {
    char path[128], text[64];
    unsigned n = 0;

    memset(boot, 0, 16);
    snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc);
    if (!read_text(path, text, sizeof(text))) return;
    for (const char *c = text; *c && n < 32; c++) {
        const char *digits = "0123456789abcdef", *d = *c == '-' ? NULL : strchr(digits, *c);
        if (d) boot[n / 2] = (uint8_t)(boot[n / 2] << 4 | (d - digits)), n++;
    }
}

void owner_self(struct owner *o, const char *proc) {
    struct stat st;
    char path[128];

    memset(o, 0, sizeof(*o));
    o->state = OWNER_ACTIVE;
    o->pid = getpid();
    o->start = start_of(proc, o->pid);
    snprintf(path, sizeof(path), "%s/self/ns/pid", proc);
    if (stat(path, &st) == 0) o->pid_space = (uint64_t)st.st_ino;
    o->since = (int64_t)time(NULL);
    read_boot(proc, o->boot);
    if (gethostname(o->host, sizeof(o->host) - 1) != 0) snprintf(o->host, sizeof(o->host), "unknown");
    if (getrandom(o->token, sizeof(o->token), 0) != (ssize_t)sizeof(o->token)) {
        uint64_t words[2] = {(uint64_t)o->pid << 32 ^ o->start, (uint64_t)clock()}; /* better than none */
        memcpy(o->token, words, sizeof(words));
    }
}

/* ---- on the target ---- */

struct image { /* little-endian */
    uint64_t magic;
    uint8_t state, target, zero[6];
    uint64_t pid, start, pid_space, since;
    uint8_t token[16], boot[16];
    char host[64];
};
_Static_assert(offsetof(struct image, token) == OWNER_TOKEN_AT, "by it the object is known again");
_Static_assert(sizeof(struct image) == OWNER_SIZE - 16, "no holes, and 16 bytes for what may come");

void owner_encode(const struct owner *o, void *bytes) {
    struct image i = {.magic = htole64(OWNER_MAGIC), .state = (uint8_t)o->state, .target = (uint8_t)o->target};

    i.pid = htole64((uint64_t)o->pid);
    i.start = htole64(o->start);
    i.pid_space = htole64(o->pid_space);
    i.since = htole64((uint64_t)o->since);
    memcpy(i.token, o->token, sizeof(i.token));
    memcpy(i.boot, o->boot, sizeof(i.boot));
    memcpy(i.host, o->host, sizeof(i.host));
    memset(bytes, 0, OWNER_SIZE);
    memcpy(bytes, &i, sizeof(i));
}

bool owner_of_block(const void *block, struct owner *o) {
    struct image i;
    size_t len = 0;
    const void *note = data_note(block, &len);

    if (!note || len < sizeof(i)) return false;
    memcpy(&i, note, sizeof(i));
    if (le64toh(i.magic) != OWNER_MAGIC) return false;
    memset(o, 0, sizeof(*o));
    o->state = i.state == OWNER_RELEASED ? OWNER_RELEASED : OWNER_ACTIVE;
    o->target = i.target;
    o->pid = (pid_t)le64toh(i.pid);
    o->start = le64toh(i.start);
    o->pid_space = le64toh(i.pid_space);
    o->since = (int64_t)le64toh(i.since);
    memcpy(o->token, i.token, sizeof(i.token));
    memcpy(o->boot, i.boot, sizeof(i.boot));
    memcpy(o->host, i.host, sizeof(i.host) - 1);
    return true;
}

/* ---- judging ---- */

enum owner_verdict owner_judge(const struct owner *o, const struct owner *self, const char *proc) {
    static const uint8_t unknown[16];

    if (memcmp(o->token, self->token, sizeof(o->token)) == 0) return OWNER_OURS;
    if (o->state == OWNER_RELEASED) return OWNER_FREE;
    /* Also this host before it was started anew: two hosts may bear one name, so the name proves nothing. */
    if (memcmp(o->boot, unknown, sizeof(unknown)) == 0 || memcmp(o->boot, self->boot, sizeof(o->boot)) != 0)
        return OWNER_ELSEWHERE;
    if (o->pid_space != self->pid_space || self->start == 0) return OWNER_ELSEWHERE;
    uint64_t start = start_of(proc, o->pid);
    return start != 0 && start == o->start ? OWNER_RUNNING : OWNER_FREE;
}

const char *owner_text(const struct owner *o, char *buf, size_t len) {
    char host[160], when[40] = "?";
    time_t since = (time_t)o->since;
    struct tm tm;

    if (gmtime_r(&since, &tm)) strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC", &tm);
    snprintf(buf, len, "samedisk on host %s, process %d, writes to it since %s",
             text_safe(host, sizeof(host), o->host, strlen(o->host)), (int)o->pid, when);
    return buf;
}
