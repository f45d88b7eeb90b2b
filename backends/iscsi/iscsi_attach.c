/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The native engine, tied to the control plane: a session of its own for each context, which goes on only if the unit
 * behind it is the one that was opened; and the choice between the engines. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/iscsi/iscsi_link.h"
#include "backends/iscsi/iscsi_native.h"
#include "backends/iscsi/iscsi_paths.h"
#include "backends/iscsi/iscsi_ping.h"
#include "backends/iscsi/iscsi_session.h"
#include "backends/net/sock.h"
#include "base/text.h"
#include "base/units.h"

void iscsibe_next_isid(struct handle *h, uint8_t isid[6]) {
    unsigned qualifier = atomic_fetch_add(&h->isid_next, 1);
    isid[0] = 0x80;
    isid[1] = (uint8_t)(h->isid_base >> 16);
    isid[2] = (uint8_t)(h->isid_base >> 8);
    isid[3] = (uint8_t)h->isid_base;
    iscsiw_put16(isid + 4, qualifier & 0xffff);
}

/* What a path said of itself when it was entered. */
struct entered {
    struct iscsibe_alua alua;
    uint64_t attentions, grown;
};

static int same_lun(struct handle *h, const struct iscsibe_login *login, struct iscsibe_link *l,
                    const struct seal *seal, struct entered *said, struct err *err) {
    struct iscsibe_session *s = calloc(1, sizeof *s);
    if (!s) return err_set(err, STATUS_TARGET, "no memory");
    s->login = login;
    s->link = l;
    int rc = iscsibe_same_lun(s, h, seal, err);
    *said = (struct entered){ .alua = s->alua, .attentions = s->unit_attentions, .grown = s->grown };
    free(s);
    return rc;
}

int iscsibe_ping_same_lun(struct handle *h, const struct iscsibe_login *login, struct iscsibe_link *link,
                          struct err *err) {
    struct entered ignored;
    return same_lun(h, login, link, NULL, &ignored, err);
}

/* Logged in by this road, and the same unit as at open. */
static int enter(struct handle *h, unsigned road, const struct seal *seal, struct iscsibe_link **out,
                 struct entered *said, struct err *err) {
    struct iscsibe_login login = h->login;
    uint8_t isid[6];
    unsigned status;

    snprintf(login.portal, sizeof login.portal, "%s", iscsibe_road_address(&h->roads, road));
    iscsibe_next_isid(h, isid);
    int rc = iscsibe_link_open(&login, isid, out, &status, err);
    if (rc == 0 && (rc = same_lun(h, &login, *out, seal, said, err)) != 0) {
        iscsibe_link_close(*out, false);
        *out = NULL;
    }
    iscsibe_login_wipe(&login);
    return rc;
}

static const char *ascq_words(int ascq) {
    return scsi_sense_ascq_str(ascq);
}

static bool several(const struct handle *h) {
    return h->roads.sessions > 1;
}

/* Errors name the portal, unless it is the one that the target's name holds anyway. */
static int name_portal(const struct handle *h, const char *portal, struct err *err) {
    if (several(h) || strcmp(portal, h->login.portal) != 0) err_prefix(err, "portal %s", portal);
    return -1;
}

static int attach_one(struct handle *h, unsigned road, const struct attach_how *how, struct context **out,
                      struct err *err) {
    const char *portal = h->roads.portal[road];
    struct iscsibe_link *l;
    struct entered said;

    if (enter(h, road, how->write ? &how->seal : NULL, &l, &said, err) != 0) return name_portal(h, portal, err);
    const struct native_how session = {
        .fd = l->fd, .portal = several(h) ? portal : NULL, .terms = &l->terms, .cmd_sn = l->cmd_sn,
        .max_cmd_sn = l->max_cmd_sn, .exp_stat_sn = l->exp_stat_sn, .lun = h->login.wire, .block = h->block,
        .unit = &h->unit, .sync_op = h->sync_op, .dpofua = h->dpofua, .stable = h->volatile_cache == ANSWER_NO,
        .deliver = h->deliver || how->looks,
        .wait = h->wait, .timeout = h->login.timeout, .tcp = &h->tcp, .ascq_words = ascq_words,
    };
    l->fd = -1;
    int rc = iscsibe_native_start(&session, how, out, err);
    if (rc == 0) {
        (*out)->head.engine = &iscsibe_engine_native;
        (*out)->counts.attentions = said.attentions;
        (*out)->grown = said.grown;
    }
    iscsibe_link_close(l, false);
    return rc;
}

static int native_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct context *session[ISCSIBE_SESSIONS_MAX];
    const struct iscsibe_roads *r = &h->roads;
    unsigned n = 0, sessions = how->road ? 1 : r->sessions;

    *out = NULL;
    while (n < sessions && attach_one(h, how->road ? iscsibe_road_portal(r, how->road) : n % r->n_portals, how, &session[n], err) == 0) n++;
    if (n < sessions) {
        while (n > 0) iscsibe_native_detach(session[--n]);
        return err_prefix(err, "%s", h->where);
    }
    if (several(h) && !how->road) return iscsibe_paths_start(session, n, r->every, out, err);
    *out = session[0];
    return 0;
}

const struct iscsibe_engine iscsibe_engine_native = {
    .name = "native",
    .attach = native_attach,
    .detach = iscsibe_native_detach,
    .submit = iscsibe_native_submit,
    .reap = iscsibe_native_reap,
    .counters = iscsibe_native_counters,
    .watch = iscsibe_native_watch,
};

/* ---- the choice ---- */

/* What is the same on all paths, from the first. */
static void session_facts(const struct iscsibe_link *l, struct kv *n) {
    char safe[300];

    iscsibe_terms_facts(&l->terms, n);
    kv_text(n, "auth_method", "%s", l->auth);
    if (*l->portal_group)
        kv_text(n, "target_portal_group", "%s", text_safe(safe, sizeof safe, l->portal_group, strlen(l->portal_group)));
    if (*l->alias) kv_text(n, "target_alias", "%s", text_safe(safe, sizeof safe, l->alias, strlen(l->alias)));
    kv_uint(n, "command_window", (uint32_t)(l->max_cmd_sn - l->cmd_sn + 1));
}

/* path1_portal, path1_address, path1_alua_state ... */
static void path_facts(const struct iscsibe_link *l, const char *portal, const struct iscsibe_alua *alua,
                       unsigned number, struct facts *f) {
    char key[sizeof(((struct kv_item *)0)->key)], address[64], shown[68], safe[300];
    struct kv *n = &f->negotiated;
    unsigned port;

    snprintf(key, sizeof key, "path%u_portal", number);
    kv_text(n, key, "%s", portal);
    snprintf(key, sizeof key, "path%u_address", number);
    if (sock_peer(l->fd, address, sizeof address, &port))
        kv_text(n, key, "%s:%u", sock_bracket(address, shown, sizeof shown), port);
    snprintf(key, sizeof key, "path%u_portal_group", number);
    if (*l->portal_group) kv_text(n, key, "%s", text_safe(safe, sizeof safe, l->portal_group, strlen(l->portal_group)));
    snprintf(key, sizeof key, "path%u_command_window", number);
    kv_uint(n, key, (uint32_t)(l->max_cmd_sn - l->cmd_sn + 1));
    if (!alua->used) return;
    snprintf(key, sizeof key, "path%u_alua_state", number);
    kv_text(n, key, "%s", alua->known ? iscsibe_alua_name(alua->state) : "unknown");
    if (alua->known && alua->state == 1)
        kv_text(&f->warnings, "alua-non-optimized",
                "the path by portal %s is not the preferred one (ALUA active/non-optimized): "
                "what is measured includes the way to the other controller", portal);
}

static void warn_grown(const struct handle *h, uint64_t by, struct facts *f) {
    char was[24], is[24];
    units_size_human(was, sizeof was, h->size);
    units_size_human(is, sizeof is, h->size + by);
    kv_text(&f->warnings, "lun-grown", "the LUN has grown since it was opened, from %s to %s: it is used as large as it was",
            was, is);
}

/* Logs in as every context will, once at each portal, for what the target agrees to. */
static int try_native(struct handle *h, struct facts *f, struct err *err) {
    struct iscsibe_roads *r = &h->roads;
    struct iscsibe_link *l;
    struct entered said;

    if (r->n_roads > 1 && !*h->identity[0])
        return err_set(err, STATUS_TARGET,
                       "the LUN has no name (VPD 83 or 80): whether all of portals= lead to it cannot be told");
    for (unsigned i = 0; i < r->n_portals; i++) {
        if (enter(h, i, NULL, &l, &said, err) != 0) return name_portal(h, r->portal[i], err);
        snprintf(r->address[i], sizeof r->address[i], "%s", l->entry);
        if (i == 0) {
            session_facts(l, &f->negotiated);
            tcp_settings_facts(&h->tcp, l->fd, &f->negotiated, &f->warnings);
        }
        if (said.grown) warn_grown(h, said.grown, f);
        if (several(h) || strcmp(r->portal[i], h->login.portal) != 0)
            path_facts(l, r->portal[i], &said.alua, i + 1, f);
        iscsibe_link_close(l, true);
    }
    kv_uint(&f->negotiated, "sessions", r->sessions);
    if (several(h)) kv_uint(&f->negotiated, "rr", r->every);
    return 0;
}

int iscsibe_choose_engine(struct handle *h, const struct iscsibe_conf *conf, struct facts *f, struct err *err) {
    h->unit.size = h->size;
    h->unit.block = h->block;
    h->unit.vpd83 = h->vpd83;
    h->unit.vpd80 = h->vpd80;
    h->unit.weak = kv_find(&f->warnings, "weak-identity") != NULL;
    memcpy(h->unit.identity, h->identity, sizeof h->unit.identity);
    h->engine = conf->engine == ISCSIBE_ENGINE_LIBISCSI ? &iscsibe_engine_libiscsi : &iscsibe_engine_native;
    snprintf(f->engine, sizeof f->engine, "%s", h->engine->name);
    return h->engine == &iscsibe_engine_native ? try_native(h, f, err) : 0;
}
