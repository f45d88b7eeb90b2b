/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/nfsmount.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/savefile.h"
#include "base/text.h"

#define PROC_MAX (16u << 20)

/* ---- identity ---- */

static void add_name(uint64_t fsid, uint64_t fileid, const char *server, struct facts *f) {
    char name[128];
    snprintf(name, sizeof name, "fsid:%" PRIx64 "/fileid:%" PRIu64 "/server:%.60s", fsid, fileid, server);
    for (unsigned i = 0; i < FACTS_IDENTITIES; i++) {
        if (!strcmp(f->identity[i], name)) return;
        if (f->identity[i][0]) continue;
        memcpy(f->identity[i], name, sizeof name);
        return;
    }
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

void nfsmount_facts(const struct mount *m, dev_t dev, uint64_t fileid, struct facts *f) {
    char *volumes = read_text(NFSMOUNT_VOLUMES), *stats = read_text(NFSMOUNT_STATS);
    if (fileid) nfsmount_identities(volumes, m, dev, fileid, f);
    nfsmount_pnfs(stats, m, &f->negotiated);
    free(volumes);
    free(stats);
}
