/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_login.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define ROUNDS_MAX 32u

enum { STAGE_SECURITY = 0, STAGE_OPERATIONAL = 1, STAGE_FULL_FEATURE = 3 };
enum { AT_ISID = 8, AT_TSIH = 14, AT_LOGIN_STATUS = 36 };

/* ---- what we say ---- */

static unsigned stage(const struct iscsibe_talk *t) {
    return t->step == TALK_OPERATIONAL ? STAGE_OPERATIONAL : STAGE_SECURITY;
}

/* The PDU with `say`; `transit`: on to the next stage. */
static void make(struct iscsibe_talk *t, bool transit) {
    uint8_t *h = t->out;
    unsigned next = stage(t) == STAGE_SECURITY ? STAGE_OPERATIONAL : STAGE_FULL_FEATURE;

    memset(h, 0, ISCSI_BHS);
    h[0] = ISCSI_LOGIN | ISCSI_IMMEDIATE;
    h[AT_FLAGS] = (uint8_t)(stage(t) << 2 | (transit ? ISCSI_TRANSIT | next : 0));
    iscsiw_put24(h + AT_LENGTH, (uint32_t)t->say.len);
    memcpy(h + AT_ISID, t->isid, sizeof t->isid);
    iscsiw_put16(h + AT_TSIH, 0); /* a new session, until the target gives it a number */
    iscsiw_put32(h + AT_ITT, t->itt);
    iscsiw_put32(h + AT_CMD_SN, t->cmd_sn);
    iscsiw_put32(h + AT_EXP_STAT_SN, t->exp_stat_sn);
    memset(h + ISCSI_BHS + t->say.len, 0, iscsiw_padding((uint32_t)t->say.len));
    memcpy(h + ISCSI_BHS, t->say.bytes, t->say.len);
    t->out_len = ISCSI_BHS + t->say.len + iscsiw_padding((uint32_t)t->say.len);
    t->say.len = 0;
}

static void say_operational(struct iscsibe_talk *t) {
    t->step = TALK_OPERATIONAL;
    iscsibe_terms_offer(&t->terms, &t->say);
    make(t, true);
}

/* Has the target to do CHAP, so that it can prove its identity? */
static bool proof_wanted(const struct iscsibe_talk *t) {
    return *t->who->target_user && !t->terms.discovery;
}

void iscsibe_talk_begin(struct iscsibe_talk *t, const struct iscsibe_credentials *who,
                        const struct iscsibe_offer *offer, const uint8_t isid[6],
                        const uint8_t challenge[CHALLENGE_SIZE], uint8_t challenge_id) {
    memset(t, 0, sizeof *t);
    t->who = who;
    memcpy(t->isid, isid, sizeof t->isid);
    memcpy(t->challenge, challenge, sizeof t->challenge);
    t->challenge_id = challenge_id;
    t->cmd_sn = 1;
    t->itt = 1;
    iscsibe_terms_begin(&t->terms, offer);
    iscsibe_text_add(&t->say, "InitiatorName=%s", who->initiator);
    t->terms.discovery = !*who->target;
    iscsibe_text_add(&t->say, "SessionType=%s", t->terms.discovery ? "Discovery" : "Normal");
    if (!t->terms.discovery) iscsibe_text_add(&t->say, "TargetName=%s", who->target);
    /* A target without CHAP may do for our one-way credentials; for a proof of the target's identity it may not. Portals
     * ask for less before they tell their targets' names, which are not trusted anyway. */
    iscsibe_text_add(&t->say, "AuthMethod=%s", !*who->user ? "None" : proof_wanted(t) ? "CHAP" : "CHAP,None");
    make(t, !*who->user);
}

/* ---- what the target says ---- */

/* False: it is not one that is kept here. Too long a value is cut, and then makes no sense where it is used. */
static bool keep(struct iscsibe_talk *t, const char *key, const char *value) {
    const struct { const char *key; char *to; size_t size; } kept[] = {
        { "AuthMethod", t->method, sizeof t->method }, { "CHAP_A", t->chap_a, sizeof t->chap_a },
        { "CHAP_I", t->chap_i, sizeof t->chap_i },     { "CHAP_C", t->chap_c, sizeof t->chap_c },
        { "CHAP_N", t->chap_n, sizeof t->chap_n },     { "CHAP_R", t->chap_r, sizeof t->chap_r },
        { "TargetAddress", t->address, sizeof t->address }, { "TargetAlias", t->alias, sizeof t->alias },
        { "TargetPortalGroupTag", t->portal_group, sizeof t->portal_group },
    };
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        if (strcmp(key, kept[i].key) != 0) continue;
        snprintf(kept[i].to, kept[i].size, "%s", value);
        return i < 6; /* the others are noted beside the operational keys */
    }
    return false;
}

/* The pairs of one answer, which ends with a NUL. */
static int read_pairs(struct iscsibe_talk *t, struct err *err) {
    char key[64], safe[80];
    for (const char *p = t->text, *end = p + t->text_len; p < end; p += strlen(p) + 1) {
        if (!*p) continue; /* some targets fill up with NULs */
        const char *equals = strchr(p, '=');
        if (!equals || equals == p || equals - p >= (ptrdiff_t)sizeof key)
            return err_set(err, STATUS_TARGET, "login: the target says `%s`, which is no KEY=VALUE",
                           text_safe(safe, sizeof safe, p, strlen(p)));
        memcpy(key, p, (size_t)(equals - p));
        key[equals - p] = '\0';
        if (keep(t, key, equals + 1)) continue;
        if (iscsibe_terms_answer(&t->terms, key, equals + 1, &t->say, err) != 0) return -1;
    }
    return 0;
}

static bool small_number(const char *text, unsigned *value) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    unsigned long v = strtoul(text, &end, strncmp(text, "0x", 2) == 0 || strncmp(text, "0X", 2) == 0 ? 16 : 10);
    *value = (unsigned)v;
    return *end == '\0' && v <= 255;
}

static void say_binary(struct iscsibe_text *say, const char *key, const uint8_t *data, size_t len) {
    char hex[2 * CHAP_RESPONSE_MAX + 3];
    iscsibe_chap_encode(data, len, hex);
    iscsibe_text_add(say, "%s=%s", key, hex);
}

/* CHAP_A, CHAP_I, CHAP_C came: prove who we are, and ask for the same. */
static int respond(struct iscsibe_talk *t, struct err *err) {
    uint8_t challenge[CHAP_CHALLENGE_MAX], response[CHAP_RESPONSE_MAX];
    unsigned id;
    size_t len;

    if (!small_number(t->chap_a, &t->algorithm) || iscsibe_chap_size(t->algorithm) == 0)
        return err_set(err, STATUS_TARGET,
                       "login: the target has no CHAP algorithm that we know (offered: " CHAP_ALGORITHMS
                       ", which are MD5, SHA-256, SHA3-256 and SHA-1)");
    if (!small_number(t->chap_i, &id) || !iscsibe_chap_decode(t->chap_c, challenge, sizeof challenge, &len))
        return err_set(err, STATUS_TARGET, "login: the target's CHAP challenge makes no sense");
    /* Our own challenge sent back to us is an attempt to have us compute the answer to it. */
    if (len == sizeof t->challenge && memcmp(challenge, t->challenge, len) == 0)
        return err_set(err, STATUS_TARGET, "login: the target returns our own CHAP challenge");
    iscsibe_chap_response(t->algorithm, (uint8_t)id, t->who->password, challenge, len, response);
    iscsibe_text_add(&t->say, "CHAP_N=%s", t->who->user);
    say_binary(&t->say, "CHAP_R", response, iscsibe_chap_size(t->algorithm));
    if (*t->who->target_user) {
        iscsibe_text_add(&t->say, "CHAP_I=%u", t->challenge_id);
        say_binary(&t->say, "CHAP_C", t->challenge, sizeof t->challenge);
    }
    return 0;
}

static int verify_target(const struct iscsibe_talk *t, struct err *err) {
    uint8_t told[CHAP_RESPONSE_MAX], right[CHAP_RESPONSE_MAX], differ = 0;
    size_t len, size = iscsibe_chap_size(t->algorithm);

    if (!*t->who->target_user) return 0;
    if (!iscsibe_chap_decode(t->chap_r, told, sizeof told, &len) || len != size)
        return err_set(err, STATUS_TARGET, "login: the target does not prove its identity (mutual CHAP)");
    iscsibe_chap_response(t->algorithm, t->challenge_id, t->who->target_password, t->challenge, sizeof t->challenge,
                          right);
    for (size_t i = 0; i < size; i++) differ |= told[i] ^ right[i];
    explicit_bzero(right, sizeof right);
    if (differ || strcmp(t->chap_n, t->who->target_user) != 0)
        return err_set(err, STATUS_TARGET,
                       "login: the target is not who it should be (mutual CHAP): check target_user= and "
                       "its password");
    return 0;
}

/* ---- the next step ---- */

/* The security stage is through, as far as we are concerned; the target says with its T bit whether it agrees. */
static enum iscsibe_talk_next leave_security(struct iscsibe_talk *t, bool transit) {
    if (transit) say_operational(t);
    else make(t, true);
    return TALK_SEND;
}

static enum iscsibe_talk_next after_method(struct iscsibe_talk *t, bool transit, struct err *err) {
    if (strcmp(t->method, "CHAP") == 0 && *t->who->user) {
        t->step = TALK_CHAP_ASKED;
        iscsibe_text_add(&t->say, "CHAP_A=" CHAP_ALGORITHMS);
        make(t, false);
        return TALK_SEND;
    }
    char safe[40];
    if (*t->method && strcmp(t->method, "None") != 0) {
        err_set(err, STATUS_TARGET, "login: the target answers AuthMethod=%s, which was not offered",
                text_safe(safe, sizeof safe, t->method, strlen(t->method)));
        if (strcmp(t->method, "CHAP") == 0) t->status = LOGIN_WANTS_CHAP;
        return TALK_FAILED;
    }
    if (proof_wanted(t)) {
        err_set(err, STATUS_TARGET,
                "login: the target does not do CHAP, and so cannot prove its identity (target_user=)");
        return TALK_FAILED;
    }
    snprintf(t->auth, sizeof t->auth, "None");
    return leave_security(t, transit);
}

static enum iscsibe_talk_next advance(struct iscsibe_talk *t, bool transit, struct err *err) {
    switch (t->step) {
    case TALK_AUTH: return after_method(t, transit, err);
    case TALK_CHAP_ASKED:
        if (respond(t, err) != 0) return TALK_FAILED;
        t->step = TALK_CHAP_TOLD;
        make(t, true);
        return TALK_SEND;
    case TALK_CHAP_TOLD:
        if (verify_target(t, err) != 0) return TALK_FAILED;
        snprintf(t->auth, sizeof t->auth, "%s %s", *t->who->target_user ? "mutual" : "CHAP",
                 iscsibe_chap_name(t->algorithm));
        return leave_security(t, transit);
    default: break;
    }
    if (!transit) {
        make(t, true);
        return TALK_SEND;
    }
    return iscsibe_terms_finish(&t->terms, err) == 0 ? TALK_DONE : TALK_FAILED;
}

static int no_login_response(unsigned opcode, const uint8_t *h, struct err *err) {
    if (opcode == ISCSI_REJECT)
        return err_set(err, STATUS_TARGET, "login: the target rejects the request (reason %02Xh)", h[AT_RESPONSE]);
    if (opcode == ISCSI_ASYNC)
        return err_set(err, STATUS_TARGET, "login: the target ends the connection (asynchronous event %u)", h[AT_EVENT]);
    return err_set(err, STATUS_TARGET,
                   "login: the answer is no login response (opcode %02Xh): is this an iSCSI portal?", opcode);
}

/* Does the header belong to this login, and make sense? */
static int check_header(struct iscsibe_talk *t, const uint8_t *h, struct err *err) {
    unsigned flags = h[AT_FLAGS], want = stage(t) == STAGE_SECURITY ? STAGE_OPERATIONAL : STAGE_FULL_FEATURE;
    if ((h[0] & ISCSI_OPCODE) != ISCSI_LOGIN_RESPONSE) return no_login_response(h[0] & ISCSI_OPCODE, h, err);
    if (iscsiw_get32(h + AT_ITT) != t->itt)
        return err_set(err, STATUS_TARGET, "login: the target answers another request than ours (task tag)");
    t->status = iscsiw_get16(h + AT_LOGIN_STATUS);
    if (t->status) return 0;
    if (h[3] != 0) return err_set(err, STATUS_TARGET, "login: the target speaks iSCSI version %u, not 0", h[3]);
    if ((flags >> 2 & 3) != stage(t) || (flags & ISCSI_TRANSIT && (flags & 3) != want) ||
        (flags & ISCSI_TRANSIT && flags & ISCSI_CONTINUE) ||
        (flags & ISCSI_TRANSIT && !(t->out[AT_FLAGS] & ISCSI_TRANSIT)))
        return err_set(err, STATUS_TARGET, "login: the target is in another stage than we are (flags %02Xh)", flags);
    return 0;
}

/* One that requires digests says so by its answer to our offer of none: Reject, or the one that it wants. */
static bool wants_digest(const struct iscsibe_talk *t, enum iscsibe_key key, const char *name) {
    size_t n = strlen(name);
    if (t->terms.offer[key]) return false;
    for (const char *p = t->text, *end = p + t->text_len; p < end; p += strlen(p) + 1)
        if (strncmp(p, name, n) == 0 && (strcmp(p + n, "Reject") == 0 || strstr(p + n, "CRC32C"))) return true;
    return false;
}

/* -1 if that is why the login does not go on. */
static int check_digests(const struct iscsibe_talk *t, struct err *err) {
    bool header = wants_digest(t, KEY_HEADER_DIGEST, "HeaderDigest=");
    bool data = wants_digest(t, KEY_DATA_DIGEST, "DataDigest=");
    if (!header && !data) return 0;
    return err_set(err, STATUS_TARGET, "login: the target requires %s: set %s%s%s", header && data ? "digests"
                   : header ? "header digests" : "data digests", header ? "header_digest=crc32c" : "",
                   header && data ? " and " : "", data ? "data_digest=crc32c" : "");
}

static void refused(const struct iscsibe_talk *t, struct err *err) {
    bool header = t->terms.offer[KEY_HEADER_DIGEST], data = t->terms.offer[KEY_DATA_DIGEST];
    /* It does not say what it misses: what most often is it, of what was not offered. */
    bool hint = t->step == TALK_OPERATIONAL && t->status >> 8 == 2 && !(header && data);

    err_set(err, STATUS_TARGET, "login: the target refuses: %s (%04X)%s%s%s", iscsibe_login_status_words(t->status),
            t->status, hint ? "; it may require what was not offered:" : "",
            hint && !header ? " header_digest=crc32c" : "", hint && !data ? " data_digest=crc32c" : "");
}

enum iscsibe_talk_next iscsibe_talk_answer(struct iscsibe_talk *t, const uint8_t bhs[ISCSI_BHS], const uint8_t *data,
                                           size_t len, struct err *err) {
    bool transit = bhs[AT_FLAGS] & ISCSI_TRANSIT;

    if (check_header(t, bhs, err) != 0) return TALK_FAILED;
    if (++t->rounds > ROUNDS_MAX || len > sizeof t->text - 1 - t->text_len) {
        err_set(err, STATUS_TARGET, "login: the target does not come to an end");
        return TALK_FAILED;
    }
    if (len) memcpy(t->text + t->text_len, data, len);
    t->text_len += len;
    t->text[t->text_len] = '\0';
    t->exp_stat_sn = iscsiw_get32(bhs + AT_STAT_SN) + 1;
    t->max_cmd_sn = iscsiw_get32(bhs + AT_MAX_CMD_SN);
    t->tsih = (uint16_t)iscsiw_get16(bhs + AT_TSIH);
    if (t->status == 0 && bhs[AT_FLAGS] & ISCSI_CONTINUE) {
        make(t, false); /* an empty one asks for the rest */
        return TALK_SEND;
    }
    if (t->step == TALK_OPERATIONAL && check_digests(t, err) != 0) return TALK_FAILED;
    if (t->status == 0 || t->status >> 8 == 1) {
        if (read_pairs(t, err) != 0) return TALK_FAILED;
    }
    t->text_len = 0;
    if (t->status >> 8 == 1 && *t->address) return TALK_REDIRECTED;
    if (t->status) {
        refused(t, err);
        return TALK_FAILED;
    }
    return advance(t, transit, err);
}

const char *iscsibe_login_status_words(unsigned status) {
    static const char *const initiator[] = {
        "initiator error",          "authentication failed",  "this initiator is not admitted",
        "no such target",           "the target was removed", "unsupported version",
        "too many connections",     "a parameter is missing", "the connection cannot join the session",
        "unsupported session type", "no such session",        "invalid request during login"
    };
    static const char *const target[] = { "target error", "the service is not available", "out of resources" };
    unsigned detail = status & 0xff;
    switch (status >> 8) {
    case 1: return "redirected, but not told where to";
    case 2: return detail < sizeof initiator / sizeof initiator[0] ? initiator[detail] : initiator[0];
    case 3: return detail < sizeof target / sizeof target[0] ? target[detail] : target[0];
    default: return "unknown status";
    }
}
