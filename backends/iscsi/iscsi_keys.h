/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operational keys of a login (RFC 7143, section 13): what we offer, what the target answers, and what follows from
 * both. Pure. */
#ifndef BACKENDS_ISCSI_ISCSI_KEYS_H
#define BACKENDS_ISCSI_ISCSI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/kv.h"

enum iscsibe_key {
    KEY_HEADER_DIGEST, KEY_DATA_DIGEST, KEY_INITIAL_R2T, KEY_IMMEDIATE_DATA, KEY_MAX_BURST, KEY_FIRST_BURST,
    KEY_MAX_RECV, KEY_MAX_R2T, KEY_MAX_CONNECTIONS, KEY_RECOVERY_LEVEL, KEY_PDU_IN_ORDER, KEY_SEQUENCE_IN_ORDER,
    KEY_TIME2WAIT, KEY_TIME2RETAIN, KEY_COUNT
};

/* What the user wants to be offered. */
struct iscsibe_offer {
    bool header_digest, data_digest, initial_r2t, immediate_data;
    uint32_t max_burst, first_burst, max_recv, max_r2t;
};

/* Text of a login PDU: pairs, each with its NUL. */
struct iscsibe_text {
    char bytes[8192];
    size_t len;
};
void iscsibe_text_add(struct iscsibe_text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct iscsibe_terms {
    uint32_t offer[KEY_COUNT];    /* yes/no and digests: 0 or 1 */
    uint32_t value[KEY_COUNT];    /* agreed on; valid after iscsibe_terms_finish. KEY_MAX_RECV: what we declared */
    bool answered[KEY_COUNT];
    bool discovery;               /* only the keys that make sense there are offered */
    uint32_t target_max_recv;     /* what the target declared, or its default */
    char offered[512], answers[768]; /* "InitialR2T=No MaxBurstLength=..." for people; never a CHAP key */
};

void iscsibe_terms_begin(struct iscsibe_terms *t, const struct iscsibe_offer *offer);
void iscsibe_terms_offer(struct iscsibe_terms *t, struct iscsibe_text *out); /* all keys */
/* One pair from the target. What it offers itself and we do not know is answered in `reply`. */
int iscsibe_terms_answer(struct iscsibe_terms *t, const char *key, const char *value, struct iscsibe_text *reply,
                         struct err *err);
/* After the last answer: defaults for what was not answered, and what must hold between the keys. */
int iscsibe_terms_finish(struct iscsibe_terms *t, struct err *err);
void iscsibe_terms_facts(const struct iscsibe_terms *t, struct kv *out);

#endif
