/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Numbers with units: what is taken is written back as text that means the same, what is refused has a message. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int promise) {
    if (!promise) abort();
}

static void check(int (*parse)(const char *, uint64_t *, struct err *), const char *(*show)(char *, size_t, uint64_t),
                  const char *(*human)(char *, size_t, uint64_t), const char *text) {
    uint64_t value = 0, again = 0;
    struct err err = { 0 };
    char buf[40];

    if (parse(text, &value, &err) != 0) {
        require(err.status == STATUS_USAGE && strlen(err.msg) > 0);
        return;
    }
    require(*text >= '0' && *text <= '9');
    if (!show) return;
    require(strlen(show(buf, sizeof(buf), value)) < sizeof(buf) - 1);
    require(parse(buf, &again, &err) == 0 && again == value);
    require(strlen(human(buf, sizeof(buf), value)) < sizeof(buf) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = malloc(size + 1);
    struct err err;
    int truth = 7;

    require(text != NULL);
    if (size > 0) memcpy(text, data, size);
    text[size] = '\0';
    check(units_parse_size, units_size, units_size_human, text);
    check(units_parse_time, units_time, units_duration_human, text);
    check(units_parse_uint, NULL, NULL, text);
    require(units_parse_bool(text, &truth, &err) == 0 ? truth == 0 || truth == 1 : truth == 7);
    free(text);
    return 0;
}
