/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/local/reservations.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/local/roads.h"
#include "backends/local/sgio.h"
#include "scsi/reserve.h"

/* 0, or a negative errno of sgio.h. */
static int ask_scsi(int fd, struct reserve *r) {
    uint8_t keys[RESERVE_KEYS_LEN], held[RESERVE_HELD_LEN];
    int n = sgio_ask(fd, reserve_cdb_keys, RESERVE_CDB, keys, sizeof keys);
    if (n < 0) return n;
    r->known = reserve_parse_keys(keys, (size_t)n, &r->keys, &r->first);
    n = sgio_ask(fd, reserve_cdb_held, RESERVE_CDB, held, sizeof held);
    if (n >= 0) r->known |= reserve_parse_held(held, (size_t)n, &r->reserved, &r->key, &r->type);
    return r->known ? 0 : -EIO;
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

static void say_use(const struct road *road, dev_t dev, const struct reserve *r, struct facts *f) {
    char words[200];
    if (f->in_use[0] || !*reserve_words(r, words, sizeof words)) return;
    if (road->dev == dev) snprintf(f->in_use, sizeof f->in_use, "%s", words);
    else snprintf(f->in_use, sizeof f->in_use, "/dev/%s, on which it stands: %s", road->name, words);
}

void reservations_facts(const char *sys, dev_t dev, int fd, struct facts *f) {
    struct roads *roads = roads_find(sys, dev);
    unsigned answers = 0, keys = 0;
    bool reserved = false;
    char unknown[128] = "";
    for (unsigned i = 0; roads && i < roads->n; i++) {
        struct reserve r = {.known = false};
        int rc = ask_road(&roads->road[i], dev, fd, &r);
        if (rc == -ENOTTY) continue; /* a disk that has no such thing */
        if (rc < 0 && rc != -EOPNOTSUPP)
            snprintf(unknown, sizeof unknown, "not answered by /dev/%s: %s", roads->road[i].name, strerrordesc_np(-rc));
        if (rc < 0 && rc != -EOPNOTSUPP) continue;
        answers++;
        if (r.keys > keys) keys = r.keys;
        reserved |= r.reserved;
        say_use(&roads->road[i], dev, &r, f);
    }
    free(roads);
    if (*unknown) kv_text(&f->negotiated, "persistent_reservations", "%s", unknown);
    if (!answers) return;
    kv_uint(&f->negotiated, "registered_keys", keys);
    kv_bool(&f->negotiated, "reserved", reserved);
}
