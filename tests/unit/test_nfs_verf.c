/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Write verifiers of several connections, which lead to one server or to several: what is lost, what a COMMIT vouches
 * for, and where a flush has to go. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backends/nfs/nfs_verf.h"

#define CONNS 4u

static struct nfsbe_verf at[CONNS];
static struct nfsbe_verfs all;

static int begin(void **state) {
    (void)state;
    memset(at, 0, sizeof at);
    all = (struct nfsbe_verfs){.at = at, .n = CONNS};
    return 0;
}

/* An UNSTABLE write is answered on connection i. */
static bool wrote(unsigned i, const char *verf) {
    bool lost = nfsbe_verf_see(&all, &at[i], verf);
    nfsbe_verf_written(&all, &at[i]);
    return lost;
}

/* A COMMIT, sent when `written` writes had been answered, is answered. */
static bool commit_at(unsigned i, uint64_t written, const char *verf) {
    if (nfsbe_verf_see(&all, &at[i], verf)) return true;
    nfsbe_verf_committed(&all, &at[i], written);
    return false;
}

static bool committed(unsigned i, const char *verf) {
    return commit_at(i, all.written, verf);
}

static void to_commit(unsigned prefer, unsigned n, unsigned first, unsigned second) {
    uint16_t to[CONNS];
    assert_int_equal(nfsbe_verf_to_commit(&all, prefer, to), n);
    assert_int_equal(to[0], first);
    if (n > 1) assert_int_equal(to[1], second);
}

static void one_connection(void **state) {
    (void)state;
    assert_false(wrote(0, "boot---1")); /* the first is nothing to compare with */
    assert_false(wrote(0, "boot---1"));
    assert_true(wrote(0, "boot---2"));  /* two were acknowledged and not committed */
    assert_false(wrote(0, "boot---2"));
    assert_int_equal(all.changes, 1);
    assert_false(committed(0, "boot---2"));
    assert_false(wrote(0, "boot---3")); /* counted, but nothing was at stake */
    assert_int_equal(all.changes, 2);
    assert_false(wrote(0, "boot---3"));
    assert_false(commit_at(0, all.written - 1, "boot---3")); /* sent before the last write was answered */
    assert_true(wrote(0, "boot---4"));
    assert_int_equal(all.changes, 3);
}

/* Several nodes: the verifier of one says nothing of the other, and a COMMIT neither. */
static void two_servers(void **state) {
    (void)state;
    for (unsigned i = 0; i < 100; i++) assert_false(wrote(i % 2, i % 2 ? "node---b" : "node---a"));
    assert_int_equal(all.changes, 0);
    to_commit(0, 2, 0, 1);
    to_commit(1, 2, 0, 1);
    assert_false(committed(0, "node---a"));
    to_commit(0, 1, 1, 0);              /* a has nothing any more, b has */
    assert_false(wrote(0, "NODE---A")); /* a restarts, after its COMMIT */
    assert_true(committed(1, "NODE---B")); /* b before */
    assert_int_equal(all.changes, 2);
    to_commit(1, 1, 0, 0);
}

/* One server by several connections: one COMMIT for all, one report of a loss. */
static void one_server(void **state) {
    (void)state;
    for (unsigned i = 0; i < 12; i++) assert_false(wrote(i % CONNS, "boot---1"));
    for (unsigned i = 0; i < CONNS; i++) to_commit(i, 1, i, 0);
    assert_false(committed(2, "boot---1"));
    for (unsigned i = 0; i < CONNS; i++) assert_false(nfsbe_verf_at_stake(&at[i]));
    assert_false(wrote(1, "boot---1"));
    assert_true(wrote(3, "boot---2"));  /* the write of connection 1 is lost */
    for (unsigned i = 0; i < 3; i++) assert_false(wrote(i, "boot---2"));
    assert_int_equal(all.changes, 1);
    to_commit(0, 1, 0, 0);
}

/* Which addresses are one server is only known when both have answered. */
static void not_known_yet(void **state) {
    (void)state;
    to_commit(3, 1, 3, 0);              /* a flush without writes asks the server all the same */
    assert_false(wrote(0, "server-1"));
    to_commit(1, 1, 0, 0);              /* not on a connection that may lead elsewhere */
    assert_false(committed(1, "server-1")); /* it was the same one */
    assert_false(nfsbe_verf_at_stake(&at[0]));
    assert_false(wrote(0, "server-1"));
    to_commit(1, 1, 1, 0);
    assert_false(committed(2, "server-2"));
    assert_true(nfsbe_verf_at_stake(&at[0]));
    assert_false(wrote(2, "server-2"));
    to_commit(3, 2, 0, 2);
    to_commit(2, 2, 0, 2);
}

/* A write that is answered after the loss was told, with the old verifier: it is lost, and that is told too. */
static void late_answer(void **state) {
    (void)state;
    assert_false(wrote(0, "boot---1"));
    assert_false(wrote(1, "boot---1"));
    assert_true(wrote(0, "boot---2"));
    assert_false(wrote(1, "boot---1"));
    to_commit(0, 2, 0, 1);
    assert_true(committed(1, "boot---2"));
    assert_int_equal(all.changes, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_connection, begin), cmocka_unit_test_setup(two_servers, begin),
        cmocka_unit_test_setup(one_server, begin),     cmocka_unit_test_setup(not_known_yet, begin),
        cmocka_unit_test_setup(late_answer, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
