/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "safety/space.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/url.h"
#include "safety/content.h"

#define LEAST_FREE (10ULL << 30)

char *space_local_path(const char *url) {
    struct url parsed = {.text = NULL};
    struct err err;
    char *path = NULL;

    if (url_parse(url, &parsed, &err) == 0 && (strcmp(parsed.scheme, "/") == 0 || strcmp(parsed.scheme, "file") == 0))
        path = strdup(parsed.path);
    url_free(&parsed);
    return path;
}

/* A file that does not exist has no identity; what its folder or its server says must do. Servers that are reached by
 * two names are two file systems here, and each then keeps the reserve by itself. */
static void name_fs(struct space_claim *c) {
    const struct facts *f = &c->member->facts;
    const struct kv_item *fsid = kv_find(&f->negotiated, "fsid");
    struct url url = {.text = NULL};
    struct err err;
    struct stat st;
    char *path = space_local_path(c->member->url), *slash = path ? strrchr(path, '/') : NULL;

    snprintf(c->fs, sizeof(c->fs), "%" PRIu64 " bytes", f->fs_total);
    if (slash) {
        slash[slash == path] = '\0';
        if (stat(path, &st) == 0) snprintf(c->fs, sizeof(c->fs), "dev %u:%u", major(st.st_dev), minor(st.st_dev));
    } else if (url_parse(c->member->url, &url, &err) == 0 && url.host) {
        if (fsid && fsid->type == KV_TEXT)
            snprintf(c->fs, sizeof(c->fs), "%.60s fsid %.80s", url.host, fsid->text);
        else if (fsid)
            snprintf(c->fs, sizeof(c->fs), "%.60s fsid %" PRIx64, url.host, fsid->u);
        else
            snprintf(c->fs, sizeof(c->fs), "%.100s %" PRIu64 " bytes", url.host, f->fs_total);
    }
    url_free(&url);
    free(path);
}

bool space_same_file(const char *a, const char *b) {
    if (*a == '/') return strcmp(a, b) == 0; /* a bare path has no keys */
    size_t n = strcspn(a, "?");
    return n == strcspn(b, "?") && strncmp(a, b, n) == 0;
}

static bool counted_before(const struct space_claim *claims, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (claims[k].bytes > 0 && space_same_file(claims[k].member->url, claims[i].member->url)) return true;
    return false;
}

static uint64_t sum_on(const struct space_claim *claims, size_t n, const char *fs, unsigned *files) {
    uint64_t sum = 0;

    *files = 0;
    for (size_t i = 0; i < n; i++) {
        if (claims[i].bytes == 0 || strcmp(claims[i].fs, fs) != 0 || counted_before(claims, i)) continue;
        sum = claims[i].bytes > UINT64_MAX - sum ? UINT64_MAX : sum + claims[i].bytes;
        ++*files;
    }
    return sum;
}

static void judge(struct space_claim *c, uint64_t sum, unsigned files, bool allow_full) {
    const struct facts *f = &c->member->facts;
    uint64_t reserve = f->fs_total / 10 > LEAST_FREE ? f->fs_total / 10 : LEAST_FREE;
    char need[32], have[32], keep[32], total[32], together[48] = "";

    if (f->fs_total == 0) {
        c->refused = !allow_full;
        snprintf(c->why, sizeof(c->why),
                 "how much space is free on its file system is not known; "
                 "--allow-full goes on all the same");
        return;
    }
    if (sum <= f->fs_free && (allow_full || f->fs_free - sum >= reserve)) return;
    c->refused = true;
    content_size(need, sizeof(need), sum);
    content_size(have, sizeof(have), f->fs_free);
    if (files > 1) snprintf(together, sizeof(together), " by %u files together", files);
    if (sum > f->fs_free) {
        snprintf(c->why, sizeof(c->why), "%s would be allocated%s, and its file system has %s free", need, together,
                 have);
        return;
    }
    snprintf(c->why, sizeof(c->why),
             "%s would be allocated%s; of the %s free on its file system (%s in all) %s must remain (the "
             "larger of 10 %% and 10 GiB); a smaller size, or --allow-full",
             need, together, have, content_size(total, sizeof(total), f->fs_total),
             content_size(keep, sizeof(keep), reserve));
}

void space_check(struct space_claim *claims, size_t n, bool allow_full) {
    for (size_t i = 0; i < n; i++) {
        claims[i].refused = false;
        claims[i].why[0] = claims[i].fs[0] = '\0';
        if (claims[i].bytes > 0) name_fs(&claims[i]);
    }
    for (size_t i = 0; i < n; i++) {
        unsigned files;
        if (claims[i].bytes == 0) continue;
        uint64_t sum = sum_on(claims, n, claims[i].fs, &files);
        judge(&claims[i], sum, files, allow_full);
    }
}
