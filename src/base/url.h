/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Target URLs: SCHEME://[USER%PASS@]HOST[:PORT]/PATH[?key=value&...], and the host-less forms null:[?...] file:/PATH.
 *
 * Everything is percent-decoded, but in USER%PASS@ the first '%' is the separator: so USER is taken as it stands (a
 * name with '%' or '@' in it needs the backend's key), and PASS is percent-decoded: write its '%' as %25, '@' as %40,
 * '/' as %2F, '?' as %3F. Only iscsi:// has a user. IPv6 addresses stand in brackets, with their zone if need be:
 * [fe80::1%25eth0]. Every key needs a value (k=v, v may be empty) and may stand once. Values of keys whose name ends in
 * "password" or "secret" are passwords too. */
#ifndef BASE_URL_H
#define BASE_URL_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define URL_KEYS 64

struct url_key { char *name, *value; };

struct url {
    char *text;           /* as given, passwords replaced by "***": for output, through text_safe. NULL after failure */
    char scheme[16];      /* "nfs", "iscsi", "null", "file"; "/" for a bare path */
    char *user, *password;/* NULL if absent */
    char *host;           /* NULL if the scheme has none; IPv6 without brackets */
    uint16_t port;        /* 0 if not given */
    char *path;           /* with its leading '/', percent-decoded (a bare path is taken literally); "" if absent */
    struct url_key *keys; /* percent-decoded, in order */
    size_t n_keys;
};

/* Zero on success; every pointer is owned by `url` and freed by url_free (also after failure). Errors (status USAGE)
 * name the part: "port", "host", "percent-encoding", "key". NUL bytes through %00 are refused. A bare path has no keys:
 * everything in it is the path. Passwords are wiped by url_free, and never in an error. Never reads
 * beyond `text`; fuzzed. */
int url_parse(const char *text, struct url *url, struct err *err);
void url_free(struct url *url);
/* Is it the beginning of a target word: "nfs://" "iscsi://" "null:" "file:" or "/"? */
int url_is_target(const char *text);
/* Overwrites in place, with 'x', what is a password in an argv word ([LABEL=]URL, key=value), or may be meant as one in
 * a word that url_parse refuses. It may hit more than that: parse a copy. */
void url_scrub(char *text);

#endif
