/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A target over the null backend on a given clock, from a URL, for the tests of the engine. */
#ifndef TESTS_NULLTARGET_H
#define TESTS_NULLTARGET_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/target.h"

static inline void nulltarget_open(struct target *t, const char *label, const char *url_text, struct clock *clock) {
    struct err err;
    struct url url;
    memset(t, 0, sizeof *t);
    snprintf(t->label, sizeof t->label, "%s", label);
    t->clock = clock;
    t->n_members = 1;
    struct member *m = &t->member[0];
    if (url_parse(url_text, &url, &err) != 0) fail_msg("%s", err.msg);
    m->url = strdup(url.text);
    m->backend = backend_for_url(&url, &err);
    if (!m->backend) fail_msg("%s", err.msg);
    m->conf = calloc(1, m->backend->conf_size);
    if (option_defaults(m->backend->options, m->conf, &err) != 0) fail_msg("%s", err.msg);
    if (m->backend->configure && m->backend->configure(&url, m->conf, &err) != 0) fail_msg("%s", err.msg);
    for (size_t i = 0; i < url.n_keys; i++)
        if (option_set(m->backend->options, m->conf, url.keys[i].name, url.keys[i].value, &err) != 0)
            fail_msg("%s", err.msg);
    url_free(&url);
    if (target_open_read(t, &err) != 0) fail_msg("%s", err.msg);
    if (target_member_reopen(t, 0, OPEN_WRITE, 0, &err) != 0) fail_msg("%s", err.msg);
    if (target_assemble(t, &err) != 0) fail_msg("%s", err.msg);
}

#endif
