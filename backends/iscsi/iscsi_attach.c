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
#include "backends/iscsi/iscsi_session.h"
#include "base/text.h"

/* The next session's: of the random type, so that it is never that of another session to the same target. */
static void next_isid(struct handle *h, uint8_t isid[6]) {
    unsigned qualifier = atomic_fetch_add(&h->isid_next, 1);
    isid[0] = 0x80;
    isid[1] = (uint8_t)(h->isid_base >> 16);
    isid[2] = (uint8_t)(h->isid_base >> 8);
    isid[3] = (uint8_t)h->isid_base;
    iscsiw_put16(isid + 4, qualifier & 0xffff);
}

static int same_lun(struct handle *h, struct iscsibe_link *l, uint64_t *attentions, struct err *err) {
    struct iscsibe_session *s = calloc(1, sizeof *s);
    if (!s) return err_set(err, STATUS_TARGET, "no memory");
    s->login = &h->login;
    s->link = l;
    int rc = iscsibe_same_lun(s, h, err);
    *attentions = s->unit_attentions;
    free(s);
    return rc;
}

/* Logged in, and the same unit as at open. */
static int enter(struct handle *h, struct iscsibe_link **out, uint64_t *attentions, struct err *err) {
    uint8_t isid[6];
    unsigned status;

    next_isid(h, isid);
    if (iscsibe_link_open(&h->login, isid, out, &status, err) != 0) return -1;
    if (same_lun(h, *out, attentions, err) == 0) return 0;
    iscsibe_link_close(*out, false);
    *out = NULL;
    return -1;
}

static const char *ascq_words(int ascq) {
    return scsi_sense_ascq_str(ascq);
}

static int native_attach(struct handle *h, const struct attach_how *how, struct context **out, struct err *err) {
    struct iscsibe_link *l;
    uint64_t attentions;

    *out = NULL;
    if (enter(h, &l, &attentions, err) != 0) return err_prefix(err, "%s", h->where);
    const struct native_how session = {
        .fd = l->fd, .terms = &l->terms, .cmd_sn = l->cmd_sn, .max_cmd_sn = l->max_cmd_sn,
        .exp_stat_sn = l->exp_stat_sn, .lun = iscsibe_lun_wire(h->login.lun), .block = h->block, .dpofua = h->dpofua,
        .stable = h->volatile_cache == ANSWER_NO, .deliver = h->deliver, .wait = h->wait,
        .timeout = h->login.timeout, .ascq_words = ascq_words,
    };
    l->fd = -1;
    int rc = iscsibe_native_start(&session, how, out, err);
    if (rc == 0) {
        (*out)->head.engine = &iscsibe_engine_native;
        (*out)->counts.attentions = attentions;
    }
    iscsibe_link_close(l, false);
    return rc;
}

const struct iscsibe_engine iscsibe_engine_native = {
    .name = "native",
    .attach = native_attach,
    .detach = iscsibe_native_detach,
    .submit = iscsibe_native_submit,
    .reap = iscsibe_native_reap,
    .counters = iscsibe_native_counters,
};

/* ---- the choice ---- */

/* Logs in as every context will, for what the target agrees to. */
static int try_native(struct handle *h, struct facts *f, struct err *err) {
    struct iscsibe_link *l;
    uint64_t attentions;
    char safe[300];

    if (enter(h, &l, &attentions, err) != 0) return -1;
    struct kv *n = &f->negotiated;
    iscsibe_terms_facts(&l->terms, n);
    kv_text(n, "auth_method", "%s", l->auth);
    if (*l->portal_group)
        kv_text(n, "target_portal_group", "%s", text_safe(safe, sizeof safe, l->portal_group, strlen(l->portal_group)));
    if (*l->alias) kv_text(n, "target_alias", "%s", text_safe(safe, sizeof safe, l->alias, strlen(l->alias)));
    kv_uint(n, "command_window", (uint32_t)(l->max_cmd_sn - l->cmd_sn + 1));
    iscsibe_link_close(l, true);
    return 0;
}

int iscsibe_choose_engine(struct handle *h, const struct iscsibe_conf *conf, struct facts *f, struct err *err) {
    h->engine = &iscsibe_engine_libiscsi;
    if (conf->engine != ISCSIBE_ENGINE_LIBISCSI) {
        if (try_native(h, f, err) == 0) {
            h->engine = &iscsibe_engine_native;
        } else if (conf->engine == ISCSIBE_ENGINE_NATIVE || iscsibe_needs_native(conf)) {
            return err_prefix(err, "engine=native");
        } else {
            kv_text(&f->warnings, "engine-libiscsi", "libiscsi moves the data, because our own session could not: %s",
                    err->msg);
        }
    }
    snprintf(f->engine, sizeof f->engine, "%s", h->engine->name);
    return 0;
}
