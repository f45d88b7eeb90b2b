/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opening a LUN: login, everything that it says about itself, logout. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "backends/iscsi/iscsi_again.h"
#include "backends/iscsi/iscsi_session.h"
#include "backends/net/sock.h"
#include "base/text.h"
#include "base/units.h"
#include "scsi/reserve.h"

struct opening {
    struct iscsibe_session *s;
    struct handle *h;
    struct facts *facts;
    struct iscsibe_inquiry inquiry;
    struct iscsibe_capacity capacity;
    uint8_t vpd83[4096];
    size_t n83;
    bool b0, b1, b2;                /* VPD pages that the target lists */
};

/* ---- login errors ---- */

/* Says what the user can do about a refused login; for a wrong name, what names there are. */
static int explain_login(const struct iscsibe_login *login, unsigned status, struct err *err) {
    char list[700], target[ISCSI_NAME_SIZE], cause[400];
    struct err discovery;

    text_safe(target, sizeof target, login->target, strlen(login->target));
    snprintf(cause, sizeof cause, "%.399s", err->msg);
    switch (status) {
    case ISCSI_LOGIN_AUTH:
        if (*login->user)
            return err_set(err, STATUS_TARGET, "%s: target %s refuses these credentials: check the CHAP user and password, "
                           "and whether its access list has initiator %s", cause, target, login->initiator);
        return err_set(err, STATUS_TARGET, "%s: target %s refuses a login without CHAP (user= and password_file= are the "
                       "CHAP user and password), or its access list lacks initiator %s", cause, target, login->initiator);
    case ISCSI_LOGIN_FORBIDDEN:
        return err_set(err, STATUS_TARGET,
                       "%s: target %s does not admit initiator %s: add it to the target's access list (ACL), "
                       "or give initiator=",
                       cause, target, login->initiator);
    case ISCSI_LOGIN_NOT_FOUND:
    case ISCSI_LOGIN_REMOVED:
    case ISCSI_LOGIN_UNAVAILABLE: /* LIO, of a name that it does not have */
        if (iscsibe_discover(login, list, sizeof list, &discovery) != 0)
            snprintf(list, sizeof list, "unknown (%.300s)", discovery.msg);
        if (status == ISCSI_LOGIN_UNAVAILABLE && strstr(list, target))
            return err_set(err, STATUS_TARGET, "%s: target %s is there, but does not let anybody in now: is it enabled?",
                           cause, target);
        return err_set(err, STATUS_TARGET,
                       "%s: no target %s for initiator %s (a target that does not admit an initiator may "
                       "say so, too); the portal offers: %s",
                       cause, target, login->initiator, list);
    default:
        return err_set(err, STATUS_TARGET, "%s (target %s, initiator %s)", cause, target, login->initiator);
    }
}

/* ---- what the unit is ---- */

/* The eight bytes by which the target knows the LUN. A target without a list, or that does not have it there, is asked by
 * the usual ones: its answer tells whether there is such a LUN. */
static void find_lun(struct opening *o) {
    struct iscsibe_login *login = &o->h->login;
    struct kv *n = &o->facts->negotiated;
    struct iscsibe_reply reply;
    unsigned found = 0;

    if (iscsibe_report_luns(o->s, &reply))
        found = iscsibe_luns_find(reply.data, reply.len, login->lun, &login->wire);
    kv_text(n, "lun_address", "%016" PRIx64 "h", login->wire);
    kv_text(n, "lun_address_from", "%s", found ? "REPORT LUNS" : "the usual form: REPORT LUNS does not list it");
    if (found > 1)
        kv_text(&o->facts->warnings, "lun-address",
                "the target lists LUN %u in %u forms (REPORT LUNS): %016" PRIx64 "h is used", login->lun, found,
                login->wire);
}

static int inquire(struct opening *o, struct err *err) {
    const uint8_t cdb[6] = { 0x12, [4] = 96 };
    struct iscsibe_reply reply;
    char words[160];
    const struct iscsibe_inquiry *i = &o->inquiry;

    if (iscsibe_command(o->s, o->s->login->wire, cdb, sizeof cdb, 96, &reply, err) != 0) return -1;
    if (reply.status == SCSI_STATUS_CHECK_CONDITION && reply.key == SCSI_SENSE_ILLEGAL_REQUEST &&
        reply.ascq == SCSI_SENSE_ASCQ_LOGICAL_UNIT_NOT_SUPPORTED)
        return iscsibe_no_such_lun(o->s, iscsibe_reply_words(&reply, words, sizeof words), err);
    if (reply.status != SCSI_STATUS_GOOD || !iscsibe_parse_inquiry(reply.data, reply.len, &o->inquiry))
        return err_set(err, STATUS_TARGET, "INQUIRY: %s", iscsibe_reply_words(&reply, words, sizeof words));
    if (i->qualifier == 0 && (i->type == 0x00 || i->type == 0x0e)) {
        kv_text(&o->facts->negotiated, "vendor", "%s", i->vendor);
        kv_text(&o->facts->negotiated, "product", "%s", i->product);
        kv_text(&o->facts->negotiated, "revision", "%s", i->revision);
        return 0;
    }
    if (i->qualifier == 0)
        return err_set(err, STATUS_TARGET, "it is not a disk: %s (%s %s)", iscsibe_type_name(i->type), i->vendor,
                       i->product);
    snprintf(words, sizeof words, "the target has no unit connected there: peripheral qualifier %u", i->qualifier);
    return iscsibe_no_such_lun(o->s, words, err);
}

static int list_pages(struct opening *o, struct err *err) {
    struct iscsibe_reply reply;
    int there = iscsibe_vpd_must(o->s, 0x00, &reply, err);
    if (there < 1) return there;
    o->h->vpd83 = iscsibe_vpd_has(reply.data, reply.len, 0x83);
    o->h->vpd80 = iscsibe_vpd_has(reply.data, reply.len, 0x80);
    o->b0 = iscsibe_vpd_has(reply.data, reply.len, 0xb0);
    o->b1 = iscsibe_vpd_has(reply.data, reply.len, 0xb1);
    o->b2 = iscsibe_vpd_has(reply.data, reply.len, 0xb2);
    return 0;
}

static int ask_identity(struct opening *o, struct err *err) {
    bool weak;
    int n =
        iscsibe_identify(o->s, o->h->vpd83, o->h->vpd80, &o->inquiry, o->h->identity, &weak, o->vpd83, &o->n83, err);
    if (n < 0) return -1;
    memcpy(o->facts->identity, o->h->identity, sizeof o->facts->identity);
    if (n == 0)
        kv_text(&o->facts->warnings, "no-identity",
                "the LUN has no name (VPD 83 or 80): it cannot be told from another");
    else if (weak)
        kv_text(&o->facts->warnings, "weak-identity",
                "%s is not unique in the world (no registered company id): another "
                "target may use the same",
                o->h->identity[0]);
    return 0;
}

static void ask_limits(struct opening *o) {
    struct iscsibe_reply reply;
    struct iscsibe_limits limits;
    struct iscsibe_provisioning lbp;
    struct kv *n = &o->facts->negotiated;
    uint64_t block = o->capacity.block, max = ISCSIBE_MAX_IO;
    unsigned rate;

    if (o->b0 && iscsibe_vpd(o->s, 0xb0, &reply) && iscsibe_parse_limits(reply.data, reply.len, &limits)) {
        kv_uint(n, "max_transfer", limits.max_transfer * block);
        kv_uint(n, "optimal_transfer", limits.optimal * block);
        kv_uint(n, "optimal_granularity", limits.granularity * block);
        kv_uint(n, "max_unmap", limits.max_unmap * block);
        if (limits.max_transfer && limits.max_transfer * block < max) max = limits.max_transfer * block;
    }
    if (o->b1 && iscsibe_vpd(o->s, 0xb1, &reply) && iscsibe_parse_rotation(reply.data, reply.len, &rate)) {
        if (rate == 1) kv_text(n, "rotation", "none (solid state)");
        else if (rate > 0x400) kv_uint(n, "rotation_rpm", rate);
    }
    if (o->b2 && iscsibe_vpd(o->s, 0xb2, &reply) && iscsibe_parse_provisioning(reply.data, reply.len, &lbp)) {
        kv_bool(n, "lbpu", lbp.unmap);
        kv_bool(n, "lbpws", lbp.write_same);
        kv_bool(n, "lbprz", lbp.read_zeros);
        kv_text(n, "provisioning", "%s", lbp.type == 2 ? "thin" : lbp.type == 1 ? "resource" : "full or unknown");
    }
    o->facts->max_io = (uint32_t)(max - max % block);
}

static bool put_off(const struct iscsibe_reply *r) {
    return iscsibe_again_kind((unsigned)r->status, r->key, r->ascq) != AGAIN_NOT;
}

/* Of a question that brought nothing to read. */
static const char *words_of(const struct iscsibe_reply *r, char *buf, size_t len) {
    if (r->status != SCSI_STATUS_GOOD) return iscsibe_reply_words(r, buf, len);
    snprintf(buf, len, "an answer of %zu bytes, too short", r->len);
    return buf;
}

static void ask_cache(struct opening *o) {
    const uint8_t ten[10] = { 0x5a, 0x08, 0x08, [8] = 255 },
                  six[6] = { 0x1a, 0x08, 0x08, [4] = 255 }; /* DBD, caching page */
    struct iscsibe_reply reply;
    struct iscsibe_mode mode = { .dpofua = false };
    struct facts *f = o->facts;
    char words[160];
    bool known =
        iscsibe_ask(o->s, ten, sizeof ten, 255, &reply) && iscsibe_parse_mode(reply.data, reply.len, true, &mode);

    if (!known && !o->s->dead && !put_off(&reply))
        known =
            iscsibe_ask(o->s, six, sizeof six, 255, &reply) && iscsibe_parse_mode(reply.data, reply.len, false, &mode);
    f->dpofua = known && mode.dpofua ? ANSWER_YES : ANSWER_NO; /* unknown: SYNCHRONIZE CACHE is the safe way */
    f->volatile_cache = known && mode.has_caching ? mode.wce ? ANSWER_YES : ANSWER_NO : ANSWER_UNKNOWN;
    f->read_only = known && mode.write_protected;
    if (!known) {
        kv_text(&f->negotiated, "mode_sense", "not answered");
        if (!iscsibe_not_there(&reply) && !o->s->dead)
            kv_text(&f->warnings, "cache-unknown", "whether the LUN has a volatile cache could not be found out (MODE SENSE: "
                    "%s): it is taken to have one", words_of(&reply, words, sizeof words));
        return;
    }
    kv_bool(&f->negotiated, "dpofua", mode.dpofua);
    kv_bool(&f->negotiated, "write_protected", mode.write_protected);
    if (mode.has_caching) {
        kv_bool(&f->negotiated, "wce", mode.wce);
        kv_bool(&f->negotiated, "rcd", mode.rcd);
    }
}

/* ---- who else uses it ---- */

/* Nobody else is known to use it only where the target says so, or has no such command. */
static void reservations_unknown(struct opening *o, const struct iscsibe_reply *reply) {
    struct facts *f = o->facts;
    char words[160];

    if (iscsibe_not_there(reply)) {
        kv_text(&f->negotiated, "persistent_reservations", "not supported");
        return;
    }
    words_of(reply, words, sizeof words);
    kv_text(&f->negotiated, "persistent_reservations", "not answered: %s", words);
    if (*f->in_use) return;
    if (reply->status == SCSI_STATUS_RESERVATION_CONFLICT)
        snprintf(f->in_use, sizeof f->in_use, "it is reserved by another initiator (PERSISTENT RESERVE IN: %s)", words);
    else
        snprintf(f->in_use, sizeof f->in_use, RESERVE_UNKNOWN " (PERSISTENT RESERVE IN: %s)", words);
}

static void ask_reservations(struct opening *o, bool conflict) {
    struct iscsibe_reply reply;
    struct facts *f = o->facts;
    struct reserve r = { .known = false };
    bool held = false;

    if (conflict)
        snprintf(f->in_use, sizeof f->in_use, "it is reserved by another initiator (RESERVATION CONFLICT)");
    r.known = iscsibe_ask(o->s, reserve_cdb_keys, RESERVE_CDB, RESERVE_KEYS_LEN, &reply) &&
              reserve_parse_keys(reply.data, reply.len, &r.keys, &r.first);
    if (r.known)
        held = iscsibe_ask(o->s, reserve_cdb_held, RESERVE_CDB, RESERVE_HELD_LEN, &reply) &&
               reserve_parse_held(reply.data, reply.len, &r.reserved, &r.key, &r.type);
    if (r.reserved || r.keys) reserve_words(&r, f->in_use, sizeof f->in_use);
    if (!r.known || !held) {
        reservations_unknown(o, &reply);
        return;
    }
    kv_uint(&f->negotiated, "registered_keys", r.keys);
    kv_bool(&f->negotiated, "reserved", r.reserved);
}

static int ask_alua(struct opening *o, struct err *err) {
    const struct iscsibe_alua *a = &o->s->alua;

    if (iscsibe_ask_alua(o->s, o->inquiry.tpgs, o->vpd83, o->n83, o->h->nonoptimized, err) != 0) return -1;
    if (!a->used) return 0;
    kv_text(&o->facts->negotiated, "alua_state", "%s", a->known ? iscsibe_alua_name(a->state) : "unknown");
    if (!a->known) return 0;
    kv_uint(&o->facts->negotiated, "alua_group", a->group);
    if (a->state == 1)
        kv_text(&o->facts->warnings, "alua-non-optimized",
                "this path is not the preferred one (ALUA active/non-optimized): "
                "what is measured includes the way to the other controller");
    return 0;
}

/* ---- open ---- */

static void describe(const struct opening *o) {
    struct facts *f = o->facts;
    const struct handle *h = o->h;
    char size[24], target[90], address[64], shown[68], ways[60] = "";
    unsigned port;
    int fd = iscsibe_session_fd(o->s);

    text_safe(target, sizeof target, h->login.target, strlen(h->login.target));
    units_size_human(size, sizeof size, f->size);
    if (h->roads.sessions > 1)
        snprintf(ways, sizeof ways, ", %u sessions by %u portal%s", h->roads.sessions, h->roads.n_portals,
                 h->roads.n_portals > 1 ? "s" : "");
    snprintf(f->summary, sizeof f->summary, "iSCSI %.60s %s LUN %u, %s%s", h->login.portal, target, h->login.lun, size,
             ways);
    kv_text(&f->negotiated, "protocol", "iSCSI over TCP");
    kv_text(&f->negotiated, "initiator", "%s", h->login.initiator);
    kv_text(&f->negotiated, "target_name", "%s", h->login.target);
    kv_uint(&f->negotiated, "lun", h->login.lun);
    kv_text(&f->negotiated, "header_digest", "%s", h->login.offer.header_digest ? "crc32c" : "none");
    kv_text(&f->negotiated, "chap", "%s", *h->login.target_user ? "mutual" : *h->login.user ? "yes" : "no");
    if (sock_peer(fd, address, sizeof address, &port))
        kv_text(&f->negotiated, "portal_address", "%s:%u", sock_bracket(address, shown, sizeof shown), port);
    if (o->s->link && *o->s->link->left)
        kv_text(&f->warnings, "address-left", "%.60s has addresses that do not serve: %s; everything goes to %s", h->login.portal,
                o->s->link->left, o->s->link->entry);
    kv_uint(&f->negotiated, "unit_attentions_at_login", o->s->unit_attentions);
    if (o->s->put_offs) {
        kv_uint(&f->negotiated, "open_retries", o->s->put_offs);
        kv_text(&f->warnings, "lun-not-ready", "while the LUN was looked at it answered %llu times \"not now\" (the last: %s); "
                "%.3f s were spent waiting for it", (unsigned long long)o->s->put_offs, o->s->put_off,
                (double)o->s->put_off_ns / NS_PER_SEC);
    }
    kv_uint(&f->negotiated, "capacity_blocks", o->capacity.blocks);
    kv_uint(&f->negotiated, "block", o->capacity.block);
    uint64_t physical = (uint64_t)o->capacity.block << o->capacity.physical_exponent;
    uint64_t first = (uint64_t)o->capacity.block * o->capacity.lowest_aligned % physical;
    kv_uint(&f->negotiated, "physical_block", physical);
    if (first) kv_uint(&f->negotiated, "physical_offset", physical - first);
    kv_bool(&f->negotiated, "lbpme", o->capacity.thin);
}

static int ask_all(struct opening *o, struct err *err) {
    struct facts *f = o->facts;
    bool reserved;

    o->s->deadline = sock_now() + o->s->login->timeout;
    find_lun(o);
    if (inquire(o, err) != 0) return -1;
    if (iscsibe_ready(o->s, &reserved, err) != 0) return -1;
    if (iscsibe_capacity(o->s, &o->capacity, err) != 0) return -1;
    f->exists = true;
    f->kind = OBJECT_LUN;
    f->block = o->capacity.block;
    f->size = o->capacity.blocks * o->capacity.block;
    f->allocated = UINT64_MAX;
    f->mem_align = 1;
    if (list_pages(o, err) != 0 || ask_identity(o, err) != 0) return -1;
    ask_limits(o);
    ask_cache(o);
    iscsibe_ask_flush(o->s, o->h, f);
    ask_reservations(o, reserved);
    if (ask_alua(o, err) != 0) return -1;
    if (o->s->dead) {
        *err = o->s->cause;
        return err_prefix(err, "the session was lost while the LUN was asked about itself");
    }
    if (o->h->writable && f->read_only) return err_set(err, STATUS_TARGET, "the LUN is write-protected by the target");
    o->h->size = f->size;
    o->h->block = f->block;
    o->h->dpofua = f->dpofua == ANSWER_YES;
    o->h->volatile_cache = f->volatile_cache;
    describe(o);
    return 0;
}

int iscsibe_open(const struct open_how *how, struct handle **out, struct facts *facts, struct err *err) {
    const struct iscsibe_conf *conf = how->conf;
    struct opening *o = calloc(1, sizeof *o);
    struct handle *h = calloc(1, sizeof *h);
    unsigned status;
    char target[ISCSI_NAME_SIZE];
    int rc = -1;

    *out = NULL;
    if (!o || !h) {
        err_set(err, STATUS_TARGET, "no memory");
        goto out;
    }
    if (how->mode == OPEN_CREATE) {
        err_set(err, STATUS_TARGET, "a LUN cannot be created from here: it is made on the array");
        goto out;
    }
    o->h = h;
    o->facts = facts;
    h->writable = how->mode == OPEN_WRITE;
    h->deliver = conf->deliver;
    h->ping = conf->ping;
    h->wait = conf->wait;
    h->nonoptimized = conf->nonoptimized;
    uint32_t isid[2];
    if (getrandom(isid, sizeof isid, 0) != (ssize_t)sizeof isid) {
        err_set(err, STATUS_TARGET, "no random numbers for the session's identifier");
        goto out;
    }
    h->isid_base = isid[0] & 0xffffff;
    atomic_init(&h->isid_next, isid[1] & 0xffff);
    if (iscsibe_login_fill(&h->login, conf, err) != 0 ||
        iscsibe_roads_fill(&h->roads, conf, h->login.portal, err) != 0)
        goto out;
    text_safe(target, sizeof target, h->login.target, strlen(h->login.target));
    snprintf(h->where, sizeof h->where, "%.100s %s LUN %u", h->login.portal, target, h->login.lun);
    tcp_settings_from(&h->tcp, &conf->tcp);
    h->login.tcp = &h->tcp;
    if (iscsibe_session_open(&h->login, &o->s, &status, err) != 0) {
        explain_login(&h->login, status, err);
        goto out;
    }
    /* A name may have several addresses, which may lead to several targets: from here on, it is the one that was asked. */
    if (o->s->link) snprintf(h->roads.address[h->roads.own], sizeof h->roads.address[0], "%s", o->s->link->entry);
    rc = ask_all(o, err);
    if (rc == 0 && conf->password)
        kv_text(&facts->warnings, "password-in-url",
                "the CHAP password stood in the URL, where `ps` and the shell's history "
                "may show it: password_file= or SAMEDISK_CHAP_PASSWORD is safer");
    iscsibe_session_close(o->s);
    if (rc == 0) rc = iscsibe_choose_engine(h, conf, facts, err);
    if (rc != 0) err_prefix(err, "%s", h->where);
out:
    free(o);
    if (rc == 0) *out = h;
    else iscsibe_close(h);
    return rc;
}

void iscsibe_close(struct handle *h) {
    if (!h) return;
    iscsibe_login_wipe(&h->login);
    free(h);
}

int iscsibe_holes(struct handle *h, uint64_t offset, uint64_t len, int64_t until, double *share) {
    uint64_t lba = offset / h->block, blocks = len / h->block, told = 0, missing = 0;
    struct iscsibe_login login = h->login;
    struct iscsibe_session *s = NULL;
    unsigned status;
    struct err err;

    snprintf(login.portal, sizeof login.portal, "%s", iscsibe_road_address(&h->roads, h->roads.own));
    if (blocks > 0) (void)iscsibe_session_open(&login, &s, &status, &err);
    iscsibe_login_wipe(&login);
    if (!s) return -1;
    s->deadline = until;
    while (told < blocks) {
        uint64_t at = lba + told, n, unmapped;
        uint8_t cdb[16] = { 0x9e, 0x12, [12] = 0x40 }; /* GET LBA STATUS, 16384 bytes */
        struct iscsibe_reply reply;
        for (int i = 0; i < 8; i++) cdb[2 + i] = (uint8_t)(at >> (56 - 8 * i));
        if (!iscsibe_ask(s, cdb, sizeof cdb, 16384, &reply) ||
            !iscsibe_parse_lba_status(reply.data, reply.len, at, blocks - told, &n, &unmapped)) break;
        told += n;
        missing += unmapped;
    }
    iscsibe_session_close(s);
    if (told < blocks) return -1;
    *share = (double)missing / (double)blocks;
    return 0;
}
