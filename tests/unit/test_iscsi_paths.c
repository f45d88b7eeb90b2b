/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several sessions as one context: which path an I/O takes, what happens where one has no room or is lost, and what is
 * counted. The other ends of the sockets are targets in this file, which all have the same disk. One thread; nobody
 * waits. */
#include "tests/unit/iscsi_pdus.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "backends/iscsi/iscsi_paths.h"
#include "base/rng.h"

#define DISK  (1u << 20)
#define DEPTH 16u
#define PATHS 3u
#define LOG   4096u

struct side {
    int fd;
    struct pdus out;
    size_t sent;
    uint8_t in[300000];
    size_t have;
    uint32_t cmd_sn, window;
    uint64_t log[LOG];          /* offsets in blocks, as they came */
    unsigned n_log, logouts;
};

static struct {
    unsigned n;
    struct side side[PATHS];
    uint8_t disk[DISK];
    struct context *c;
    struct kinds kinds;
    struct clock_virtual clock;
    unsigned char *buffers;
    struct request request[DEPTH], *list[DEPTH];
    struct completion done[DEPTH];
    bool lent[DEPTH];
    int64_t stamp;
    struct rng rng;
    struct iscsibe_terms terms;
    struct iscsibe_unit unit;
} t;

static const char *const portals[PATHS] = { "10.0.0.1:3260", "10.0.1.1:3260", "[fd00::1]:3261" };

/* ---- the targets ---- */

static void serve(struct side *s, const uint8_t *h, const uint8_t *data, uint32_t len) {
    uint32_t itt = iscsiw_get32(h + AT_ITT), at = iscsiw_get32(h + AT_CDB + 6) * 512;
    switch (h[0]) {
    case ISCSI_COMMAND:
        assert_int_equal(iscsiw_get32(h + AT_CMD_SN), s->cmd_sn);
        assert_false(iscsiw_before(s->out.max_cmd_sn, s->cmd_sn)); /* inside the window that we told */
        s->cmd_sn++;
        s->out.exp_cmd_sn = s->cmd_sn;
        s->out.max_cmd_sn = s->cmd_sn + s->window - 1;
        s->log[s->n_log++ % LOG] = at / 512;
        if (h[AT_CDB] == 0x88) {
            pdus_data_in(&s->out, itt, 0, 0, t.disk + at, iscsiw_get32(h + AT_EXPECTED_LENGTH), true);
        } else {
            memcpy(t.disk + at, data, len);
            pdus_response(&s->out, itt, 0, NULL, 0);
        }
        break;
    case ISCSI_LOGOUT | ISCSI_IMMEDIATE:
        s->logouts++;
        pdus_add(&s->out, ISCSI_LOGOUT_RESPONSE, ISCSI_FINAL, itt);
        s->out.stat_sn++;
        pdus_seal(&s->out, NULL, 0);
        break;
    default: fail_msg("opcode %02x", h[0]);
    }
}

static void serve_all(struct side *s) {
    size_t at = 0;
    while (s->have - at >= ISCSI_BHS) {
        const uint8_t *h = s->in + at;
        uint32_t len = iscsiw_get24(h + AT_LENGTH);
        size_t all = ISCSI_BHS + len + iscsiw_padding(len);
        if (s->have - at < all) break;
        serve(s, h, h + ISCSI_BHS, len);
        at += all;
    }
    memmove(s->in, s->in + at, s->have - at);
    s->have -= at;
}

/* One target's turn: it reads, and answers. */
static void turn(unsigned path) {
    struct side *s = &t.side[path];
    if (s->out.len < 1u << 19) {
        ssize_t n = recv(s->fd, s->in + s->have, sizeof s->in - s->have, MSG_DONTWAIT);
        if (n > 0) {
            s->have += (size_t)n;
            serve_all(s);
        }
    }
    while (s->sent < s->out.len) {
        ssize_t n = send(s->fd, s->out.bytes + s->sent, s->out.len - s->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n <= 0) break;
        s->sent += (size_t)n;
    }
    memmove(s->out.bytes, s->out.bytes + s->sent, s->out.len - s->sent);
    s->out.len -= s->sent;
    s->sent = 0;
    clock_wait_until(&t.clock.clock, clock_now(&t.clock.clock) + 10);
}

static void hang_up(unsigned path) {
    close(t.side[path].fd);
    t.side[path].fd = -1;
}

/* ---- both sides ---- */

static struct context *session(unsigned path, uint32_t window, const struct attach_how *attach, int buffer) {
    struct context *c;
    struct err err;
    int fd[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    for (int i = 0; i < 2 && buffer; i++) {
        setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
        setsockopt(fd[i], SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    }
    struct side *s = &t.side[path];
    s->fd = fd[1];
    s->cmd_sn = 0x100;
    s->window = window;
    s->out = (struct pdus){ .stat_sn = 0x50, .exp_cmd_sn = 0x100, .max_cmd_sn = 0x100 + window - 1 };
    const struct native_how how = { .fd = fd[0], .portal = portals[path], .terms = &t.terms, .cmd_sn = 0x100,
                                    .max_cmd_sn = 0x100 + window - 1, .exp_stat_sn = 0x50, .lun = 3ULL << 48, .block = 512,
                                    .unit = &t.unit, .sync_op = 0x91, .dpofua = true,
                                    .deliver = true, .timeout = 30 * NS_PER_SEC };
    assert_int_equal(iscsibe_native_start(&how, attach, &c, &err), 0);
    return c;
}

static void begin(unsigned n, unsigned every, const uint32_t *window, int buffer) {
    struct context *sessions[PATHS];
    struct err err;

    memset(&t, 0, sizeof t);
    t.n = n;
    rng_seed(&t.rng, 7);
    clock_virtual_init(&t.clock, 1000);
    bench_terms(&t.terms, PDUS_STRIDE, PDUS_STRIDE, PDUS_STRIDE);
    t.buffers = calloc(DEPTH, PDUS_STRIDE);
    const struct attach_how attach = { .depth = DEPTH, .max_io = PDUS_STRIDE, .buffers = t.buffers,
                                       .stride = PDUS_STRIDE, .clock = &t.clock.clock, .kinds = &t.kinds,
                                       .write = true };
    for (unsigned i = 0; i < n; i++) sessions[i] = session(i, window ? window[i] : 64, &attach, buffer);
    assert_int_equal(iscsibe_paths_start(sessions, n, every, &t.c, &err), 0);
}

static void end(void) {
    for (unsigned i = 0; i < t.n; i++)
        if (t.side[i].fd >= 0) hang_up(i); /* so that detach has nobody to wait for */
    iscsibe_paths_detach(t.c);
    free(t.buffers);
}

static struct request *request(unsigned slot, enum io_op op, uint64_t offset, uint32_t len) {
    t.request[slot] = (struct request){ .buf = t.buffers + slot * PDUS_STRIDE, .offset = offset, .len = len,
                                        .slot = slot, .op = (uint8_t)op };
    return &t.request[slot];
}

static int submit(unsigned n) {
    int took = iscsibe_paths_submit(t.c, t.list, n);
    for (int i = 0; i < took; i++) t.lent[t.list[i]->slot] = true;
    return took;
}

/* What comes back is ours, once, and no earlier than what came before. */
static int reap(unsigned max, unsigned min, int64_t timeout) {
    int got = iscsibe_paths_reap(t.c, t.done, max, min, timeout);
    for (int i = 0; i < got; i++) {
        const struct completion *d = &t.done[i];
        assert_true(t.lent[d->request->slot]);
        t.lent[d->request->slot] = false;
        assert_true(d->t_done >= t.stamp);
        t.stamp = d->t_done;
    }
    return got;
}

static uint64_t counted(const char *key) {
    struct kv kv = { 0 };
    iscsibe_paths_counters(t.c, &kv);
    assert_non_null(kv_find(&kv, key));
    uint64_t value = kv_get_uint(&kv, key, 0);
    kv_free(&kv);
    return value;
}

/* ---- order ---- */

/* I/O number i reads block i, so that the targets' logs say where it went. */
static void numbered_load(unsigned ios) {
    unsigned next = 0, back = 0, idle = 0;
    while (back < ios) {
        unsigned n = 0, most = 1 + (unsigned)rng_below(&t.rng, DEPTH);
        for (unsigned slot = 0; slot < DEPTH && n < most && next + n < ios; slot++)
            if (!t.lent[slot]) {
                t.list[n] = request(slot, IO_READ, (next + n) % (DISK / 512) * 512u, 512);
                n++;
            }
        int took = n ? submit(n) : 0;
        assert_true(took >= 0);
        next += (unsigned)took;
        turn((unsigned)rng_below(&t.rng, t.n));
        int got = reap(1 + (unsigned)rng_below(&t.rng, DEPTH), 0, 0);
        assert_true(got >= 0);
        for (int i = 0; i < got; i++) {
            assert_int_equal(t.done[i].result, 512);
            assert_memory_equal(t.done[i].request->buf, t.disk + t.done[i].request->offset, 512);
        }
        back += (unsigned)got;
        idle = took || got ? 0 : idle + 1;
        assert_true(idle < 1000);
    }
}

static void order(void **state) {
    static const unsigned every[] = { 1, 3, 100 };
    static const uint32_t windows[][PATHS] = { { 64, 64, 64 }, { 2, 64, 5 }, { 1, 1, 1 } };
    (void)state;
    for (unsigned k = 0; k < sizeof every / sizeof *every; k++)
        for (unsigned n = 2; n <= PATHS; n++)
            for (unsigned w = 0; w < sizeof windows / sizeof *windows; w++) {
                unsigned ios = 350, seen[PATHS] = { 0 };
                begin(n, every[k], windows[w], 0);
                rng_fill(&t.rng, t.disk, DISK);
                numbered_load(ios);
                for (unsigned i = 0; i < ios; i++) {
                    unsigned path = i / every[k] % n;
                    assert_int_equal(t.side[path].log[seen[path]++], i % (DISK / 512));
                }
                for (unsigned i = 0; i < n; i++) assert_int_equal(t.side[i].n_log, seen[i]);
                end();
            }
}

/* A path whose turn it is and that has no room holds up the others: no I/O goes by a path that is not its own. */
static void window_of_its_own(void **state) {
    static const uint32_t windows[] = { 2, 64 };
    (void)state;
    begin(2, 1, windows, 0);
    for (unsigned i = 0; i < 8; i++) t.list[i] = request(i, IO_READ, i * 512, 512);
    assert_int_equal(submit(8), 4); /* 0 to 3; 4 would be the third of path 1 */
    memmove(t.list, t.list + 4, 4 * sizeof *t.list);
    assert_int_equal(submit(4), 0);
    turn(1);
    assert_int_equal(reap(DEPTH, 1, NS_PER_SEC), 2);
    assert_int_equal(submit(4), 0);
    clock_wait_until(&t.clock.clock, clock_now(&t.clock.clock) + 5000);
    assert_int_equal(counted("path2_command_window_closed"), 0);
    assert_int_equal(counted("path1_command_window_closed"), 3);
    assert_true(counted("path1_command_window_closed_ns") >= 5000); /* also while it is still shut */
    assert_int_equal(counted("path1_outstanding_max"), 2);
    turn(0);
    assert_int_equal(reap(DEPTH, 1, NS_PER_SEC), 2);
    assert_int_equal(submit(4), 4);
    turn(0);
    turn(1);
    assert_int_equal(reap(DEPTH, 4, NS_PER_SEC), 4);
    assert_int_equal(counted("path1_ios"), 4);
    assert_int_equal(counted("path2_ios"), 4);
    assert_int_equal(counted("path2_command_window_closed_ns"), 0);
    assert_int_equal(counted("command_window_closed_ns"), counted("path1_command_window_closed_ns"));
    assert_int_equal(counted("command_window"), 64);
    assert_int_equal(counted("path1_command_window"), 2);
    end();
}

/* One wait brings what has come on all paths. */
static void one_wait(void **state) {
    (void)state;
    begin(3, 2, NULL, 0);
    for (unsigned i = 0; i < 6; i++) t.list[i] = request(i, IO_READ, i * 512, 512);
    assert_int_equal(submit(6), 6);
    for (unsigned i = 0; i < 3; i++) turn(i);
    assert_int_equal(reap(DEPTH, 6, 10 * NS_PER_SEC), 6);
    assert_true(counted("polls") <= 1);
    assert_int_equal(counted("recvs"), 3);
    assert_int_equal(counted("sends"), 3);
    end();
}

/* While one path alone has anything to do, it costs what a single session costs: no poll. */
static void alone(void **state) {
    (void)state;
    begin(2, 1000, NULL, 0);
    for (unsigned k = 0; k < 50; k++) {
        for (unsigned i = 0; i < 4; i++) t.list[i] = request(i, IO_READ, i * 512, 512);
        assert_int_equal(submit(4), 4);
        turn(0);
        assert_int_equal(reap(DEPTH, 4, 10 * NS_PER_SEC), 4);
    }
    assert_int_equal(counted("polls"), 0);
    assert_int_equal(counted("sends"), 50);
    assert_int_equal(counted("path2_ios"), 0);
    end();
}

/* ---- data ---- */

/* Slots' areas do not overlap, so that what is read is known. */
static void prepare(unsigned slot) {
    uint32_t area = DISK / DEPTH, len = 512 * (1 + (uint32_t)rng_below(&t.rng, 96));
    uint64_t at = slot * area + 512 * rng_below(&t.rng, (area - len) / 512 + 1);
    enum io_op op = rng_below(&t.rng, 40) == 0 ? IO_FLUSH : rng_below(&t.rng, 2) ? IO_READ : IO_WRITE;
    struct request *r = request(slot, op, at, len);
    if (op == IO_WRITE) rng_fill(&t.rng, r->buf, len);
}

static void check(const struct completion *d) {
    const struct request *r = d->request;
    if (d->result < 0) fail_msg("%s: %s", t.kinds.kind[d->kind].name, t.kinds.kind[d->kind].text);
    if (r->op == IO_FLUSH) return;
    assert_int_equal(d->result, r->len);
    assert_memory_equal(r->buf, t.disk + r->offset, r->len);
}

static void load(unsigned ios) {
    unsigned issued = 0, back = 0, idle = 0;
    while (back < ios) {
        unsigned n = 0;
        for (unsigned slot = 0; slot < DEPTH && issued + n < ios; slot++) {
            if (t.lent[slot]) continue;
            prepare(slot);
            t.list[n++] = &t.request[slot];
        }
        int took = n ? submit(n) : 0;
        assert_true(took >= 0);
        issued += (unsigned)took;
        turn((unsigned)rng_below(&t.rng, t.n));
        int got = reap(1 + (unsigned)rng_below(&t.rng, DEPTH), 0, 0);
        assert_true(got >= 0);
        for (int i = 0; i < got; i++) check(&t.done[i]);
        back += (unsigned)got;
        idle = took || got ? 0 : idle + 1;
        assert_true(idle < 10000);
    }
}

/* Sockets that are full all the time, and reads and writes at once on all paths. */
static void loads(void **state) {
    static const uint32_t windows[] = { 3, 64, 7 };
    static const unsigned every[] = { 1, 2, 7, 1000 };
    (void)state;
    for (unsigned k = 0; k < sizeof every / sizeof *every; k++) {
        begin(3, every[k], windows, 4096);
        rng_fill(&t.rng, t.disk, DISK);
        load(500);
        assert_true(counted("send_buffer_full") > 0);
        assert_true(every[k] > 100 || counted("command_window_closed") > 0);
        end();
    }
}

/* ---- loss ---- */

static void submit_six(void) {
    for (unsigned i = 0; i < 6; i++) t.list[i] = request(i, i & 1 ? IO_READ : IO_WRITE, i * 4096, 4096);
    assert_int_equal(submit(6), 6);
}

/* All that is out comes back once, with an error; then, and only then, the context is lost. */
static unsigned collect(int error, unsigned max) {
    unsigned n = 0;
    int got;
    while ((got = reap(max, 1, NS_PER_SEC)) > 0) n += (unsigned)got;
    assert_int_equal(got, -error);
    for (unsigned i = 0; i < DEPTH; i++) assert_false(t.lent[i]);
    assert_int_equal(submit(1), -error);
    return n;
}

static const char *text_of(const char *kind) {
    for (unsigned i = 0; i < t.kinds.n; i++)
        if (strcmp(t.kinds.kind[i].name, kind) == 0) return t.kinds.kind[i].text;
    fail_msg("no error of the kind `%s`", kind);
    return NULL;
}

static void lost_path(void **state) {
    (void)state;
    for (unsigned max = 1; max < 8; max += 2) {
        begin(3, 2, NULL, 0);
        submit_six();
        turn(0); /* answers its two */
        hang_up(1);
        assert_int_equal(collect(ECONNRESET, max), 6);
        assert_non_null(strstr(text_of("connection lost"), portals[1]));
        assert_null(strstr(text_of("other path lost"), portals[0]));
        assert_non_null(strstr(text_of("other path lost"), portals[1]));
        end();
    }
}

static void lost_while_sending(void **state) {
    (void)state;
    begin(2, 1, NULL, 0);
    hang_up(1);
    for (unsigned i = 0; i < 4; i++) t.list[i] = request(i, IO_READ, i * 512, 512);
    assert_int_equal(submit(4), 1); /* the first, by the path that is there */
    assert_int_equal(collect(ECONNRESET, DEPTH), 1);
    assert_non_null(strstr(text_of("connection lost"), portals[1]));
    assert_string_equal(text_of("other path lost"), text_of("connection lost"));
    end();
}

/* What came before the loss, and had no place in the caller's array, is given first. */
static void lost_after_leftovers(void **state) {
    (void)state;
    begin(2, 2, NULL, 0);
    for (unsigned i = 0; i < 6; i++) t.list[i] = request(i, IO_READ, i * 512, 512);
    assert_int_equal(submit(4), 4);
    turn(1);
    assert_int_equal(reap(1, 1, NS_PER_SEC), 1);
    clock_wait_until(&t.clock.clock, clock_now(&t.clock.clock) + 1000);
    hang_up(0);
    assert_int_equal(iscsibe_paths_submit(t.c, t.list + 4, 2), -ECONNRESET);
    assert_int_equal(reap(1, 1, NS_PER_SEC), 1);
    assert_ptr_equal(t.done[0].request, t.list[3]);
    assert_int_equal(t.done[0].result, 512);
    assert_int_equal(collect(ECONNRESET, DEPTH), 2);
    end();
}

/* One that has nothing to do is not forgotten. */
static void lost_idle_path(void **state) {
    int got = 0;
    (void)state;
    begin(2, 1000, NULL, 0);
    hang_up(1);
    for (unsigned k = 0; k < 1000 && got >= 0; k++) got = reap(DEPTH, 1, NS_PER_MS);
    assert_int_equal(got, -ECONNRESET);
    assert_non_null(strstr(text_of("connection lost"), portals[1]));
    end();
}

static void lost_in_load(void **state) {
    (void)state;
    for (unsigned k = 0; k < 24; k++) {
        begin(3, 1 + k % 5, NULL, k & 1 ? 4096 : 0);
        for (unsigned i = 0; i < DEPTH; i++) {
            prepare(i);
            t.list[i] = &t.request[i];
        }
        int took = submit(DEPTH);
        assert_true(took > 0);
        for (unsigned i = 0; i < k; i++) turn(i % 3);
        hang_up(k % 3);
        assert_int_equal(collect(ECONNRESET, 1 + k % 7), took);
        end();
    }
}

static void timeout(void **state) {
    (void)state;
    begin(2, 1, NULL, 0);
    for (unsigned i = 0; i < 2; i++) t.list[i] = request(i, IO_READ, i * 512, 512);
    assert_int_equal(submit(2), 2);
    iscsibe_paths_session(t.c, 1)->age += 31 * NS_PER_SEC;
    assert_int_equal(collect(ETIMEDOUT, DEPTH), 2);
    assert_non_null(strstr(text_of("timeout"), portals[1]));
    end();
}

/* ---- figures, and the end ---- */

static void figures(void **state) {
    struct kv one = { 0 }, all = { 0 };
    (void)state;
    begin(2, 1, NULL, 0);
    for (unsigned i = 0; i < 6; i++) t.list[i] = request(i, i == 5 ? IO_FLUSH : IO_READ, i * 4096, i & 1 ? 512 : 4096);
    assert_int_equal(submit(6), 6);
    turn(0);
    turn(1);
    assert_int_equal(reap(DEPTH, 6, NS_PER_SEC), 6);
    iscsibe_paths_counters(t.c, &one);
    assert_int_equal(kv_get_uint(&one, "sessions", 0), 2);
    assert_int_equal(kv_get_uint(&one, "rr", 0), 1);
    assert_int_equal(kv_get_uint(&one, "wire_ios", 0), 6);
    assert_int_equal(kv_get_uint(&one, "path1_ios", 0), 3);
    assert_int_equal(kv_get_uint(&one, "path2_ios", 0), 2); /* the flush is none */
    assert_int_equal(kv_get_uint(&one, "path1_bytes", 0), 3 * 4096);
    assert_int_equal(kv_get_uint(&one, "path2_bytes", 0), 2 * 512);
    assert_string_equal(kv_find(&one, "path2_portal")->text, portals[1]);
    /* two workers: amounts are added, levels are not */
    kv_merge_sum(&all, &one);
    kv_merge_sum(&all, &one);
    assert_int_equal(kv_get_uint(&all, "path1_bytes", 0), 6 * 4096);
    assert_int_equal(kv_get_uint(&all, "sessions", 0), 2);
    assert_int_equal(kv_get_uint(&all, "path1_outstanding_max", 0), 3);
    kv_free(&one);
    kv_free(&all);
    end();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order),
        cmocka_unit_test(window_of_its_own),
        cmocka_unit_test(one_wait),
        cmocka_unit_test(alone),
        cmocka_unit_test(loads),
        cmocka_unit_test(lost_path),
        cmocka_unit_test(lost_while_sending),
        cmocka_unit_test(lost_after_leftovers),
        cmocka_unit_test(lost_idle_path),
        cmocka_unit_test(lost_in_load),
        cmocka_unit_test(timeout),
        cmocka_unit_test(figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
