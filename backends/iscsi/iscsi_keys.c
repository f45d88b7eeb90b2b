/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "backends/iscsi/iscsi_keys.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define DIGEST_NAME "CRC32C"

/* How the result follows from what both sides say. */
enum rule { RULE_DIGEST, RULE_OR, RULE_AND, RULE_MIN, RULE_MAX, RULE_DECLARED };

static const struct {
    const char *name, *fact;
    enum rule rule;
    uint32_t min, max, otherwise; /* otherwise: the RFC's default, when a side says nothing */
} keys[KEY_COUNT] = {
    [KEY_HEADER_DIGEST] = { "HeaderDigest", "header_digest", RULE_DIGEST, 0, 1, 0 },
    [KEY_DATA_DIGEST] = { "DataDigest", "data_digest", RULE_DIGEST, 0, 1, 0 },
    [KEY_INITIAL_R2T] = { "InitialR2T", "initial_r2t", RULE_OR, 0, 1, 1 },
    [KEY_IMMEDIATE_DATA] = { "ImmediateData", "immediate_data", RULE_AND, 0, 1, 1 },
    [KEY_MAX_BURST] = { "MaxBurstLength", "max_burst", RULE_MIN, 512, 16777215, 262144 },
    [KEY_FIRST_BURST] = { "FirstBurstLength", "first_burst", RULE_MIN, 512, 16777215, 65536 },
    [KEY_MAX_RECV] = { "MaxRecvDataSegmentLength", "max_recv", RULE_DECLARED, 512, 16777215, 8192 },
    [KEY_MAX_R2T] = { "MaxOutstandingR2T", "max_outstanding_r2t", RULE_MIN, 1, 65535, 1 },
    [KEY_MAX_CONNECTIONS] = { "MaxConnections", "max_connections", RULE_MIN, 1, 65535, 1 },
    [KEY_RECOVERY_LEVEL] = { "ErrorRecoveryLevel", "error_recovery_level", RULE_MIN, 0, 2, 0 },
    [KEY_PDU_IN_ORDER] = { "DataPDUInOrder", "data_pdu_in_order", RULE_OR, 0, 1, 1 },
    [KEY_SEQUENCE_IN_ORDER] = { "DataSequenceInOrder", "data_sequence_in_order", RULE_OR, 0, 1, 1 },
    [KEY_TIME2WAIT] = { "DefaultTime2Wait", "time2wait", RULE_MAX, 0, 3600, 2 },
    [KEY_TIME2RETAIN] = { "DefaultTime2Retain", "time2retain", RULE_MIN, 0, 3600, 20 },
};

void iscsibe_text_add(struct iscsibe_text *t, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(t->bytes + t->len, sizeof t->bytes - t->len, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof t->bytes - t->len) t->len += (size_t)n + 1;
}

static void note(char *list, size_t size, const char *key, const char *value) {
    size_t used = strlen(list);
    char safe[160];
    text_safe(safe, sizeof safe, value, strlen(value));
    snprintf(list + used, size - used, "%s%s=%s", used ? " " : "", key, safe);
}

void iscsibe_terms_begin(struct iscsibe_terms *t, const struct iscsibe_offer *o) {
    memset(t, 0, sizeof *t);
    t->offer[KEY_HEADER_DIGEST] = o->header_digest;
    t->offer[KEY_DATA_DIGEST] = o->data_digest;
    t->offer[KEY_INITIAL_R2T] = o->initial_r2t;
    t->offer[KEY_IMMEDIATE_DATA] = o->immediate_data;
    t->offer[KEY_MAX_BURST] = o->max_burst;
    t->offer[KEY_FIRST_BURST] = o->first_burst;
    t->offer[KEY_MAX_RECV] = o->max_recv;
    t->offer[KEY_MAX_R2T] = o->max_r2t;
    t->offer[KEY_MAX_CONNECTIONS] = 1;
    t->offer[KEY_PDU_IN_ORDER] = t->offer[KEY_SEQUENCE_IN_ORDER] = 1; /* what the receiving side counts on */
    t->offer[KEY_TIME2WAIT] = keys[KEY_TIME2WAIT].otherwise;
    t->target_max_recv = keys[KEY_MAX_RECV].otherwise;
}

void iscsibe_terms_offer(struct iscsibe_terms *t, struct iscsibe_text *out) {
    for (unsigned k = 0; k < KEY_COUNT; k++) {
        char value[24];
        if (t->discovery && k > KEY_DATA_DIGEST && k != KEY_MAX_RECV) continue;
        if (keys[k].rule == RULE_DIGEST) snprintf(value, sizeof value, "%s", t->offer[k] ? DIGEST_NAME : "None");
        else if (keys[k].rule == RULE_OR || keys[k].rule == RULE_AND)
            snprintf(value, sizeof value, "%s", t->offer[k] ? "Yes" : "No");
        else snprintf(value, sizeof value, "%u", (unsigned)t->offer[k]);
        iscsibe_text_add(out, "%s=%s", keys[k].name, value);
        note(t->offered, sizeof t->offered, keys[k].name, value);
    }
}

/* Decimal or 0x hexadecimal. */
static bool number(const char *text, uint32_t *value) {
    bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';
    uint64_t v = 0;
    if (hex) text += 2;
    if (!*text) return false;
    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text, low = ch | 0x20;
        unsigned digit = 16;
        if (ch >= '0' && ch <= '9') digit = ch - (unsigned)'0';
        else if (hex && low >= 'a' && low <= 'f') digit = low - (unsigned)'a' + 10;
        if (digit == 16 || v > UINT32_MAX) return false;
        v = v * (hex ? 16 : 10) + digit;
    }
    *value = (uint32_t)v;
    return v <= UINT32_MAX;
}

static bool parse(enum rule rule, const char *text, uint32_t *value) {
    const char *no = rule == RULE_DIGEST ? "None" : "No", *yes = rule == RULE_DIGEST ? DIGEST_NAME : "Yes";
    if (rule >= RULE_MIN) return number(text, value);
    *value = strcmp(text, yes) == 0;
    return *value || strcmp(text, no) == 0;
}

static uint32_t combine(enum rule rule, uint32_t ours, uint32_t theirs) {
    switch (rule) {
    case RULE_OR: return ours | theirs;
    case RULE_AND: return ours & theirs;
    case RULE_MIN: return ours < theirs ? ours : theirs;
    case RULE_MAX: return ours > theirs ? ours : theirs;
    case RULE_DIGEST: return theirs;
    default: return ours;
    }
}

/* A key that the target brings up and that is none of the above. Those of the first RFC that a later one withdrew must
 * be known all the same. */
static void unknown(const char *key, struct iscsibe_text *reply) {
    static const char *const told[] = { "TargetAlias", "TargetPortalGroupTag", "TargetAddress",  "TargetName",
                                        "AuthMethod",  "InitiatorName",        "InitiatorAlias", "SessionType" };
    static const char *const withdrawn[] = { "IFMarker", "OFMarker", "IFMarkInt", "OFMarkInt" };
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        if (strcmp(key, told[i]) == 0) return; /* declared, not offered: no answer */
    for (size_t i = 0; i < sizeof withdrawn / sizeof withdrawn[0]; i++)
        if (strcmp(key, withdrawn[i]) == 0) {
            iscsibe_text_add(reply, "%s=Reject", key);
            return;
        }
    if (strcmp(key, "TaskReporting") == 0) iscsibe_text_add(reply, "%s=RFC3720", key);
    else iscsibe_text_add(reply, "%s=NotUnderstood", key);
}

int iscsibe_terms_answer(struct iscsibe_terms *t, const char *key, const char *value, struct iscsibe_text *reply,
                         struct err *err) {
    char safe[80];
    unsigned k = 0;
    uint32_t v;

    text_safe(safe, sizeof safe, value, strlen(value));
    while (k < KEY_COUNT && strcmp(key, keys[k].name) != 0) k++;
    if (k == KEY_COUNT) {
        char name[64];
        note(t->answers, sizeof t->answers, text_safe(name, sizeof name, key, strlen(key)), value);
        if (strcmp(value, "NotUnderstood") != 0) unknown(key, reply);
        return 0;
    }
    note(t->answers, sizeof t->answers, keys[k].name, value);
    if (strcmp(value, "Irrelevant") == 0 || strcmp(value, "NotUnderstood") == 0) return 0;
    if (strcmp(value, "Reject") == 0)
        return err_set(err, STATUS_TARGET, "login: the target rejects our offer of %s (offered: %s)", keys[k].name,
                       t->offered);
    if (t->answered[k]) return err_set(err, STATUS_TARGET, "login: the target answers %s twice", keys[k].name);
    if (!parse(keys[k].rule, value, &v) || v < keys[k].min || v > keys[k].max)
        return err_set(err, STATUS_TARGET, "login: the target answers %s=%s, which makes no sense", keys[k].name, safe);
    if (keys[k].rule == RULE_DIGEST && v != t->offer[k])
        return err_set(err, STATUS_TARGET, "login: the target chooses %s=%s, which was not offered", keys[k].name,
                       safe);
    t->answered[k] = true;
    if (k == KEY_MAX_RECV) t->target_max_recv = v;
    t->value[k] = combine(keys[k].rule, t->offer[k], v);
    return 0;
}

int iscsibe_terms_finish(struct iscsibe_terms *t, struct err *err) {
    for (unsigned k = 0; k < KEY_COUNT; k++) {
        if (t->answered[k]) continue;
        t->value[k] = combine(keys[k].rule, t->offer[k], keys[k].otherwise);
        if (keys[k].rule == RULE_DIGEST && t->offer[k])
            return err_set(err, STATUS_TARGET, "login: the target does not do %s=%s: %s=none", keys[k].name,
                           DIGEST_NAME, keys[k].fact);
    }
    if (t->value[KEY_FIRST_BURST] > t->value[KEY_MAX_BURST]) t->value[KEY_FIRST_BURST] = t->value[KEY_MAX_BURST];
    return 0;
}

void iscsibe_terms_facts(const struct iscsibe_terms *t, struct kv *out) {
    for (unsigned k = 0; k < KEY_COUNT; k++) {
        if (keys[k].rule == RULE_DIGEST) kv_text(out, keys[k].fact, "%s", t->value[k] ? "crc32c" : "none");
        else if (keys[k].rule == RULE_OR || keys[k].rule == RULE_AND) kv_bool(out, keys[k].fact, t->value[k] != 0);
        else kv_uint(out, keys[k].fact, t->value[k]);
    }
    kv_uint(out, "target_max_recv", t->target_max_recv);
    kv_text(out, "login_offered", "%s", t->offered);
    kv_text(out, "login_answered", "%s", *t->answers ? t->answers : "nothing");
}
