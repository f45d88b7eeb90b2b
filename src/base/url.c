/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/text.h"

#define HOST_MAX 255
#define URL_FORMS "nfs://HOST/EXPORT/PATH, iscsi://HOST/IQN/LUN, null:, file:/PATH, /PATH"

/* A part of the text that is being parsed. */
struct span {
    const char *at;
    size_t n;
};

struct span_safe { char s[64]; };

static struct span_safe safe(struct span part) {
    struct span_safe out;

    text_safe(out.s, sizeof(out.s), part.at, part.n);
    return out;
}

static struct span span_to(const char *from, const char *to) {
    return (struct span){ from, (size_t)(to - from) };
}

static int no_memory(struct err *err) {
    return err_set(err, STATUS_USAGE, "out of memory while reading a URL");
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* One decoded byte at *i, which is moved behind it; -1: '%' without two hex digits. */
static int decode_byte(struct span in, size_t *i) {
    char c = in.at[(*i)++];

    if (c != '%') return (unsigned char)c;
    if (in.n - *i < 2) return -1;
    int high = hex_digit(in.at[*i]), low = hex_digit(in.at[*i + 1]);
    if (high < 0 || low < 0) return -1;
    *i += 2;
    return high << 4 | low;
}

/* `what` names the part in errors; the part itself is not shown, for it may be a password. */
static int decode(struct span in, const char *what, char **out, struct err *err) {
    size_t n = 0;
    char *buf = malloc(in.n + 1);

    if (!buf) return no_memory(err);
    for (size_t i = 0; i < in.n;) {
        int c = decode_byte(in, &i);
        if (c <= 0) {
            explicit_bzero(buf, in.n + 1);
            free(buf);
            return err_set(err, STATUS_USAGE, "percent-encoding in the %s: %s", what,
                           c == 0 ? "%00 is not allowed" : "'%' needs two hex digits after it (a literal '%' is %25)");
        }
        buf[n++] = (char)c;
    }
    buf[n] = '\0';
    *out = buf;
    return 0;
}

static bool is_secret_key(const char *name) {
    static const char *const ends[] = { "password", "secret" };
    size_t n = strlen(name);

    for (unsigned i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t len = strlen(ends[i]);
        if (n >= len && strcasecmp(name + n - len, ends[i]) == 0) return true;
    }
    return false;
}

static bool key_equal(const char *a, const char *b) {
    for (; *a && *b; a++, b++)
        if (*a != *b && !((*a == '-' || *a == '_') && (*b == '-' || *b == '_'))) return false;
    return *a == *b;
}

/* ---- userinfo, host, port ---- */

static int parse_user(struct url *url, struct span user, struct err *err) {
    const char *percent = memchr(user.at, '%', user.n);
    struct span name = percent ? span_to(user.at, percent) : user;

    if (strcmp(url->scheme, "iscsi") != 0)
        return err_set(err, STATUS_USAGE, "user: %s:// has no USER@ before the host (nfs takes the keys uid= and gid=)",
                       url->scheme);
    if (name.n == 0) return err_set(err, STATUS_USAGE, "user: the name before '%s' is empty", percent ? "%" : "@");
    if (!percent && memchr(name.at, ':', name.n) && strncmp(name.at, "iqn.", 4) != 0)
        return err_set(err, STATUS_USAGE, "user: the password is separated by '%%', not ':' (write USER%%PASS@)");
    url->user = strndup(name.at, name.n);
    if (!url->user) return no_memory(err);
    if (!percent) return 0;
    return decode(span_to(percent + 1, user.at + user.n), "password", &url->password, err);
}

/* [v6] with an optional zone, which RFC 6874 introduces by %25 and people by '%'. */
static int parse_brackets(struct url *url, struct span inner, struct err *err) {
    const char *percent = memchr(inner.at, '%', inner.n);
    struct span address = percent ? span_to(inner.at, percent) : inner, zone = { NULL, 0 };
    char literal[INET6_ADDRSTRLEN];
    struct in6_addr parsed;

    if (percent) {
        zone = span_to(percent + 1, inner.at + inner.n);
        if (zone.n > 2 && strncmp(zone.at, "25", 2) == 0) zone = span_to(zone.at + 2, zone.at + zone.n);
        for (size_t i = 0; i < zone.n; i++)
            if (!isalnum((unsigned char)zone.at[i]) && !strchr("_.-", zone.at[i])) zone.n = 0;
        if (zone.n == 0) return err_set(err, STATUS_USAGE, "host: '[%s]' has a bad zone (write [fe80::1%%25eth0])",
                                        safe(inner).s);
    }
    if (address.n < sizeof(literal)) {
        memcpy(literal, address.at, address.n);
        literal[address.n] = '\0';
    }
    if (address.n >= sizeof(literal) || inet_pton(AF_INET6, literal, &parsed) != 1)
        return err_set(err, STATUS_USAGE, "host: '[%s]' is not an IPv6 address", safe(inner).s);

    url->host = malloc(inner.n + 1);
    if (!url->host) return no_memory(err);
    memcpy(url->host, address.at, address.n);
    if (zone.n > 0) {
        url->host[address.n++] = '%';
        memcpy(url->host + address.n, zone.at, zone.n);
    }
    url->host[address.n + zone.n] = '\0';
    return 0;
}

static int parse_name(struct url *url, struct span name, struct err *err) {
    if (name.n == 0) return err_set(err, STATUS_USAGE, "host: it is empty (write %s://HOST/...)", url->scheme);
    if (name.n > HOST_MAX) return err_set(err, STATUS_USAGE, "host: longer than %d characters", HOST_MAX);
    for (size_t i = 0; i < name.n; i++) {
        /* Not shown: a password with a raw '/' or '?' in it ends up here. */
        if (!isalnum((unsigned char)name.at[i]) && !strchr("._-", name.at[i]))
            return err_set(err, STATUS_USAGE, "host: only letters, digits, '.', '-' and '_' are allowed "
                           "(in a password, '/', '?', '@' and '%%' are written %%2F, %%3F, %%40 and %%25)");
    }
    url->host = strndup(name.at, name.n);
    return url->host ? 0 : no_memory(err);
}

static int parse_port(struct url *url, struct span port, struct err *err) {
    unsigned value = 0;

    for (size_t i = 0; i < port.n; i++) {
        if (port.at[i] < '0' || port.at[i] > '9' || value > UINT16_MAX) {
            value = 0;
            break;
        }
        value = value * 10 + (unsigned)(port.at[i] - '0');
    }
    if (value < 1 || value > UINT16_MAX)
        return err_set(err, STATUS_USAGE, "port: it is not a number from 1 to 65535");
    url->port = (uint16_t)value;
    return 0;
}

/* [USER%PASS@]HOST[:PORT] */
static int parse_authority(struct url *url, struct span a, struct err *err) {
    const char *end = a.at + a.n, *at = memrchr(a.at, '@', a.n), *host = at ? at + 1 : a.at, *colon;

    if (at && parse_user(url, span_to(a.at, at), err) != 0) return -1;
    if (host < end && *host == '[') {
        const char *close = memchr(host, ']', (size_t)(end - host));
        if (!close) return err_set(err, STATUS_USAGE, "host: ']' is missing");
        if (parse_brackets(url, span_to(host + 1, close), err) != 0) return -1;
        if (close + 1 == end) return 0;
        if (close[1] != ':') return err_set(err, STATUS_USAGE, "host: only ':PORT' or '/' may follow ']'");
        return parse_port(url, span_to(close + 2, end), err);
    }
    colon = memchr(host, ':', (size_t)(end - host));
    if (colon && memchr(colon + 1, ':', (size_t)(end - colon - 1)))
        return err_set(err, STATUS_USAGE, "host: an IPv6 address stands in brackets (write [::1] or [::1]:PORT)");
    if (parse_name(url, span_to(host, colon ? colon : end), err) != 0) return -1;
    return colon ? parse_port(url, span_to(colon + 1, end), err) : 0;
}

/* ---- path, keys ---- */

static int parse_key(struct url *url, struct span pair, struct err *err) {
    const char *equal = memchr(pair.at, '=', pair.n);
    struct url_key *key = &url->keys[url->n_keys];

    if (pair.n == 0 || equal == pair.at)
        return err_set(err, STATUS_USAGE, "key: an empty one after '?' or '&' (write ?key=value&key=value)");
    if (!equal)
        return err_set(err, STATUS_USAGE, "key: '%s' has no value (write %s=VALUE)", safe(pair).s, safe(pair).s);
    url->n_keys++;
    if (decode(span_to(pair.at, equal), "key", &key->name, err) != 0 ||
        decode(span_to(equal + 1, pair.at + pair.n), "value of a key", &key->value, err) != 0)
        return -1;
    for (size_t i = 0; i + 1 < url->n_keys; i++) {
        if (key_equal(url->keys[i].name, key->name))
            return err_set(err, STATUS_USAGE, "key: '%s' stands there twice",
                           safe((struct span){ key->name, strlen(key->name) }).s);
    }
    return 0;
}

/* What follows the '?'. */
static int parse_keys(struct url *url, const char *query, struct err *err) {
    if (*query == '\0') return 0;
    url->keys = calloc(URL_KEYS, sizeof(*url->keys));
    if (!url->keys) return no_memory(err);
    for (const char *end;; query = end + 1) {
        end = strchrnul(query, '&');
        if (url->n_keys == URL_KEYS) return err_set(err, STATUS_USAGE, "key: more than %d of them", URL_KEYS);
        if (parse_key(url, span_to(query, end), err) != 0) return -1;
        if (*end == '\0') return 0;
    }
}

static int parse_path(struct url *url, struct span path, struct err *err) {
    if (strcmp(url->scheme, "iscsi") == 0 && memchr(path.at, '@', path.n))
        return err_set(err, STATUS_USAGE, "path: no '@' belongs in IQN/LUN "
                       "(in a password, '/' and '@' are written %%2F and %%40)");
    return decode(path, "path", &url->path, err);
}

/* `text` again, with "***" for the passwords. Only called when all of it was understood: the positions are certain. */
static int make_text(struct url *url, const char *text, const char *rest, struct err *err) {
    const char *in = text, *query = strchr(rest, '?');
    char *out = malloc(strlen(text) + strlen("***") * (url->n_keys + 1) + 1), *p = out;

    if (!out) return no_memory(err);
    if (url->password) {
        const char *percent = strchr(rest, '%');
        p = mempcpy(p, text, (size_t)(percent + 1 - text));
        p = mempcpy(p, "***", 3);
        in = memrchr(rest, '@', strcspn(rest, "/?"));
    }
    for (size_t i = 0; i < url->n_keys; i++) {
        const char *value = strchr(query, '=') + 1;

        query = value + strcspn(value, "&");
        if (!is_secret_key(url->keys[i].name)) continue;
        p = mempcpy(p, in, (size_t)(value - in));
        p = mempcpy(p, "***", 3);
        in = query;
    }
    strcpy(p, in);
    url->text = out;
    return 0;
}

/* ---- the whole ---- */

static int refuse_scheme(const char *text, struct err *err) {
    size_t n = strcspn(text, ":/?=@% ");
    struct span scheme = { text, n };

    if (strncmp(text, "nfs:", 4) == 0 || strncmp(text, "iscsi:", 6) == 0)
        return err_set(err, STATUS_USAGE, "scheme: '//' must follow '%s:' (write %s://HOST/...)", safe(scheme).s,
                       safe(scheme).s);
    if (text[n] == ':')
        return err_set(err, STATUS_USAGE, "scheme: '%s' is none of the known forms: " URL_FORMS, safe(scheme).s);
    return err_set(err, STATUS_USAGE, "this is no target: known forms are " URL_FORMS);
}

static int parse_remote(struct url *url, const char *rest, struct err *err) {
    const char *path = rest + strcspn(rest, "/?"), *query = strchrnul(path, '?');

    if (parse_authority(url, span_to(rest, path), err) != 0) return -1;
    if (parse_path(url, span_to(path, query), err) != 0) return -1;
    return *query ? parse_keys(url, query + 1, err) : 0;
}

static int parse_local(struct url *url, const char *rest, struct err *err) {
    const char *query;

    if (strcmp(url->scheme, "null") == 0 && *rest != '\0' && *rest != '?')
        return err_set(err, STATUS_USAGE, "path: null: has none (write null: or null:?key=value)");
    if (strcmp(url->scheme, "file") == 0) {
        if (strncmp(rest, "///", 3) == 0) rest += 2; /* file:///PATH: an empty host */
        if (*rest != '/' || rest[1] == '/')
            return err_set(err, STATUS_USAGE, "path: file: takes an absolute path and no host (write file:/PATH)");
    }
    query = strchrnul(rest, '?');
    if (parse_path(url, span_to(rest, query), err) != 0) return -1;
    return *query ? parse_keys(url, query + 1, err) : 0;
}

/* What follows the scheme and its ':' or '://' (a bare path: all of it), NULL if it is none of ours. */
static const char *skip_scheme(const char *text, const char **name) {
    static const struct { const char *name, *prefix; } schemes[] = {
        { "nfs", "nfs://" }, { "iscsi", "iscsi://" }, { "null", "null:" }, { "file", "file:" }
    };

    for (unsigned i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t n = strlen(schemes[i].prefix);
        if (strncmp(text, schemes[i].prefix, n) == 0) {
            *name = schemes[i].name;
            return text + n;
        }
    }
    *name = "/";
    return *text == '/' ? text : NULL;
}

int url_parse(const char *text, struct url *url, struct err *err) {
    const char *scheme, *rest = skip_scheme(text, &scheme);
    int rc;

    memset(url, 0, sizeof(*url));
    if (!rest) return refuse_scheme(text, err);
    strcpy(url->scheme, scheme);
    if (rest == text) {
        url->path = strdup(text);
        rc = url->path ? 0 : no_memory(err);
    } else if (rest[-1] == '/') {
        rc = parse_remote(url, rest, err);
    } else {
        rc = parse_local(url, rest, err);
    }
    return rc == 0 ? make_text(url, text, rest, err) : -1;
}

static void wipe(char *s) {
    if (s) explicit_bzero(s, strlen(s));
    free(s);
}

void url_free(struct url *url) {
    free(url->text);
    free(url->user);
    wipe(url->password);
    free(url->host);
    free(url->path);
    for (size_t i = 0; i < url->n_keys; i++) {
        free(url->keys[i].name);
        wipe(url->keys[i].value);
    }
    free(url->keys);
    memset(url, 0, sizeof(*url));
}

int url_is_target(const char *text) {
    const char *scheme;

    return skip_scheme(text, &scheme) != NULL;
}

/* ---- scrubbing: errs on the side of too much, for it also sees words that are wrong ---- */

static void scrub_span(char *from, const char *to) {
    while (from < to) *from++ = 'x';
}

/* From the first '%' to `at`; without one, from the first ':' to the '@' that would end the user of a URL. */
static void scrub_userinfo(char *rest, char *at) {
    char *from = at ? memchr(rest, '%', (size_t)(at - rest)) : NULL;

    if (!from) {
        at = memrchr(rest, '@', strcspn(rest, "/?"));
        from = at ? memchr(rest, ':', (size_t)(at - rest)) : NULL;
    }
    if (from) scrub_span(from + 1, at);
}

/* An iscsi: word ends its password at the last '@': one that holds '@', '/' or '?' as they are is before it. Any other
 * scheme only has a password by mistake, but it may well have an '@' in its path. */
static void scrub_users(char *text) {
    char *iscsi = strcasestr(text, "iscsi:"), *other = strstr(text, "://");

    if (other) {
        other += strlen("://");
        scrub_userinfo(other, memrchr(other, '@', strcspn(other, "/?")));
    }
    if (iscsi) {
        iscsi += strlen("iscsi:");
        iscsi += strspn(iscsi, "/");
        scrub_userinfo(iscsi, strrchr(iscsi, '@'));
    }
}

static bool is_secret_span(struct span name) {
    char buf[64];
    size_t n = 0;

    if (name.n >= sizeof(buf)) /* its end decides */
        name = span_to(name.at + name.n - (sizeof(buf) - 1), name.at + name.n);
    for (size_t i = 0; i < name.n;) {
        int c = decode_byte(name, &i);
        buf[n++] = c > 0 ? (char)c : '%';
    }
    buf[n] = '\0';
    return is_secret_key(buf);
}

static void scrub_keys(char *text) {
    char *name = text, *end;

    for (char *p = text; *p; p++) {
        if (*p == '=' && is_secret_span(span_to(name, p))) {
            end = strchrnul(p, '&');
            scrub_span(p + 1, end);
            if (!*end) return;
            p = end;
        }
        if (*p == '=' || *p == '&' || *p == '?') name = p + 1;
    }
}

void url_scrub(char *text) {
    scrub_users(text);
    scrub_keys(text);
}
