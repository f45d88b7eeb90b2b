/* SPDX-License-Identifier: GPL-2.0-or-later */
/* URLs and keys of the nfs backend, up to the point where a connection would be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/nfs/nfs.h"
#include "tests/unit/backend_conf.h"

extern const struct backend backend_nfs;

static struct err err;

static void defaults(void **state) {
    (void)state;
    struct nfsbe_conf *c = conf_from(&backend_nfs, "nfs://filer/vol1//dir/vm.dat", &err);
    assert_non_null(c);
    assert_string_equal(c->host, "filer");
    assert_string_equal(c->path, "/vol1/dir/vm.dat");
    assert_null(c->export_path);
    assert_int_equal(c->nfsport, 0);
    assert_int_equal(c->mountport, 0);
    assert_int_equal(c->uid, geteuid());
    assert_null(c->gid); /* that of this process */
    assert_true(c->timeout == 30ULL * NS_PER_SEC);
    conf_end(&backend_nfs, c);
}

static void keys(void **state) {
    (void)state;
    struct nfsbe_conf *c = conf_from(&backend_nfs, "nfs://[::1]:20490/vol1/vm.dat?mountport=20048&uid=0&gid=4294967294"
                                                   "&timeout=5s&export=/vol1", &err);
    assert_non_null(c);
    assert_string_equal(c->host, "::1");
    assert_int_equal(c->nfsport, 20490);
    assert_int_equal(c->mountport, 20048);
    assert_int_equal(c->uid, 0);
    assert_string_equal(c->gid, "4294967294");
    assert_string_equal(c->export_path, "/vol1");
    conf_end(&backend_nfs, c);
    c = conf_from(&backend_nfs, "nfs://h:1/v/f?nfsport=2", &err); /* a key is more explicit than the URL's port */
    assert_int_equal(c->nfsport, 2);
    conf_end(&backend_nfs, c);
}

static void groups(void **state) {
    struct nfsbe_server s = { .uid = 7 };
    char words[300];
    (void)state;
    assert_int_equal(nfsbe_gids_fill(&s, NULL, &err), 0);
    assert_int_equal(s.gid, getegid());
    assert_int_equal(s.n_groups, 0);
    assert_int_equal(nfsbe_gids_fill(&s, "4294967294", &err), 0);
    assert_true(s.gid == 4294967294u);
    assert_string_equal(nfsbe_who_words(&s, words, sizeof words), "uid 7 gid 4294967294");
    assert_int_equal(nfsbe_gids_fill(&s, "100,20,30", &err), 0);
    assert_int_equal(s.gid, 100);
    assert_int_equal(s.n_groups, 2);
    assert_string_equal(nfsbe_who_words(&s, words, sizeof words), "uid 7 gid 100 groups 20,30");
    assert_int_equal(nfsbe_gids_fill(&s, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", &err), 0);
    assert_int_equal(s.n_groups, 16);
    refused(&backend_nfs, "nfs://h/v/f?gid=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "at most 16 more");
    refused(&backend_nfs, "nfs://h/v/f?gid=4294967296", "gid=");
    refused(&backend_nfs, "nfs://h/v/f?gid=wheel", "gid=");
    refused(&backend_nfs, "nfs://h/v/f?gid=1,,2", "gid=");
    refused(&backend_nfs, "nfs://h/v/f?gid=1,", "gid=");
    refused(&backend_nfs, "nfs://h/v/f?gid=-1", "gid=");
}

static void servers(void **state) {
    struct nfsbe_servers s;
    char words[300];
    (void)state;
    assert_int_equal(nfsbe_servers_fill(&s, NULL, &err), 0);
    assert_int_equal(s.n, 0);
    assert_int_equal(nfsbe_servers_fill(&s, "filer,10.0.0.2:20490,[fe80::1],[::1]:1", &err), 0);
    nfsbe_servers_words(&s, words, sizeof words);
    assert_string_equal(words, "filer:0, 10.0.0.2:20490, [fe80::1]:0, [::1]:1");
    refused(&backend_nfs, "nfs://h/v/f?servers=", "missing between");
    refused(&backend_nfs, "nfs://h/v/f?servers=a,,b", "missing between");
    refused(&backend_nfs, "nfs://h/v/f?servers=a,b,a", "a is there twice");
    refused(&backend_nfs, "nfs://h/v/f?servers=a:x", "port");
    refused(&backend_nfs, "nfs://h/v/f?servers=a/b", "no address");
    refused(&backend_nfs, "nfs://h/v/f?servers=me@a", "servers=");
    refused(&backend_nfs, "nfs://h/v/f?servers=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "more than 16");
    refused(&backend_nfs, "nfs://h/v/f?servers=a,b,c&nconnect=2", "leaves some of the 3 servers=");
    refused(&backend_nfs, "nfs://h/v/f?servers=a&engine=libnfs", "servers= needs engine=native");
}

static void refusals(void **state) {
    (void)state;
    refused(&backend_nfs, "nfs://h/v/f?rsize=511", "rsize");
    refused(&backend_nfs, "nfs://h/v/f?wsize=65m", "wsize");
    refused(&backend_nfs, "nfs://h/v/f?nrfiles=65", "nrfiles");
    refused(&backend_nfs, "nfs://h/", "no path");
    refused(&backend_nfs, "nfs://h/vol1/", "directory");
    refused(&backend_nfs, "nfs://h/vol1/../etc/passwd", "..");
    refused(&backend_nfs, "nfs://h/vol1/f?export=/vol2", "not the beginning");
    refused(&backend_nfs, "nfs://h/vol1/f?export=vol1", "begins with");
    refused(&backend_nfs, "nfs://h/vol1/f?timeout=1ms", "timeout");
    refused(&backend_nfs, "nfs://h/vol1/f?nfsport=65536", "nfsport");
    refused(&backend_nfs, "nfs://h/vol1/f?mountprt=1", "mountport");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(keys),
        cmocka_unit_test(groups), cmocka_unit_test(servers), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
