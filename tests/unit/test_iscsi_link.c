/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands one at a time over a session of our own: what a target may answer, and that nothing of it lasts longer than the
 * deadline. The target is the other end of a socket pair. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "backends/iscsi/iscsi_link.h"
#include "backends/net/sock.h"
#include "base/clock.h"
#include "tests/unit/iscsi_pdus.h"
#include "tests/unit/made_names.h"

#define AT_LOGIN_STATUS 36 /* class and detail */
#define LIMIT (300 * NS_PER_MS)

static struct iscsibe_link *l;
static int target;
static struct pdus out;
static struct err err;
static uint8_t data[LINK_DATA_MAX];
static struct iscsibe_link_reply reply;

/* The first command has the tag 8. */
static void begin(bool digests) {
    int fd[2], large = 1 << 20;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    setsockopt(fd[1], SOL_SOCKET, SO_SNDBUF, &large, sizeof large);
    target = fd[1];
    l = calloc(1, sizeof *l);
    assert_non_null(l);
    l->fd = fd[0];
    l->cmd_sn = 0x100;
    l->exp_stat_sn = 0x50;
    l->max_cmd_sn = 0x110;
    l->itt = 7;
    l->full_feature = true;
    l->terms.value[KEY_HEADER_DIGEST] = l->terms.value[KEY_DATA_DIGEST] = digests;
    out = (struct pdus){ .header_digest = digests, .data_digest = digests, .stat_sn = 0x50, .exp_cmd_sn = 0x101,
                         .max_cmd_sn = 0x120 };
}

static void end(void) {
    close(target);
    iscsibe_link_close(l, false);
}

/* What stands in `out` comes as the answer to INQUIRY with room for `alloc` bytes of LUN 300. 0, or -1 with err. */
static int ask(uint32_t alloc) {
    static const uint8_t cdb[6] = { 0x12 };
    int64_t start = sock_now();
    assert_int_equal(send(target, out.bytes, out.len, MSG_DONTWAIT), (ssize_t)out.len);
    out.len = 0;
    int rc = iscsibe_link_command(l, 0x012cULL << 48, cdb, sizeof cdb, data, alloc, start + LIMIT, &reply, &err);
    assert_true(sock_now() - start < 20 * LIMIT); /* a busy machine may be late, but not for ever */
    if (rc != 0) assert_int_equal(err.status, STATUS_TARGET);
    return rc;
}

static void good(void **state) {
    uint8_t bhs[ISCSI_BHS + 4];
    (void)state;
    for (int digests = 0; digests < 2; digests++) {
        begin(digests);
        pdus_add(&out, ISCSI_NOP_IN, ISCSI_FINAL, ISCSI_NO_TAG); /* that wants no answer */
        pdus_seal(&out, NULL, 0);
        pdus_data_in(&out, 8, 0, 0, "abc", 3, false);
        pdus_data_in(&out, 8, 1, 3, "defg", 4, true);
        assert_int_equal(ask(96), 0);
        assert_int_equal(reply.len, 7);
        assert_int_equal(reply.status, 0);
        assert_memory_equal(data, "abcdefg", 7);
        ssize_t len = ISCSI_BHS + (digests ? 4 : 0);
        assert_int_equal(recv(target, bhs, sizeof bhs, MSG_DONTWAIT), len);
        assert_memory_equal(bhs + AT_LUN, "\x01\x2c\0\0\0\0\0\0", 8); /* all eight bytes of the LUN */
        assert_int_equal(l->exp_stat_sn, 0x51);
        end();
    }
}

static void sense(void **state) {
    static const uint8_t fixed[18] = { 0x70, 0, 0x05, [7] = 10, [12] = 0x25, 0x00 };
    (void)state;
    begin(false);
    pdus_response(&out, 8, 2, fixed, sizeof fixed);
    assert_int_equal(ask(96), 0);
    assert_int_equal(reply.status, 2);
    assert_int_equal(reply.key, 5);
    assert_int_equal(reply.ascq, 0x2500);
    end();
}

static void add(uint8_t opcode, uint32_t itt) {
    pdus_add(&out, opcode, ISCSI_FINAL, itt);
    pdus_seal(&out, NULL, 0);
}

static void hostile(void **state) {
    static const uint8_t much[200];
    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        const char *words = "malformed";
        begin(false);
        switch (i) {
        case 0: pdus_data_in(&out, 8, 0, 0, much, 97, true); break;  /* more than was asked for */
        case 1: pdus_data_in(&out, 8, 0, 4, much, 4, true); break;   /* a hole before it */
        case 2: pdus_data_in(&out, 99, 0, 0, much, 97, true); break; /* of another command */
        case 3: add(ISCSI_RESPONSE, 99); break;
        case 4: add(ISCSI_R2T, 8); break;
        case 5: add(ISCSI_LOGIN_RESPONSE, 8); break;
        case 6:
            add(ISCSI_REJECT, ISCSI_NO_TAG);
            words = "rejects";
            break;
        case 7:
            pdus_add(&out, ISCSI_ASYNC, ISCSI_FINAL, ISCSI_NO_TAG)[AT_EVENT] = 1;
            pdus_seal(&out, NULL, 0);
            words = "wants the session to end";
            break;
        default:
            iscsiw_put24(pdus_add(&out, ISCSI_RESPONSE, ISCSI_FINAL, 8) + AT_LENGTH, LINK_DATA_MAX + 1);
            out.len += ISCSI_BHS;
            words = "too long";
        }
        assert_int_equal(ask(96), -1);
        assert_non_null(strstr(err.msg, words));
        end();
    }
}

/* NOP-Ins in such numbers that there is always one to read. */
static void flood(void **state) {
    (void)state;
    begin(false);
    for (unsigned i = 0; i < 2000; i++) add(ISCSI_NOP_IN, ISCSI_NO_TAG);
    assert_int_equal(ask(0), -1); /* they are read, and then nothing comes */
    assert_non_null(strstr(err.msg, "timeout="));
    end();
    begin(false);
    assert_int_equal(ask(0), -1); /* nothing at all */
    assert_non_null(strstr(err.msg, "timeout="));
    end();
    begin(false);
    add(ISCSI_NOP_IN, ISCSI_NO_TAG);
    out.len -= 5; /* the end of a header that never comes */
    assert_int_equal(ask(0), -1);
    assert_non_null(strstr(err.msg, "timeout="));
    end();
    begin(false);
    close(target);
    target = socket(AF_UNIX, SOCK_STREAM, 0);
    static const uint8_t cdb[6] = { 0 };
    assert_int_equal(iscsibe_link_command(l, 0, cdb, sizeof cdb, data, 0, sock_now() + LIMIT, &reply, &err), -1);
    end();
    begin(false); /* the deadline counts although there is something to read */
    add(ISCSI_NOP_IN, ISCSI_NO_TAG);
    assert_int_equal(send(target, out.bytes, out.len, 0), (ssize_t)out.len);
    assert_int_equal(iscsibe_link_command(l, 0, cdb, sizeof cdb, data, 0, sock_now() - 1, &reply, &err), -1);
    assert_non_null(strstr(err.msg, "timeout="));
    end();
}

static void wrong_digest(void **state) {
    (void)state;
    for (int of_data = 0; of_data < 2; of_data++) {
        begin(true);
        pdus_data_in(&out, 8, 0, 0, "abcd", 4, true);
        out.bytes[of_data ? ISCSI_BHS + 4 : AT_LUN] ^= 1;
        assert_int_equal(ask(96), -1);
        assert_non_null(strstr(err.msg, of_data ? "in the data" : "in the header"));
        end();
    }
}

/* ---- a portal with several addresses ---- */

static int listen_at(const char *address, unsigned *port) {
    struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = inet_addr(address),
                              .sin_port = htons((uint16_t)*port) };
    socklen_t len = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    *port = ntohs(at.sin_port);
    return fd;
}

/* Takes one login and refuses it with the status at `arg`. */
struct refuser { int fd; uint16_t status; };

static void *refuse(void *arg) {
    const struct refuser *r = arg;
    uint8_t request[ISCSI_BHS], answer[ISCSI_BHS] = { ISCSI_LOGIN_RESPONSE };
    int fd = accept(r->fd, NULL, NULL);
    if (recv(fd, request, sizeof request, MSG_WAITALL) == (ssize_t)sizeof request) {
        memcpy(answer + AT_ITT, request + AT_ITT, 4);
        iscsiw_put32(answer + AT_LOGIN_STATUS, (uint32_t)r->status << 16);
        send(fd, answer, sizeof answer, MSG_NOSIGNAL);
    }
    return (void *)(intptr_t)fd;
}

/* 127.0.0.2 takes the connection, as its queue does, and never answers (or cannot serve); 127.0.0.1 answers. */
static void an_address_that_does_not_log_in_is_left(void **state) {
    static struct iscsibe_login login = { .target = "iqn.x:y", .initiator = "iqn.x:z", .timeout = NS_PER_SEC };
    static const uint8_t isid[6] = { 0x80 };
    (void)state;
    for (int silent = 0; silent < 2; silent++) {
        unsigned port = 0, status = 0;
        struct iscsibe_link *link;
        struct refuser second = { listen_at("127.0.0.1", &port), 0x0203 }, first = { listen_at("127.0.0.2", &port), 0x0301 };
        pthread_t thread[2];
        void *fd[2];
        snprintf(login.portal, sizeof login.portal, "filer:%u", port);
        pthread_create(&thread[1], NULL, refuse, &second);
        if (!silent) pthread_create(&thread[0], NULL, refuse, &first);
        assert_int_equal(iscsibe_link_open(&login, isid, &link, &status, &err), -1);
        shutdown(first.fd, SHUT_RDWR);
        shutdown(second.fd, SHUT_RDWR); /* nobody may have come there */
        for (int i = silent; i < 2; i++) {
            pthread_join(thread[i], &fd[i]);
            close((int)(intptr_t)fd[i]);
        }
        close(first.fd);
        close(second.fd);
        if (status != 0x0203) fail_msg("%s", err.msg);
        assert_non_null(strstr(err.msg, "no such target")); /* an answer, which no other address is asked for again */
    }
}

static void all_addresses_are_told(void **state) {
    static struct iscsibe_login login = { .target = "iqn.x:y", .initiator = "iqn.x:z", .timeout = 600 * NS_PER_MS };
    static const uint8_t isid[6] = { 0x80 };
    unsigned port = 0, status;
    struct iscsibe_link *link;
    int first = listen_at("127.0.0.2", &port), second = listen_at("127.0.0.1", &port);
    (void)state;
    snprintf(login.portal, sizeof login.portal, "filer:%u", port);
    assert_int_equal(iscsibe_link_open(&login, isid, &link, &status, &err), -1);
    if (!strstr(err.msg, "127.0.0.2: login: no answer within 0.3 s") || !strstr(err.msg, "; 127.0.0.1: login: no answer"))
        fail_msg("%s", err.msg);
    close(first);
    close(second);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(an_address_that_does_not_log_in_is_left),
                                        cmocka_unit_test(all_addresses_are_told), cmocka_unit_test(good), cmocka_unit_test(sense), cmocka_unit_test(hostile),
                                        cmocka_unit_test(flood), cmocka_unit_test(wrong_digest) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
