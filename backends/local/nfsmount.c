/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/nfsmount.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/savefile.h"
#include "base/text.h"

#define PROC_MAX (16u << 20)

/* ---- identity ---- */

static void add_text(const char *name, struct facts *f) {
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++) {
        if (!strcmp(f->identity[i], name)) return;
        if (f->identity[i][0]) continue;
        snprintf(f->identity[i], sizeof f->identity[i], "%s", name);
        return;
    }
}

static void add_name(uint64_t fsid, uint64_t fileid, const char *server, struct facts *f) {
    char name[128];
    snprintf(name, sizeof name, "fsid:%" PRIx64 "/fileid:%" PRIu64 "/server:%.60s", fsid, fileid, server);
    add_text(name, f);
}

/* "v4 0a610002  801 0:36         e596575da53a46b1:9a257336c0d7aa00 no": the line of this device. */
static bool find_fsid(const char *volumes, dev_t dev, unsigned *version, uint64_t *high, uint64_t *low) {
    unsigned maj, min;
    for (const char *line = volumes; line && *line; line += strcspn(line, "\n"), line += *line == '\n')
        if (sscanf(line, "v%u %*s %*s %u:%u %" SCNx64 ":%" SCNx64, version, &maj, &min, high, low) == 5 &&
            maj == major(dev) && min == minor(dev))
            return true;
    return false;
}

/* What servers are known to make of the two numbers for NFSv3. */
static void names_of_v4(uint64_t high, uint64_t low, uint64_t fileid, const char *server, struct facts *f) {
    /* knfsd: the file system's UUID, its halves as numbers of the server's byte order, combined. */
    add_name(__builtin_bswap64(high ^ low), fileid, server, f);
    add_name(high ^ low, fileid, server, f);
    /* knfsd: a device number's two parts. fsid=: one number, as others have it. */
    if (high <= 0xfffff && low <= 0xfffff)
        add_name((low & 0xff) | high << 8 | (low & ~0xffULL) << 12, fileid, server, f);
    if (!low) add_name(high, fileid, server, f);
    add_name(high ^ (low << 32 | low >> 32), fileid, server, f); /* Ganesha */
}

void nfsmount_identities(const char *volumes, const struct mount *m, dev_t dev, uint64_t fileid, struct facts *f) {
    unsigned version;
    uint64_t high, low;
    char server[80];
    if (!mountinfo_option(m->super, "addr", server, sizeof server) || !find_fsid(volumes, dev, &version, &high, &low))
        return;
    if (version < 4) add_name(high, fileid, server, f);
    else names_of_v4(high, low, fileid, server, f);
}

void nfsmount_handle_name(const char *volumes, dev_t dev, struct nfsname *n, struct facts *f) {
    unsigned version;
    uint64_t high, low;
    char name[128];
    if (!find_fsid(volumes, dev, &version, &high, &low)) return;
    n->fsid = version < 4 ? high : low ? __builtin_bswap64(high ^ low) : high; /* knfsd's form: it has one handle for both */
    add_text(nfsname(n, name, sizeof name), f);
}

/* Upper and lower half of the inode number, type bits of its mode, then a struct nfs_fh: length (2 bytes) and bytes. */
size_t nfsmount_server_handle(const unsigned char *p, size_t len, uint64_t fileid, const unsigned char **handle) {
    uint32_t word[3];
    uint16_t n;
    if (len < sizeof word + sizeof n) return 0;
    memcpy(word, p, sizeof word);
    memcpy(&n, p + sizeof word, sizeof n);
    if (((uint64_t)word[0] << 32 | word[1]) != fileid || !n || n > 128 || n > len - sizeof word - sizeof n) return 0;
    *handle = p + sizeof word + sizeof n;
    return n;
}

/* ---- parallel NFS ---- */

/* "device SERVER:/PATH mounted on POINT with fstype nfs4 statvers=1.1" begins the lines of a mount. */
void nfsmount_pnfs(const char *stats, const struct mount *m, struct kv *out) {
    char head[4200], value[64];
    bool mine = false;
    snprintf(head, sizeof head, " mounted on %s with fstype nfs", m->point);
    for (const char *line = stats; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
        size_t n = strcspn(line, "\n");
        const char *at;
        if (!strncmp(line, "device ", 7)) mine = (at = strstr(line, head)) && at < line + n;
        else if (mine && (at = strstr(line, ",pnfs=")) && at < line + n) {
            at += strlen(",pnfs=");
            kv_text(out, "mount_pnfs", "%s", text_safe(value, sizeof value, at, strcspn(at, ",\n")));
            return;
        }
    }
}

static char *read_text(const char *path) {
    struct err ignored;
    char *text;
    size_t n;
    return savefile_read(path, PROC_MAX, &text, &n, &ignored) < 0 ? NULL : text;
}

#define HANDLE_BYTES 128u

static void name_by_handle(const char *volumes, dev_t dev, int fd, const struct stat *st, struct facts *f) {
    union {
        struct file_handle h;
        char room[sizeof(struct file_handle) + HANDLE_BYTES];
    } u = {.h.handle_bytes = HANDLE_BYTES};
    struct nfsname n = {.fileid = st->st_ino, .size = (uint64_t)st->st_size,
                        .ctime_ns = (uint64_t)st->st_ctim.tv_sec * NS_PER_SEC + (uint64_t)st->st_ctim.tv_nsec};
    int mount_id;
    if (name_to_handle_at(fd, "", &u.h, &mount_id, AT_EMPTY_PATH) < 0) return;
    n.handle_len = nfsmount_server_handle(u.h.f_handle, u.h.handle_bytes, n.fileid, &n.handle);
    if (n.handle_len) nfsmount_handle_name(volumes, dev, &n, f);
}

void nfsmount_facts(const struct mount *m, dev_t dev, int fd, struct facts *f) {
    char *volumes = read_text(NFSMOUNT_VOLUMES), *stats = read_text(NFSMOUNT_STATS);
    struct stat st;
    if (fd >= 0 && fstat(fd, &st) == 0) {
        nfsmount_identities(volumes, m, dev, st.st_ino, f);
        name_by_handle(volumes, dev, fd, &st, f);
    }
    nfsmount_pnfs(stats, m, &f->negotiated);
    free(volumes);
    free(stats);
}
