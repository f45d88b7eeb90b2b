/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "option/option.h"

struct conf {
    uint64_t depth, bs, runtime, free_number;
    bool stonewall, other;
    int sync;
    char *name, *secret;
    uint64_t percent, parsed;
};

/* "N%"; also counts its calls in the configuration that it is handed. */
static int percent_parse(const char *value, void *field, void *conf, struct err *err) {
    char number[16];
    size_t n = strlen(value);

    ((struct conf *)conf)->parsed++;
    if (n < 2 || n > sizeof(number) || value[n - 1] != '%')
        return err_set(err, STATUS_USAGE, "'%s' is not a percentage (write 50%%)", value);
    memcpy(number, value, n - 1);
    number[n - 1] = '\0';
    return units_parse_uint(number, field, err);
}

static int percent_show(const void *field, const void *conf, char *buf, size_t len) {
    const uint64_t *percent = field;

    assert_ptr_equal(field, &((const struct conf *)conf)->percent);
    if (*percent == 0) return 0;
    snprintf(buf, len, "%u%%", (unsigned)*percent);
    return 1;
}

static const char *const sync_names[] = { "none", "datastore", "dsync", "sync", NULL };

static const struct option_entry table[] = {
    { .name = "iodepth", .type = OPTION_UINT, .offset = offsetof(struct conf, depth), .min = 1, .max = 65536,
      .def = "1", .value = "N", .help = "I/Os outstanding" },
    { .name = "bs", .alias = "block_size", .type = OPTION_SIZE, .offset = offsetof(struct conf, bs), .min = 512,
      .max = 16 << 20, .def = "4k", .value = "SIZE", .help = "bytes per I/O" },
    { .name = "ramp_time", .type = OPTION_TIME, .offset = offsetof(struct conf, runtime), .max = 3600000000000,
      .value = "TIME", .help = "time before the window" },
    { .name = "free_number", .type = OPTION_UINT, .offset = offsetof(struct conf, free_number), .value = "N",
      .help = "any number" },
    { .name = "stonewall", .type = OPTION_BOOL, .offset = offsetof(struct conf, stonewall), .help = "wait" },
    { .name = "other", .type = OPTION_BOOL, .offset = offsetof(struct conf, other), .def = "yes", .value = "BOOL",
      .help = "a switch that is on" },
    { .name = "sync", .type = OPTION_ENUM, .offset = offsetof(struct conf, sync), .names = sync_names, .def = "dsync",
      .value = "none|datastore|dsync|sync", .help = "durability" },
    { .name = "name", .type = OPTION_TEXT, .offset = offsetof(struct conf, name), .value = "TEXT", .help = "a name" },
    { .name = "password", .type = OPTION_SECRET, .offset = offsetof(struct conf, secret), .value = "TEXT",
      .help = "a secret" },
    { .name = "share", .type = OPTION_CUSTOM, .offset = offsetof(struct conf, percent), .def = "25%", .value = "N%",
      .help = "part of it", .parse = percent_parse, .show = percent_show },
    { .name = NULL }
};

static int setup(void **state) {
    struct conf *conf = calloc(1, sizeof(*conf));
    struct err err;

    if (!conf || option_defaults(table, conf, &err) != 0) return -1;
    *state = conf;
    return 0;
}

static int teardown(void **state) {
    option_free(table, *state);
    option_free(table, *state); /* twice is harmless */
    free(*state);
    return 0;
}

static void set(struct conf *conf, const char *key, const char *value) {
    struct err err;

    if (option_set(table, conf, key, value, &err) != 0) fail_msg("%s", err.msg);
}

static void refuse(struct conf *conf, const char *key, const char *value, const char *message) {
    struct err err = { 0 };

    assert_int_equal(option_set(table, conf, key, value, &err), -1);
    assert_int_equal(err.status, STATUS_USAGE);
    assert_string_equal(err.msg, message);
}

static void shows(const struct conf *conf, const char *key, const char *want) {
    char buf[100] = "untouched";
    bool shown = option_show(option_find(table, key), conf, buf, sizeof(buf));

    assert_int_equal(shown, want != NULL);
    if (want) assert_string_equal(buf, want);
}

static void defaults(void **state) {
    struct conf *c = *state;

    assert_int_equal(c->depth, 1);
    assert_int_equal(c->bs, 4096);
    assert_int_equal(c->runtime, 0);
    assert_false(c->stonewall);
    assert_true(c->other);
    assert_int_equal(c->sync, 2);
    assert_null(c->name);
    assert_int_equal(c->percent, 25);
    assert_int_equal(c->parsed, 1);
}

static void a_bad_default_is_an_error(void **state) {
    static const struct option_entry wrong[] = {
        { .name = "bs", .type = OPTION_SIZE, .offset = offsetof(struct conf, bs), .min = 512, .def = "1", .help = "x" },
        { .name = NULL }
    };
    struct err err;

    assert_int_equal(option_defaults(wrong, *state, &err), -1);
    assert_string_equal(err.msg, "built-in default: bs: 1 is out of range (at least 512)");
}

static void setting(void **state) {
    struct conf *c = *state;

    set(c, "iodepth", "65536");
    assert_int_equal(c->depth, 65536);
    set(c, "bs", "16m");
    assert_int_equal(c->bs, 16 << 20);
    set(c, "ramp-time", "250ms");
    assert_int_equal(c->runtime, 250000000);
    set(c, "ramp_time", "0");
    assert_int_equal(c->runtime, 0);
    set(c, "free_number", "18446744073709551615");
    assert_true(c->free_number == UINT64_MAX);
    set(c, "stonewall", NULL);
    assert_true(c->stonewall);
    set(c, "stonewall", "no");
    assert_false(c->stonewall);
    set(c, "sync", "none");
    assert_int_equal(c->sync, 0);
    set(c, "share", "50%");
    assert_int_equal(c->percent, 50);
}

static void text_is_copied_and_replaced(void **state) {
    struct conf *c = *state;
    char text[] = "first";

    set(c, "name", text);
    text[0] = 'F';
    assert_string_equal(c->name, "first");
    set(c, "name", c->name + 2); /* a part of itself */
    assert_string_equal(c->name, "rst");
    set(c, "name", "");
    assert_string_equal(c->name, "");
    set(c, "password", "one");
    set(c, "password", "two");
    assert_string_equal(c->secret, "two");
}

static void finding(void **state) {
    (void)state;
    assert_ptr_equal(option_find(table, "bs"), &table[1]);
    assert_ptr_equal(option_find(table, "block-size"), &table[1]);
    assert_ptr_equal(option_find(table, "block_size"), &table[1]);
    assert_ptr_equal(option_find(table, "ramp-time"), &table[2]);
    assert_null(option_find(table, "BS"));
    assert_null(option_find(table, "b"));
    assert_null(option_find(table, "bss"));
    assert_null(option_find(table, ""));
    assert_string_equal(option_nearest(table, "iodept"), "iodepth");
    assert_string_equal(option_nearest(table, "blocksize"), "block_size");
    assert_null(option_nearest(table, "completely"));
}

static void unknown_keys(void **state) {
    refuse(*state, "iodept", "1", "unknown key 'iodept' (nearest: iodepth)");
    refuse(*state, "BS", "4k", "unknown key 'BS' (nearest: bs)");
    refuse(*state, "completely", NULL, "unknown key 'completely'");
    refuse(*state, "a\033b", NULL, "unknown key 'a\\x1Bb'");
}

static void bare_keys(void **state) {
    refuse(*state, "iodepth", NULL, "iodepth needs a value (write iodepth=N)");
    refuse(*state, "bs", NULL, "bs needs a value (write bs=SIZE)");
    refuse(*state, "sync", NULL, "sync needs a value (write sync=none|datastore|dsync|sync)");
    refuse(*state, "name", NULL, "name needs a value (write name=TEXT)");
    refuse(*state, "password", NULL, "password needs a value (write password=TEXT)");
    refuse(*state, "share", NULL, "share needs a value (write share=N%)");
    assert_int_equal(((struct conf *)*state)->parsed, 1); /* the parser never saw it */
}

static void ranges(void **state) {
    struct conf *c = *state;

    refuse(c, "iodepth", "0", "iodepth: 0 is out of range (1 to 65536)");
    refuse(c, "iodepth", "65537", "iodepth: 65537 is out of range (1 to 65536)");
    refuse(c, "bs", "511", "bs: 511 is out of range (512 to 16m)");
    refuse(c, "block_size", "32m", "bs: 32m is out of range (512 to 16m)");
    refuse(c, "ramp_time", "61m", "ramp_time: 61m is out of range (at most 1h)");
    assert_int_equal(c->depth, 1);
    assert_int_equal(c->bs, 4096);
}

static void bad_values(void **state) {
    struct conf *c = *state;

    refuse(c, "bs", "1.5k", "bs: '1.5k' is not a size: fractions are not allowed (write 1536); allowed: 512 to 16m");
    refuse(c, "free_number", "x", "free_number: 'x' is not a whole number: it does not begin with a digit (write for "
                                  "example 32)");
    refuse(c, "ramp_time", "10min", "ramp_time: '10min' is not a time: unknown unit 'min' (known: ns, us, ms, s, m, h, "
                                    "d; write 10m); allowed: at most 1h");
    refuse(c, "stonewall", "maybe", "stonewall: 'maybe' is neither yes nor no (write 1, yes, true, on, or 0, no, "
                                    "false, off)");
    refuse(c, "sync", "dsink", "sync: 'dsink' is none of none, datastore, dsync, sync (did you mean dsync?)");
    refuse(c, "sync", "whatever", "sync: 'whatever' is none of none, datastore, dsync, sync");
    refuse(c, "sync", "DSYNC", "sync: 'DSYNC' is none of none, datastore, dsync, sync (did you mean dsync?)");
    refuse(c, "share", "50", "share: '50' is not a percentage (write 50%)");
    assert_int_equal(c->sync, 2);
    assert_int_equal(c->bs, 4096);
}

static void showing(void **state) {
    struct conf *c = *state;
    char small[4];

    set(c, "ramp_time", "1500us");
    shows(c, "iodepth", "1");
    shows(c, "bs", "4k");
    shows(c, "ramp_time", "1500us");
    shows(c, "free_number", "0");
    shows(c, "stonewall", "0");
    shows(c, "other", "1");
    shows(c, "sync", "dsync");
    shows(c, "name", NULL);
    set(c, "name", "a name");
    shows(c, "name", "a name");
    assert_false(option_show(option_find(table, "name"), c, small, sizeof(small))); /* cut it would be another one */
    set(c, "password", "hunter2");
    shows(c, "password", NULL);
    shows(c, "share", "25%");
    set(c, "share", "0%");
    shows(c, "share", NULL);
    c->sync = 4;
    shows(c, "sync", NULL);
    c->sync = -1;
    shows(c, "sync", NULL);
}

static void what_is_shown_parses_back(void **state) {
    struct conf *c = *state, twin = { 0 };
    struct err err;
    char buf[100];

    set(c, "iodepth", "77");
    set(c, "bs", "1536");
    set(c, "ramp_time", "90s");
    set(c, "other", "0");
    set(c, "name", " \"x\" = y ; z");
    assert_int_equal(option_defaults(table, &twin, &err), 0);
    for (const struct option_entry *e = table; e->name; e++)
        if (option_show(e, c, buf, sizeof(buf))) set(&twin, e->name, buf);
    assert_int_equal(twin.depth, 77);
    assert_int_equal(twin.bs, 1536);
    assert_int_equal(twin.runtime, 90000000000);
    assert_false(twin.other);
    assert_string_equal(twin.name, c->name);
    assert_int_equal(twin.percent, 25);
    option_free(table, &twin);
    assert_null(twin.name);
}

static void help_is_aligned_and_complete(void **state) {
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    option_help(table, "--", out);
    fclose(out);
    assert_string_equal(text,
        "  --iodepth N                 I/Os outstanding (default 1, 1 to 65536)\n"
        "  --bs SIZE                   bytes per I/O (also block_size, default 4k, 512 to 16m)\n"
        "  --ramp_time TIME            time before the window (at most 1h)\n"
        "  --free_number N             any number\n"
        "  --stonewall                 wait\n"
        "  --other BOOL                a switch that is on (default yes)\n"
        "  --sync none|datastore|dsync|sync\n"
        "                              durability (default dsync)\n"
        "  --name TEXT                 a name\n"
        "  --password TEXT             a secret\n"
        "  --share N%                  part of it (default 25%)\n");
    free(text);
    out = open_memstream(&text, &len);
    option_help(table + 8, "", out);
    fclose(out);
    assert_string_equal(text, "  password=TEXT               a secret\n"
                              "  share=N%                    part of it (default 25%)\n");
    free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(defaults),
        TEST(a_bad_default_is_an_error),
        TEST(setting),
        TEST(text_is_copied_and_replaced),
        TEST(finding),
        TEST(unknown_keys),
        TEST(bare_keys),
        TEST(ranges),
        TEST(bad_values),
        TEST(showing),
        TEST(what_is_shown_parses_back),
        TEST(help_is_aligned_and_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
