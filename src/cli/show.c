/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/show.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/url.h"

const char *show_word(char *buf, size_t len, const char *word) {
    char *copy = strdup(word);
    if (len) buf[0] = '\0';
    if (copy) {
        url_scrub(copy);
        text_safe(buf, len, copy, strlen(copy));
        explicit_bzero(copy, strlen(copy));
    }
    free(copy);
    return buf;
}
