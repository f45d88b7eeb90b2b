/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sessions=, portals= and rr=: by which ways a context reaches the unit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi.h"
#include "base/text.h"

#define PORT_DEFAULT 3260u
#define EVERY_DEFAULT 1000u /* I/Os: what VMware's round robin has as its default */

static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_%:[]";

/* "host", "host:port", "v4:port", "[v6]", "[v6]:port", with the port always written out. */
static int one_portal(char to[ISCSIBE_PORTAL_SIZE], const char *from, size_t n, struct err *err) {
    char text[ISCSIBE_PORTAL_SIZE], safe[2 * ISCSIBE_PORTAL_SIZE];
    unsigned long port = PORT_DEFAULT;

    text_safe(safe, sizeof safe, from, n);
    if (n == 0) return err_set(err, STATUS_USAGE, "portals=: a portal is missing between the commas");
    if (n >= ISCSI_NAME_SIZE) return err_set(err, STATUS_USAGE, "portals=: a portal's name is too long");
    memcpy(text, from, n);
    text[n] = '\0';
    char *bracket = *text == '[' ? strchr(text, ']') : NULL;
    char *colon = bracket ? bracket + 1 : strchr(text, ':');
    bool ok = strspn(text, allowed) == n && (*text == '[') == (bracket != NULL) && (!bracket || bracket > text + 1) &&
              strchr(bracket ? bracket + 1 : text, '[') == NULL && (bracket || !strchr(text, ']'));
    if (ok && colon && *colon == ':') {
        char *end;
        port = strtoul(colon + 1, &end, 10);
        ok = colon > text && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) && *end == '\0' &&
             port >= 1 && port <= 65535;
        *colon = '\0';
    } else if (ok && colon && *colon) {
        ok = false;
    }
    if (!ok)
        return err_set(err, STATUS_USAGE, "portals=: `%s` is no portal: HOST, HOST:PORT or [IPV6]:PORT is needed",
                       safe);
    snprintf(to, ISCSIBE_PORTAL_SIZE, "%.*s:%u", (int)ISCSI_NAME_SIZE, text, (unsigned)port);
    return 0;
}

static int list(struct iscsibe_roads *r, const char *portals, struct err *err) {
    for (const char *p = portals;; p++) {
        size_t n = strcspn(p, ",");
        if (r->n_portals == ISCSIBE_PORTALS_MAX)
            return err_set(err, STATUS_USAGE, "portals=: more than %u portals", ISCSIBE_PORTALS_MAX);
        if (one_portal(r->portal[r->n_portals], p, n, err) != 0) return -1;
        for (unsigned i = 0; i < r->n_portals; i++)
            if (strcmp(r->portal[i], r->portal[r->n_portals]) == 0)
                return err_set(err, STATUS_USAGE,
                               "portals=: %s is there twice: sessions= makes several sessions to one portal",
                               r->portal[i]);
        r->n_portals++;
        p += n;
        if (!*p) return 0;
    }
}

const char *iscsibe_road_address(const struct iscsibe_roads *r, unsigned i) {
    return r->address[i][0] ? r->address[i] : r->portal[i];
}

static void add_own(struct iscsibe_roads *r, const char *portal) {
    r->n_roads = r->n_portals;
    for (r->own = 0; r->own < r->n_portals; r->own++)
        if (strcmp(r->portal[r->own], portal) == 0) return;
    snprintf(r->portal[r->n_roads++], sizeof r->portal[0], "%s", portal);
}

unsigned iscsibe_road_portal(const struct iscsibe_roads *r, unsigned road) {
    if (road == 1) return r->own;
    return road - 2 < r->own ? road - 2 : road - 1;
}

int iscsibe_roads_fill(struct iscsibe_roads *r, const struct iscsibe_conf *conf, const char *portal, struct err *err) {
    memset(r, 0, sizeof *r);
    if (conf->portals) {
        if (list(r, conf->portals, err) != 0) return -1;
    } else {
        snprintf(r->portal[0], sizeof r->portal[0], "%s", portal);
        r->n_portals = 1;
    }
    add_own(r, portal);
    r->sessions = conf->sessions ? (unsigned)conf->sessions : r->n_portals;
    r->every = conf->rr ? (unsigned)conf->rr : EVERY_DEFAULT;
    if (r->sessions < r->n_portals)
        return err_set(err, STATUS_USAGE, "sessions=%u leaves some of the %u portals of portals= without a session",
                       r->sessions, r->n_portals);
    if (conf->rr && r->sessions == 1)
        return err_set(err, STATUS_USAGE, "rr= chooses between sessions, and there is only one: sessions= or portals=");
    return 0;
}
