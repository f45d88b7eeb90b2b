/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What comes from a command line or a file as a target: url_parse, url_scrub, text_safe. Besides memory errors it looks
 * for broken promises: passwords in what is for output, text that is not fit to print. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int promise) {
    if (!promise) abort();
}

static char *copy(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);

    require(text != NULL);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

/* Every length of buffer: terminated, no controls, and the whole text where there is room for it. */
static void check_safe(const char *text, size_t size) {
    size_t len = size * 4 + 1, step = size / 16 + 1;

    for (size_t room = 1; room <= len; room += step) {
        char *buf = malloc(room);
        require(buf != NULL);
        require(text_safe(buf, room, text, size) == buf);
        for (size_t i = 0; i < strlen(buf); i++) require((unsigned char)buf[i] >= 0x20 && buf[i] != 0x7f);
        free(buf);
    }
}

/* The text for output is a target again, with the same parts, and with "***" for each password. */
static void check_text(const struct url *url) {
    struct url again;
    struct err err;

    require(url->text != NULL && url->path != NULL);
    require(url_parse(url->text, &again, &err) == 0);
    require(strcmp(again.scheme, url->scheme) == 0 && strcmp(again.path, url->path) == 0 && again.port == url->port);
    require(!again.host == !url->host && (!url->host || strcmp(again.host, url->host) == 0));
    require(!again.user == !url->user && (!url->user || strcmp(again.user, url->user) == 0));
    require(!again.password == !url->password && (!url->password || strcmp(again.password, "***") == 0));
    require(again.n_keys == url->n_keys);
    for (size_t i = 0; i < url->n_keys; i++) {
        require(strcmp(again.keys[i].name, url->keys[i].name) == 0);
        require(strcmp(again.keys[i].value, url->keys[i].value) == 0 || strcmp(again.keys[i].value, "***") == 0);
    }
    url_free(&again);
}

/* Scrubbing writes nothing but 'x', and leaves no password that the parser would find. */
static void check_scrub(const char *text, const struct url *url) {
    char *scrubbed = copy((const uint8_t *)text, strlen(text));
    struct url again;
    struct err err;

    url_scrub(scrubbed);
    require(strlen(scrubbed) == strlen(text));
    for (size_t i = 0; text[i]; i++) require(scrubbed[i] == text[i] || scrubbed[i] == 'x');
    if (url && url->password) {
        if (url_parse(scrubbed, &again, &err) == 0)
            require(again.password && strspn(again.password, "x") == strlen(again.password));
        url_free(&again);
    }
    free(scrubbed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = copy(data, size);
    struct url url;
    struct err err;

    check_safe((const char *)data, size);
    if (url_parse(text, &url, &err) == 0) {
        require(url_is_target(text));
        check_text(&url);
        check_scrub(text, &url);
    } else {
        require(err.status == STATUS_USAGE && strlen(err.msg) > 0 && url.text == NULL);
        check_scrub(text, NULL);
    }
    url_free(&url);
    free(text);
    return 0;
}
