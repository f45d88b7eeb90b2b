/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "safety/consent.h"

#define NAA   "naa.600601601234"
#define OTHER "naa.600601609999"

struct bench {
    struct facts facts[3];
    struct content content[3];
    char complaint[3][700];
    struct consent_party party[3];
    size_t n;
    struct safety_destroy destroy[4];
    size_t n_destroy;
    bool borrowed;
    char by[200], missing[200];
    struct err err;
};

static int setup(void **state) {
    *state = calloc(1, sizeof(struct bench));
    return *state ? 0 : -1;
}

static int teardown(void **state) {
    free(*state);
    return 0;
}

static struct content *add_party(struct bench *b, const char *label, const char *identity) {
    struct consent_party *p = &b->party[b->n];

    b->facts[b->n].exists = true;
    b->facts[b->n].size = 1 << 30;
    snprintf(b->facts[b->n].identity[0], sizeof(b->facts[b->n].identity[0]), "%s", identity);
    *p = (struct consent_party){.label = label,
                                .facts = &b->facts[b->n],
                                .content = &b->content[b->n],
                                .looked = true,
                                .complaint = b->complaint[b->n],
                                .complaint_len = sizeof(b->complaint[b->n])};
    return &b->content[b->n++];
}

static void found(struct content *c, const char *name) {
    snprintf(c->signature[c->n].name, sizeof(c->signature[c->n].name), "%s", name);
    snprintf(c->signature[c->n].text, sizeof(c->signature[c->n].text), "some %s", name);
    c->n++;
}

#define PLAIN "(nothing)"

static void type(struct bench *b, const char *label, const char *what) {
    if (what && strcmp(what, PLAIN) == 0) what = NULL;
    b->destroy[b->n_destroy++] = (struct safety_destroy){label, what};
}

static bool covers(struct bench *b, size_t i) {
    return consent_covers(b->destroy, b->n_destroy, b->party, b->n, i, &b->borrowed, b->by, sizeof(b->by), b->missing,
                          sizeof(b->missing));
}

static int check(struct bench *b) {
    memset(b->complaint, 0, sizeof(b->complaint));
    return consent_check_words(b->destroy, b->n_destroy, b->party, b->n, &b->err);
}

enum { ZEROS, OWN, UNKNOWN, EXT4, GPT_EXT4, KINDS };

static void fill(struct content *c, int kind) {
    memset(c, 0, sizeof(*c));
    c->zeros = 10;
    if (kind == OWN) c->ours = 1;
    if (kind == UNKNOWN || kind == EXT4) c->foreign = 1;
    if (kind == GPT_EXT4) found(c, "gpt");
    if (kind == GPT_EXT4 || kind == EXT4) found(c, "ext4");
}

/* Which words cover what: rows are what was typed (one --destroy each, NULL ends), columns what is there. */
static void matrix(void **state) {
    struct bench *b = *state;
    static const struct {
        const char *what[3];
        bool covers[KINDS];
    } rows[] = {
        /*                               ZEROS  OWN    UNKN   EXT4   GPT+EXT4 */
        {{PLAIN}, {true, true, false, false, false}},
        {{NAA}, {true, true, false, false, false}},
        {{"NAA.600601601234"}, {true, true, false, false, false}},
        {{OTHER}, {false, false, false, false, false}},
        {{"unknown-data"}, {true, true, true, false, false}},
        {{"Unknown-Data"}, {true, true, true, false, false}},
        {{"ext4"}, {true, true, false, true, false}},
        {{"EXT4"}, {true, true, false, true, false}},
        {{"gpt"}, {true, true, false, false, false}},
        {{"gpt,ext4"}, {true, true, false, true, true}},
        {{"ext4,gpt"}, {true, true, false, true, true}},
        {{"gpt", "ext4"}, {true, true, false, true, true}},
        {{"gpt", NAA}, {true, true, false, false, false}},
        {{"gpt,ext4," NAA}, {true, true, false, true, true}},
        {{"gpt,ext4", OTHER}, {false, false, false, false, false}},
        {{"ext4,unknown-data"}, {true, true, true, true, false}},
        {{"xfs"}, {true, true, false, false, false}},
    };

    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        for (int kind = 0; kind < KINDS; kind++) {
            bool want = rows[r].covers[kind];
            memset(b, 0, sizeof(*b));
            fill(add_party(b, "fc", NAA), kind);
            for (int i = 0; i < 3 && rows[r].what[i]; i++) type(b, "fc", rows[r].what[i]);
            if (covers(b, 0) != want)
                fail_msg("row %zu (%s), content %d: wanted %d, missing \"%s\"", r, rows[r].what[0], kind, want,
                         b->missing);
            if (!want) assert_string_not_equal(b->missing, "");
            assert_non_null(strstr(b->by, "--destroy fc"));
        }
    }
}

static void no_word_covers_nothing(void **state) {
    struct bench *b = *state;

    for (int kind = 0; kind < KINDS; kind++) {
        b->n = b->n_destroy = 0;
        fill(add_party(b, "fc", NAA), kind);
        assert_false(covers(b, 0));
        assert_string_equal(b->missing, "");
    }
    fill(add_party(b, "nfs", "file:1:2:3"), ZEROS);
    type(b, "nfs", NULL);
    b->n_destroy = 1;
    assert_false(covers(b, 0)); /* a word for another label is none */
    assert_true(covers(b, 1));
    b->n_destroy = 0;
    type(b, "nfs", ""); /* nor is one that is empty */
    assert_false(covers(b, 1));
}

static void typos_do_not_pass(void **state) {
    struct bench *b = *state;
    static const struct {
        const char *what, *says;
    } bad[] = {{"xfs", "--destroy fc=xfs names what is not there: found was some gpt; some ext4"},
               {"ext5", "--destroy fc=ext5 names what is not there (and no file system, table or identity): found was "
                        "some gpt; some ext4"},
               {"gpt,ext", "--destroy fc=ext names what is not there (and no file system, table or identity)"},
               {OTHER, "--destroy fc=" OTHER " means another object: fc is " NAA},
               {"gpt,ext4," OTHER, "means another object: fc is " NAA},
               {"gpt,,ext4", "--destroy fc=... holds an empty word"},
               {"gpt,", "--destroy fc=... holds an empty word"},
               {"", "--destroy fc=... holds an empty word: was a shell variable empty?"},
               {"a\x1b[m", "a\\x1B[m names what is not there"}};
    static const char *const good[] = {NULL, "gpt", "ext4,gpt", "unknown-data", NAA, "gpt,ext4," NAA};

    fill(add_party(b, "fc", NAA), GPT_EXT4);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        b->n_destroy = 0;
        type(b, "fc", bad[i].what);
        assert_int_equal(check(b), 1);
        if (!strstr(b->complaint[0], bad[i].says)) fail_msg("%s: %s", bad[i].what, b->complaint[0]);
    }
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        b->n_destroy = 0;
        type(b, "fc", good[i]);
        assert_int_equal(check(b), 0);
        assert_string_equal(b->complaint[0], "");
    }
}

static void an_unknown_label_is_an_error(void **state) {
    struct bench *b = *state;

    fill(add_party(b, "nfs", "file:1:1:1"), ZEROS);
    fill(add_party(b, "fc", NAA), ZEROS);
    fill(add_party(b, "fc", OTHER), ZEROS);
    type(b, "fc2", NULL);
    assert_int_equal(check(b), -1);
    assert_int_equal(b->err.status, STATUS_USAGE);
    assert_string_equal(b->err.msg, "--destroy fc2: no target has this label; there are: nfs, fc");
}

static void several_members_of_a_label(void **state) {
    struct bench *b = *state;

    fill(add_party(b, "fc", NAA), EXT4);
    fill(add_party(b, "fc", OTHER), ZEROS);
    type(b, "fc", "ext4");
    assert_int_equal(check(b), 0); /* found on one of them */
    assert_true(covers(b, 0) && covers(b, 1));
    b->n_destroy = 0;
    type(b, "fc", OTHER); /* this member only */
    assert_int_equal(check(b), 0);
    assert_false(covers(b, 0));
    assert_true(covers(b, 1));
    type(b, "fc", NAA ",ext4");
    assert_true(covers(b, 0) && covers(b, 1));
    b->n_destroy = 0;
    type(b, "fc", "ext4");
    type(b, "fc", NAA);
    assert_true(covers(b, 0));
    assert_false(covers(b, 1)); /* identities were given, and not its own */
    type(b, "fc", NULL);
    assert_true(covers(b, 1));
}

static void one_object_under_two_labels(void **state) {
    struct bench *b = *state;

    struct sameness same;

    fill(add_party(b, "iscsi", NAA), ZEROS);
    fill(add_party(b, "fc", NAA), ZEROS);
    assert_int_equal(sameness_init(&same, 2), 0);
    b->party[0].same = b->party[1].same = &same;
    type(b, "fc", NULL);
    assert_false(covers(b, 0)); /* one name is no proof */
    assert_true(covers(b, 1));
    sameness_of(&same, 0, 1)->verdict = SAMENESS_ONE;
    assert_true(covers(b, 0));
    assert_true(b->borrowed);
    assert_string_equal(b->by, "--destroy fc");
    assert_true(covers(b, 1));
    assert_false(b->borrowed);
    for (int v = 0; v < SAMENESS_ONE; v++) {
        sameness_of(&same, 0, 1)->verdict = (enum sameness_verdict)v;
        assert_false(covers(b, 0));
    }
    sameness_free(&same);
}

static void identities_with_blanks_and_commas(void **state) {
    struct bench *b = *state;

    fill(add_party(b, "fc", "t10.ACME    disk,one  7"), ZEROS);
    type(b, "fc", "t10.ACME disk,one 7");
    assert_int_equal(check(b), 0);
    assert_true(covers(b, 0));
    consent_offer(&b->party[0], true, b->by, sizeof(b->by));
    assert_string_equal(b->by, "--destroy 'fc=t10.ACME    disk,one  7'");
}

static void any_of_its_identities_will_do(void **state) {
    struct bench *b = *state;

    fill(add_party(b, "fc", NAA), ZEROS);
    strcpy(b->facts[0].identity[1], "dev:8:16");
    type(b, "fc", "dev:8:16");
    assert_int_equal(check(b), 0);
    assert_true(covers(b, 0));
}

static void what_is_offered(void **state) {
    struct bench *b = *state;
    static const struct {
        int kind;
        const char *plain, *identity;
    } cases[] = {{ZEROS, "--destroy fc", "--destroy fc=" NAA},
                 {UNKNOWN, "--destroy fc=unknown-data", "--destroy fc=" NAA " --destroy fc=unknown-data"},
                 {GPT_EXT4, "--destroy fc=gpt,ext4", "--destroy fc=" NAA " --destroy fc=gpt,ext4"}};

    fill(add_party(b, "fc", NAA), ZEROS);
    for (int i = 0; i < 3; i++) {
        fill(&b->content[0], cases[i].kind);
        if (cases[i].kind == GPT_EXT4) found(&b->content[0], "ext4"); /* on another partition; named once */
        consent_offer(&b->party[0], false, b->by, sizeof(b->by));
        assert_string_equal(b->by, cases[i].plain);
        consent_offer(&b->party[0], true, b->by, sizeof(b->by));
        assert_string_equal(b->by, cases[i].identity);
    }
    /* What is offered is accepted. */
    type(b, "fc", NAA);
    type(b, "fc", "gpt,ext4");
    assert_int_equal(check(b), 0);
    assert_true(covers(b, 0));
    strcpy(b->facts[0].identity[0], "dev:7:0"); /* does not last */
    strcpy(b->facts[0].identity[1], "file:8:1:77");
    consent_offer(&b->party[0], true, b->by, sizeof(b->by));
    assert_string_equal(b->by, "--destroy fc=file:8:1:77 --destroy fc=gpt,ext4");
    b->facts[0].identity[1][0] = '\0';
    consent_offer(&b->party[0], true, b->by, sizeof(b->by));
    assert_string_equal(b->by, "--destroy fc=gpt,ext4");
}

static void words_for_what_was_not_looked_at(void **state) {
    struct bench *b = *state;

    add_party(b, "fc", NAA);
    b->party[0].content = NULL;
    b->party[0].looked = false; /* in use, say: it is refused for that */
    type(b, "fc", "ext4");
    assert_int_equal(check(b), 0);
    assert_false(covers(b, 0));
    b->party[0].looked = true; /* a file that does not exist */
    b->facts[0].exists = false;
    assert_int_equal(check(b), 1);
    assert_non_null(strstr(b->complaint[0], "found was nothing"));
    b->n_destroy = 0;
    type(b, "fc", NULL); /* harmless: the next run with the same line will need it */
    assert_int_equal(check(b), 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {T(matrix),
                                       T(no_word_covers_nothing),
                                       T(typos_do_not_pass),
                                       T(an_unknown_label_is_an_error),
                                       T(several_members_of_a_label),
                                       T(one_object_under_two_labels),
                                       T(identities_with_blanks_and_commas),
                                       T(any_of_its_identities_will_do),
                                       T(what_is_offered),
                                       T(words_for_what_was_not_looked_at)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
