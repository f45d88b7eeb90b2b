/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A backend's configuration from a URL, as the core makes it: for tests that stop where a connection would begin. */
#ifndef TESTS_UNIT_BACKEND_CONF_H
#define TESTS_UNIT_BACKEND_CONF_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backend.h"

static inline void conf_end(const struct backend *b, void *conf) {
    b->conf_free(conf);
    option_free(b->options, conf);
    free(conf);
}

/* As the core does it: defaults, URL, the URL's keys, cross-check. NULL after an error. */
static inline void *conf_from(const struct backend *b, const char *text, struct err *err) {
    struct url url;
    assert_int_equal(url_parse(text, &url, err), 0);
    void *conf = calloc(1, b->conf_size);
    int rc = option_defaults(b->options, conf, err);
    if (rc == 0) rc = b->configure(&url, conf, err);
    for (size_t i = 0; rc == 0 && i < url.n_keys; i++)
        rc = option_set(b->options, conf, url.keys[i].name, url.keys[i].value, err);
    if (rc == 0) rc = b->check(conf, err);
    url_free(&url);
    if (rc == 0) return conf;
    conf_end(b, conf);
    return NULL;
}

static inline void refused(const struct backend *b, const char *text, const char *word) {
    struct err err;
    assert_null(conf_from(b, text, &err));
    assert_int_equal(err.status, STATUS_USAGE);
    if (!strstr(err.msg, word)) fail_msg("%s: \"%s\" does not say \"%s\"", text, err.msg, word);
}

#endif
