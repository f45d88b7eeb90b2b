/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From a URL to the export's file handle with servers that hide their exports, want Kerberos, have MOUNT over UDP only, or
 * no portmapper of version 2; and a file that is removed only while it is the one that was created. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>

#include "backends/net/sock.h"
#include "backends/nfs/nfs_open.h"
#include "backends/nfs/nfs_portmap.h"
#include "tests/unit/made_names.h"
#include "tests/unit/nfs_script.h"

/* ---- MOUNT ---- */

struct mountd {
    const char *list[4];        /* exports; none: EXPORT is not implemented */
    const char *mountable;      /* everything else: `refusal` */
    uint32_t refusal, flavor;
    unsigned mnts, drop;        /* drop: so many calls are lost */
    bool hangs_up;              /* when it is asked for the list */
    char asked[8][32];
};

static void mountd_answer(void *arg, const struct script_call *c, struct bytes *b) {
    struct mountd *m = arg;
    char path[256];
    size_t start;
    if (m->drop) {
        m->drop--;
        return;
    }
    if (c->program != 100005) {
        script_not_done(b, c, 1, 0, 0);
    } else if (c->procedure == 5 && m->hangs_up) {
        shutdown(c->fd, SHUT_RDWR);
    } else if (c->procedure == 5 && !m->list[0]) {
        script_not_done(b, c, 3, 0, 0);
    } else if (c->procedure == 5) {
        start = script_begin(b, c);
        for (int i = 0; i < 4 && m->list[i]; i++) {
            add_word(b, 1);
            script_opaque(b, m->list[i], (uint32_t)strlen(m->list[i]));
            add_word(b, 1); /* one group */
            script_opaque(b, "lab-clients", 11);
            add_word(b, 0);
        }
        add_word(b, 0);
        script_end(b, start);
    } else if (c->procedure == 1) {
        snprintf(path, sizeof path, "%.*s", (int)script_word(c->args), (const char *)c->args + 4);
        if (m->mnts < 8) snprintf(m->asked[m->mnts], sizeof m->asked[0], "%.31s", path);
        m->mnts++;
        start = script_begin(b, c);
        if (m->mountable && strcmp(path, m->mountable) == 0) {
            add_word(b, 0);
            script_opaque(b, "roothandle", 10);
            add_word(b, 1);
            add_word(b, m->flavor);
        } else {
            add_word(b, m->refusal);
        }
        script_end(b, start);
    } else {
        script_words(b, c, 0, NULL);
    }
}

struct find {
    struct nfsbe_root root;
    char rest[64];
    struct err err;
    int rc;
};

static void find_over(struct find *f, struct mountd *m, const char *path, bool tcp, bool udp) {
    struct script script;
    char copy[256];
    struct nfsbe_server server = { .host = "127.0.0.1", .timeout = 5 * NS_PER_SEC };
    struct nfsbe_conf conf = { .host = server.host, .path = copy };
    snprintf(copy, sizeof copy, "%s", path);
    memset(f, 0, sizeof *f);
    script_start(&script, 0, tcp, udp, mountd_answer, m);
    conf.mountport = script.port;
    f->rc = nfsbe_root_find(&conf, &server, &f->root, &f->err);
    if (f->rc == 0) snprintf(f->rest, sizeof f->rest, "%s", f->root.rest); /* which points into conf.path */
    script_stop(&script);
}

static void find(struct find *f, struct mountd *m, const char *path) {
    find_over(f, m, path, true, false);
}

static void says(const struct find *f, const char *words) {
    if (!strstr(f->err.msg, words)) fail_msg("\"%s\" has no \"%s\"", f->err.msg, words);
}

static void by_the_list(void **state) {
    struct mountd m = { .list = { "/a", "/a/b", "/" }, .mountable = "/a/b", .refusal = 13, .flavor = 1 };
    struct find f;
    (void)state;
    find(&f, &m, "/a/b/c/file");
    if (f.rc != 0) fail_msg("%s", f.err.msg);
    assert_string_equal(f.root.export_path, "/a/b");
    assert_string_equal(f.rest, "c/file");
    assert_string_equal(f.root.chosen_by, "longest match");
    assert_string_equal(f.root.address, "127.0.0.1");
    assert_int_equal(f.root.fh.len, 10);
    assert_int_equal(f.root.exports.n, 3);
    assert_int_equal(m.mnts, 1);
    nfsbe_root_free(&f.root);
    find(&f, &m, "/a/b");
    assert_int_equal(f.rc, -1);
    says(&f, "/a/b is the export itself");
    nfsbe_root_free(&f.root);
}

/* The list is hidden, empty (without entries it is not implemented here), or "/" alone. */
static void by_the_parents(void **state) {
    static const char *const lists[][4] = { { NULL }, { "/" }, { "/other", "/else" }, { "/a/b" } };
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct mountd m = { .mountable = "/a", .refusal = 2, .flavor = 1, .hangs_up = i == 3 };
        struct find f;
        memcpy(m.list, lists[i], sizeof m.list);
        find(&f, &m, "/a/b/c/file");
        if (f.rc != 0) fail_msg("%s", f.err.msg);
        assert_string_equal(f.root.export_path, "/a");
        assert_string_equal(f.rest, "b/c/file");
        assert_string_equal(f.root.chosen_by, "MNT of the path's parents");
        assert_int_equal(m.mnts, 3);
        assert_string_equal(m.asked[0], "/a/b/c");
        assert_string_equal(m.asked[1], "/a/b");
        nfsbe_root_free(&f.root);
        m.mountable = "/";
        find(&f, &m, "/file");
        assert_int_equal(f.rc, 0);
        assert_string_equal(f.root.export_path, "/");
        assert_string_equal(f.rest, "file");
        nfsbe_root_free(&f.root);
    }
}

static void none_of_them(void **state) {
    struct mountd m = { .refusal = 13 };
    struct find f;
    (void)state;
    find(&f, &m, "/a/b/file");
    assert_int_equal(f.rc, -1);
    says(&f, "the server tells no export list: ");
    says(&f, "PROC_UNAVAIL");
    says(&f, "/a/b: MNT3ERR_ACCES, /a: MNT3ERR_ACCES, /: MNT3ERR_ACCES (asked as uid 0");
    says(&f, "export= names the export");
    nfsbe_root_free(&f.root);
}

static void kerberos_only(void **state) {
    struct mountd m = { .list = { "/a" }, .mountable = "/a", .flavor = 390004 };
    struct find f;
    (void)state;
    find(&f, &m, "/a/file");
    assert_int_equal(f.rc, -1);
    says(&f, "the export wants Kerberos (sec=krb5i); samedisk speaks AUTH_SYS only");
    nfsbe_root_free(&f.root);
}

static void over_udp_only(void **state) {
    struct mountd m = { .list = { "/a" }, .mountable = "/a", .flavor = 1, .drop = 1 };
    struct find f;
    (void)state;
    find_over(&f, &m, "/a/file", false, true);
    if (f.rc != 0) fail_msg("%s", f.err.msg);
    assert_string_equal(f.root.export_path, "/a");
    assert_int_equal(m.drop, 0); /* what was lost has been sent again */
    nfsbe_root_free(&f.root);
}

/* ---- portmapper ---- */

static void universal_addresses(void **state) {
    (void)state;
    assert_int_equal(nfsbe_portmap_uaddr(""), 0);
    assert_int_equal(nfsbe_portmap_uaddr("0.0.0.0.8.1"), 2049);
    assert_int_equal(nfsbe_portmap_uaddr("::.78.80"), 20048);
    assert_int_equal(nfsbe_portmap_uaddr("fe80::1%eth0.255.255"), 65535);
    assert_int_equal(nfsbe_portmap_uaddr("2049"), -1);
    assert_int_equal(nfsbe_portmap_uaddr("0.0.0.0.8."), -1);
    assert_int_equal(nfsbe_portmap_uaddr("0.0.0.0.256.1"), -1);
    assert_int_equal(nfsbe_portmap_uaddr("0.0.0.0.1234.1"), -1);
    assert_int_equal(nfsbe_portmap_uaddr(".8.1"), 2049);
}

struct portmap { unsigned version, tcp, udp, calls; }; /* version: the only one that it has */

static void portmap_answer(void *arg, const struct script_call *c, struct bytes *b) {
    struct portmap *p = arg;
    char text[40] = "";
    p->calls++;
    if (c->version != p->version) {
        script_not_done(b, c, 2, p->version, p->version);
    } else if (p->version == 2) {
        uint32_t port = script_word(c->args + 8) == 6 ? p->tcp : p->udp;
        script_words(b, c, 1, &port);
    } else {
        unsigned port = memcmp(c->args + 12, "tcp", 3) == 0 ? p->tcp : p->udp;
        if (port) snprintf(text, sizeof text, "127.0.0.1.%u.%u", port >> 8, port & 255);
        size_t start = script_begin(b, c);
        script_opaque(b, text, (uint32_t)strlen(text));
        script_end(b, start);
    }
}

static int loopback_of_our_own(void **state) {
    struct ifreq up = { .ifr_name = "lo" };
    (void)state;
    if (unshare(CLONE_NEWNET) != 0) return 0; /* without the right to: the tests see it */
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    up.ifr_flags = IFF_UP | IFF_RUNNING;
    int rc = ioctl(fd, SIOCSIFFLAGS, &up);
    close(fd);
    return rc;
}

static bool may_have_port_111(void) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(111) };
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int rc = bind(fd, (struct sockaddr *)&at, sizeof at);
    close(fd);
    return rc == 0;
}

static void portmappers(void **state) {
    static const struct { unsigned version; bool over_tcp; unsigned tcp, udp; } cases[] = {
        { 2, true, 20048, 0 }, { 3, true, 20048, 0 }, { 4, true, 20048, 0 }, { 4, true, 0, 635 }, { 2, true, 0, 635 },
        { 2, false, 20048, 0 }, { 4, true, 0, 0 },
    };
    const struct nfsbe_server server = { .host = "127.0.0.1", .timeout = 10 * NS_PER_SEC };
    struct err err;
    (void)state;
    if (!may_have_port_111()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct portmap p = { .version = cases[i].version, .tcp = cases[i].tcp, .udp = cases[i].udp };
        struct nfsbe_ports ports;
        struct script script;
        script_start(&script, 111, cases[i].over_tcp, !cases[i].over_tcp, portmap_answer, &p);
        if (nfsbe_portmap(&server, NFS_MOUNT_PROGRAM_ID, &ports, &err) != 0) fail_msg("%s", err.msg);
        script_stop(&script);
        assert_int_equal(ports.tcp, cases[i].tcp);
        assert_int_equal(ports.udp, cases[i].udp);
        assert_string_equal(ports.address, "127.0.0.1");
    }
}

/* TCP is registered, and a firewall refuses it: MOUNT goes over UDP then. */
static void mount_by_the_portmapper(void **state) {
    const struct nfsbe_server server = { .host = "127.0.0.1", .timeout = 10 * NS_PER_SEC };
    struct portmap p = { .version = 2, .tcp = 9, .udp = 9 };
    struct mountd m = { .list = { "/a" } };
    struct script portmap, mountd;
    struct nfsbe_conn *conn;
    struct err err;
    (void)state;
    if (!may_have_port_111()) skip();
    script_start(&portmap, 111, true, false, portmap_answer, &p);
    script_start(&mountd, 9, false, true, mountd_answer, &m);
    if (nfsbe_conn_open(&server, NFS_MOUNT_PROGRAM_ID, &conn, &err) != 0) fail_msg("%s", err.msg);
    assert_true(conn->datagram);
    nfsbe_conn_close(conn);
    script_stop(&mountd);
    p.tcp = p.udp = 0;
    assert_int_equal(nfsbe_conn_open(&server, NFS_MOUNT_PROGRAM_ID, &conn, &err), -1);
    assert_non_null(strstr(err.msg, "the portmapper does not know MOUNT version 3; mountport= names its port"));
    script_stop(&portmap);
}

static void nfs_null(void *arg, const struct script_call *c, struct bytes *b) {
    (void)arg;
    script_words(b, c, 0, NULL);
}

static void without_a_portmapper(void **state) {
    const struct nfsbe_server server = { .host = "127.0.0.1", .timeout = 2 * NS_PER_SEC };
    struct nfsbe_conn *conn;
    struct script script;
    struct err err;
    (void)state;
    if (!may_have_port_111()) skip();
    assert_int_equal(nfsbe_conn_open(&server, NFS_MOUNT_PROGRAM_ID, &conn, &err), -1);
    const char *reason = strstr(err.msg, "Connection refused"), *advice = strstr(err.msg, "mountport=");
    assert_true(reason && advice && reason < advice);
    assert_non_null(strstr(err.msg, "nfsport="));
    assert_int_equal(nfsbe_conn_open(&server, NFS_PROGRAM_ID, &conn, &err), -1);
    assert_non_null(strstr(err.msg, "tried 2049"));
    assert_non_null(strstr(err.msg, "nfsport="));
    script_start(&script, 2049, true, false, nfs_null, NULL);
    if (nfsbe_conn_open(&server, NFS_PROGRAM_ID, &conn, &err) != 0) fail_msg("%s", err.msg);
    nfsbe_conn_close(conn);
    script_stop(&script);
}

/* A full queue drops SYNs without a word, and nobody reads the datagrams: as silent as a dead route. */
struct hole { int tcp, udp, fill[4]; };

static unsigned dig(struct hole *h, unsigned port) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                              .sin_port = htons((uint16_t)port) };
    socklen_t len = sizeof at;
    h->tcp = socket(AF_INET, SOCK_STREAM, 0);
    h->udp = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(h->tcp, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(h->tcp, 0), 0);
    getsockname(h->tcp, (struct sockaddr *)&at, &len);
    assert_int_equal(bind(h->udp, (struct sockaddr *)&at, sizeof at), 0);
    for (unsigned i = 0; i < 4; i++) {
        h->fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        connect(h->fill[i], (struct sockaddr *)&at, sizeof at);
    }
    return ntohs(at.sin_port);
}

static void fill_in(struct hole *h) {
    for (unsigned i = 0; i < 4; i++) close(h->fill[i]);
    close(h->tcp);
    close(h->udp);
}

/* All the ways to a host that is silent share one timeout. */
static void a_silent_host_ends_in_time(void **state) {
    char path[] = "/a/file";
    struct hole ports[3];
    (void)state;
    if (!may_have_port_111()) skip();
    dig(&ports[0], 111);
    dig(&ports[1], 2049);
    unsigned other = dig(&ports[2], 0);
    for (unsigned given = 0; given < 2; given++) {
        const struct nfsbe_server server = { .host = "127.0.0.1", .timeout = NS_PER_SEC, .port = given ? 2049 : 0 };
        struct nfsbe_conf conf = { .host = "127.0.0.1", .path = path, .mountport = given ? other : 0 };
        struct find f = { .rc = 0 };
        int64_t from = sock_now();
        assert_int_equal(nfsbe_root_find(&conf, &server, &f.root, &f.err), -1);
        assert_in_range((sock_now() - from) / NS_PER_MS, 900, 2000);
        says(&f, given ? "no answer within 0.4 s" : "no answer within 0.5 s"); /* there is UDP, and UDP and 2049 */
        nfsbe_root_free(&f.root);
    }
    for (unsigned i = 0; i < 3; i++) fill_in(&ports[i]);
}

/* ---- a name with several addresses ---- */

struct portmaps { struct portmap ports; struct mountd mountd; };

static void filer_answer(void *arg, const struct script_call *c, struct bytes *b) {
    struct portmaps *p = arg;
    if (c->program == 100000) portmap_answer(&p->ports, c, b);
    else mountd_answer(&p->mountd, c, b);
}

/* What is at 127.0.0.2, the first of the addresses; at 127.0.0.1 everything answers, unless `alone`. */
struct first_address {
    bool refuses, silent, deaf; /* NFS: nobody listens; takes connections, and no call; MOUNT: as silent as that */
    bool alone;
    int64_t timeout;
};

static int deaf_port(const char *address, unsigned port) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address), .sin_port = htons((uint16_t)port) };
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

struct reached {
    struct nfsbe_server server;
    struct kv warnings;
    struct err err;
    int64_t ms;
    int rc;
};

static void reach(struct reached *r, const struct first_address *first) {
    enum { MOUNT = 20048, NFS = 2049 };
    char host[] = "filer", path[] = "/a/file";
    struct portmaps answers = { .ports = { .version = 2 },
                                .mountd = { .list = { "/a" }, .mountable = "/a", .flavor = 1 } };
    struct nfsbe_conf conf = { .host = host, .path = path };
    struct nfsbe_root root = { .rest = NULL };
    struct nfsbe_conn *conn = NULL;
    struct script portmap[2], mountd[2], nfsd;
    int deaf = -1;

    answers.ports.tcp = MOUNT;
    *r = (struct reached){ .server = { .host = "filer", .timeout = first->timeout } };
    for (int i = 0; i < 2; i++) {
        const char *address = i ? "127.0.0.1" : "127.0.0.2";
        script_start_at(&portmap[i], address, 111, true, false, filer_answer, &answers);
        if (i || !first->deaf) script_start_at(&mountd[i], address, MOUNT, true, false, filer_answer, &answers);
    }
    if (first->deaf) deaf = deaf_port("127.0.0.2", MOUNT);
    if (first->silent) deaf = deaf_port("127.0.0.2", NFS);
    if (!first->alone) script_start(&nfsd, NFS, true, false, nfs_null, NULL);
    int64_t from = sock_now();
    conf.nfsport = r->server.port = NFS; /* the portmapper has MOUNT only */
    r->rc = nfsbe_reach(&conf, &r->server, &root, &conn, &r->warnings, &r->err);
    r->ms = (sock_now() - from) / NS_PER_MS;
    nfsbe_conn_close(conn);
    nfsbe_root_free(&root);
    if (deaf >= 0) close(deaf);
    if (!first->alone) script_stop(&nfsd);
    for (int i = 0; i < 2; i++) {
        if (i || !first->deaf) script_stop(&mountd[i]);
        script_stop(&portmap[i]);
    }
}

static void another_address_serves(void **state) {
    static const struct first_address cases[] = {
        { .refuses = true, .timeout = 20 * NS_PER_SEC },
        { .silent = true, .timeout = NS_PER_SEC },
        { .deaf = true, .timeout = NS_PER_SEC },
    };
    (void)state;
    if (!may_have_port_111()) skip();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct reached r;
        reach(&r, &cases[i]);
        if (r.rc != 0) fail_msg("%s", r.err.msg);
        assert_string_equal(r.server.host, "127.0.0.1");
        if (cases[i].refuses) assert_in_range(r.ms, 0, 5000); /* nothing is waited for */
        const struct kv_item *item = kv_find(&r.warnings, "address-left");
        const char *left = item ? item->text : "";
        if (!strstr(left, "127.0.0.2") || !strstr(left, "everything goes to 127.0.0.1")) fail_msg("\"%s\"", left);
        kv_free(&r.warnings);
    }
}

static void each_address_has_its_reason(void **state) {
    const struct first_address none = { .silent = true, .alone = true, .timeout = NS_PER_SEC };
    struct reached r;
    (void)state;
    if (!may_have_port_111()) skip();
    reach(&r, &none);
    assert_int_equal(r.rc, -1);
    assert_non_null(strstr(r.err.msg, "127.0.0.2"));
    assert_non_null(strstr(r.err.msg, "(its share of timeout=1s)"));
    const char *second = strstr(r.err.msg, "; 127.0.0.1: ");
    if (!second || !strstr(second, "Connection refused")) fail_msg("%s", r.err.msg);
    kv_free(&r.warnings);
}

static void an_unknown_host_is_said_alone(void **state) {
    char host[] = "a..b", path[] = "/a/file"; /* no server has to be asked for this one */
    struct nfsbe_conf conf = { .host = host, .path = path, .timeout = NS_PER_SEC };
    struct open_how how = { .conf = &conf, .mode = OPEN_READ };
    struct handle *h;
    struct facts facts = { .size = 0 };
    struct err err;
    (void)state;
    assert_int_equal(nfsbe_open(&how, &h, &facts, &err), -1);
    assert_ptr_equal(strstr(err.msg, "host a..b not found: "), err.msg);
    assert_null(strstr(err.msg, "port"));
}

/* ---- only the file that was created is removed ---- */

struct nfsd {
    const char *named;          /* the handle that the name stands for */
    const char *created;        /* what CREATE gives; NULL: no handle */
    bool stale, again;          /* the created handle is; CREATE with the same verifier finds its file */
    bool garbled, no_exclusive; /* of CREATE: the answer; a server that has GUARDED only */
    unsigned removes, creates, size;
};

static void nfsd_attr(struct bytes *b, const struct nfsd *d) {
    add_word(b, 1);
    add_words(b, 4, 1);
    add_word(b, 0);
    add_word(b, d->size);
    add_words(b, 4, 0);
    add_word(b, 0);
    add_word(b, 9);             /* fsid and fileid are the same for every file: inode numbers come again */
    add_word(b, 0);
    add_word(b, 12);
    add_words(b, 6, 0);
}

static void nfsd_answer(void *arg, const struct script_call *c, struct bytes *b) {
    struct nfsd *d = arg;
    size_t start = script_begin(b, c);
    switch (c->procedure) {
    case 0: break;
    case 1: /* GETATTR */
        add_word(b, d->stale ? 70 : 0);
        if (!d->stale) nfsd_attr(b, d);
        break;
    case 2: /* SETATTR */
        add_word(b, 0);
        add_words(b, 2, 0);
        b->at[b->n - 1] = 0;
        break;
    case 3: /* LOOKUP */
        add_word(b, d->named ? 0 : 2);
        if (d->named) {
            script_opaque(b, d->named, (uint32_t)strlen(d->named));
            add_word(b, 1);
            nfsd_attr(b, d);
        }
        add_word(b, 0);
        break;
    case 8: /* CREATE */
        if (d->no_exclusive && script_word(c->args + c->n - 12) == 2) {
            add_word(b, 10004);
        } else if (d->garbled) {
            d->garbled = false;
            d->creates++;
            add_word(b, 0);
            add_word(b, 7);     /* neither "a handle follows" nor not */
        } else if (d->creates++ && !d->again) {
            add_word(b, 17);
        } else {
            add_word(b, 0);
            add_word(b, d->created != NULL);
            if (d->created) script_opaque(b, d->created, (uint32_t)strlen(d->created));
        }
        add_word(b, 0);
        add_word(b, 0);
        add_word(b, 0);
        break;
    case 12: /* REMOVE */
        d->removes++;
        add_word(b, 0);
        add_word(b, 0);
        add_word(b, 0);
        break;
    default: add_word(b, 10004);
    }
    script_end(b, start);
}

static void handle_at(struct handle *h, unsigned port) {
    memset(h, 0, sizeof *h);
    snprintf(h->server.host, sizeof h->server.host, "127.0.0.1");
    snprintf(h->where, sizeof h->where, "filer:/a/new");
    snprintf(h->name, sizeof h->name, "new");
    h->server.port = port;
    h->server.timeout = 5 * NS_PER_SEC;
    h->dir.len = 8;
    h->created = h->exists = true;
    h->fsid = 9;
    h->fileid = 12;
    h->file.len = 6;
    memcpy(h->file.data, "ours-1", 6);
}

static void removing(void **state) {
    static const struct { const char *named; bool stale; int rc; const char *says; } cases[] = {
        { "ours-1", false, 0, "" },
        { "ours-2", false, -1, "is another file by now (fileid 12, created was 12; its file handle is another one)" },
        { "ours-1", true, -1, "NFS3ERR_STALE" },
        { "ours-1-and-more", false, -1, "is another file by now" },
        { NULL, false, -1, "is gone already" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nfsd d = { .named = cases[i].named, .stale = cases[i].stale };
        struct script script;
        struct handle h;
        struct err err = { .status = STATUS_OK };
        script_start(&script, 0, true, false, nfsd_answer, &d);
        handle_at(&h, script.port);
        assert_int_equal(nfsbe_remove(&h, &err), cases[i].rc);
        script_stop(&script);
        assert_int_equal(d.removes, cases[i].rc == 0);
        if (!strstr(err.msg, cases[i].says)) fail_msg("\"%s\" has no \"%s\"", err.msg, cases[i].says);
    }
}

/* CREATE that gives no handle: that of LOOKUP counts only when the name still stands for the file that was made. */
static void creating_without_a_handle(void **state) {
    (void)state;
    for (int ours = 0; ours < 2; ours++) {
        struct nfsd d = { .named = "theirs", .again = ours };
        struct script script;
        struct handle h;
        struct nfsbe_conn *conn;
        struct nfsbe_attr attr;
        struct err err;
        script_start(&script, 0, true, false, nfsd_answer, &d);
        handle_at(&h, script.port);
        h.created = h.exists = false;
        assert_int_equal(nfsbe_conn_open(&h.server, NFS_PROGRAM_ID, &conn, &err), 0);
        assert_int_equal(nfsbe_create(conn, &h, 0, &attr, &err), ours ? 0 : -1);
        assert_int_equal(h.created, ours);
        assert_int_equal(d.creates, 2);
        nfsbe_conn_close(conn);
        script_stop(&script);
        assert_int_equal(d.removes, 0);
    }
}

/* CREATE whose answer is of no use: what it left is found, and removed only where it is proven to be ours. */
static void creating_without_an_answer(void **state) {
    static const struct { const char *named; bool again, guarded; unsigned removes; const char *says; } cases[] = {
        { "ours-1", true, false, 1, "creating filer:/a/new: a file was made, and removed again; CREATE: " },
        { "theirs", false, false, 0, "cannot be proven: an empty file may be left" },
        { "theirs", true, true, 0, "cannot be proven: an empty file may be left" },
        { NULL, false, false, 0, "creating filer:/a/new: no file was made: " },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct nfsd d = { .named = cases[i].named, .again = cases[i].again, .garbled = true,
                          .no_exclusive = cases[i].guarded };
        struct script script;
        struct handle h;
        struct nfsbe_conn *conn;
        struct nfsbe_attr attr;
        struct err err;
        script_start(&script, 0, true, false, nfsd_answer, &d);
        handle_at(&h, script.port);
        h.created = h.exists = false;
        assert_int_equal(nfsbe_conn_open(&h.server, NFS_PROGRAM_ID, &conn, &err), 0);
        assert_int_equal(nfsbe_create(conn, &h, 0, &attr, &err), -1);
        assert_false(h.created);
        nfsbe_conn_close(conn);
        script_stop(&script);
        assert_int_equal(d.removes, cases[i].removes);
        if (!strstr(err.msg, cases[i].says)) fail_msg("\"%s\" has no \"%s\"", err.msg, cases[i].says);
        assert_non_null(strstr(err.msg, "malformed reply"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_the_list),
        cmocka_unit_test(by_the_parents),
        cmocka_unit_test(none_of_them),
        cmocka_unit_test(kerberos_only),
        cmocka_unit_test(over_udp_only),
        cmocka_unit_test(universal_addresses),
        cmocka_unit_test(portmappers),
        cmocka_unit_test(mount_by_the_portmapper),
        cmocka_unit_test(without_a_portmapper),
        cmocka_unit_test(a_silent_host_ends_in_time),
        cmocka_unit_test(another_address_serves),
        cmocka_unit_test(each_address_has_its_reason),
        cmocka_unit_test(an_unknown_host_is_said_alone),
        cmocka_unit_test(removing),
        cmocka_unit_test(creating_without_a_handle),
        cmocka_unit_test(creating_without_an_answer),
    };
    return cmocka_run_group_tests(tests, loopback_of_our_own, NULL);
}
