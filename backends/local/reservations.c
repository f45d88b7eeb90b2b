/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/reservations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/local/blockid.h"
#include "backends/local/sgio.h"

/* 0, or a negative errno of sgio.h. */
static int ask_scsi(int fd, struct reserve *r) {
    uint8_t keys[RESERVE_KEYS_LEN], held[RESERVE_HELD_LEN];
    int n = sgio_ask(fd, reserve_cdb_keys, RESERVE_CDB, keys, sizeof keys);
    if (n < 0) return n;
    if (!reserve_parse_keys(keys, (size_t)n, &r->keys, &r->first)) return -EBADMSG;
    n = sgio_ask(fd, reserve_cdb_held, RESERVE_CDB, held, sizeof held);
    if (n < 0) return n;
    return reserve_parse_held(held, (size_t)n, &r->reserved, &r->key, &r->type) ? 0 : -EBADMSG;
}

static int ask_nvme(int fd, struct reserve *r) {
    uint8_t report[4096];
    bool extended;
    int n = sgio_nvme_report(fd, report, sizeof report, &extended);
    if (n < 0) return n;
    return reserve_parse_nvme(report, (size_t)n, extended, r) ? 0 : -EIO;
}

static int ask_road(const struct road *road, dev_t dev, int fd, struct reserve *r) {
    bool nvme = !strncmp(road->name, "nvme", 4);
    if (!nvme && !sgio_may_ask(road->folder)) return -ENOTTY;
    int own = roads_open(road);
    if (own < 0 && road->dev != dev) return own;
    int rc = nvme ? ask_nvme(own >= 0 ? own : fd, r) : ask_scsi(own >= 0 ? own : fd, r);
    if (own >= 0) close(own);
    return rc;
}

/* ---- what the answers mean ---- */

static void say(const struct road *road, dev_t dev, const char *words, struct facts *f) {
    if (f->in_use[0] || !*words) return;
    if (road->dev == dev) snprintf(f->in_use, sizeof f->in_use, "%s", words);
    else snprintf(f->in_use, sizeof f->in_use, "/dev/%s, on which it stands: %.160s", road->name, words);
}

static bool answered(int rc) {
    return rc == 0 || rc == -EOPNOTSUPP;
}

/* Did another path to the same unit answer? What this one would say is known then. */
static bool known_by_another(const struct reservations_answer *all, unsigned n, const struct reservations_answer *a) {
    for (unsigned i = 0; *a->unit && i < n; i++)
        if (answered(all[i].rc) && !strcmp(all[i].unit, a->unit)) return true;
    return false;
}

/* An answer that did not come is not "nobody": it may not be written. */
static void say_unknown(const struct reservations_answer *a, dev_t dev, struct facts *f) {
    const char *why = a->rc == -EBUSY ? "BUSY or the like, until it took too long" :
                      a->rc == -EBADMSG ? "an answer that is too short" : strerrordesc_np(-a->rc);
    char words[200];
    snprintf(words, sizeof words, RESERVE_UNKNOWN " (%s: %s%s)", strncmp(a->road->name, "nvme", 4) ?
             "PERSISTENT RESERVE IN" : "Reservation Report", why, a->rc == -EPERM || a->rc == -EACCES ? ": run it as root" : "");
    say(a->road, dev, words, f);
}

void reservations_judge(const struct reservations_answer *all, unsigned n, dev_t dev, struct facts *f) {
    unsigned answers = 0, keys = 0;
    bool reserved = false;
    char unknown[128] = "", words[200];
    for (unsigned i = 0; i < n; i++) {
        const struct reservations_answer *a = &all[i];
        if (a->r.keys > keys) keys = a->r.keys; /* also where the second question was not answered */
        reserved |= a->r.reserved;
        say(a->road, dev, reserve_words(&a->r, words, sizeof words), f);
        answers += answered(a->rc);
    }
    for (unsigned i = 0; i < n; i++) {
        const struct reservations_answer *a = &all[i];
        if (answered(a->rc) || a->rc == -ENOTTY) continue; /* -ENOTTY: a disk that has no such thing */
        snprintf(unknown, sizeof unknown, "not answered by /dev/%s: %s", a->road->name, strerrordesc_np(-a->rc));
        if (a->rc == -EBADE) say(a->road, dev, "it is reserved by another host (RESERVATION CONFLICT)", f);
        else if (!known_by_another(all, n, a)) say_unknown(a, dev, f);
    }
    if (*unknown) kv_text(&f->negotiated, "persistent_reservations", "%s", unknown);
    if (!answers) return;
    kv_uint(&f->negotiated, "registered_keys", keys);
    kv_bool(&f->negotiated, "reserved", reserved);
}

static void name_unit(const struct road *road, char *buf, size_t len) {
    if (!strncmp(road->name, "nvme", 4) || !blockid_unit(road->folder, buf, len)) *buf = 0;
}

void reservations_facts(const char *sys, dev_t dev, int fd, struct facts *f) {
    struct roads *roads = roads_find(sys, dev);
    unsigned n = roads ? roads->n : 0;
    struct reservations_answer *all = calloc(n + 1, sizeof *all);
    if (!roads || !all) snprintf(f->in_use, sizeof f->in_use, RESERVE_UNKNOWN " (no memory)");
    for (unsigned i = 0; all && i < n; i++) {
        all[i].road = &roads->road[i];
        name_unit(all[i].road, all[i].unit, sizeof all[i].unit);
        all[i].rc = ask_road(all[i].road, dev, fd, &all[i].r);
    }
    if (all) reservations_judge(all, n, dev, f);
    free(all);
    free(roads);
}
