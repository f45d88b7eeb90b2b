/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/progress.h"
#include "report/grid.h"
#include "result/json.h"
#include "tests/unit/madeup.h"

static struct session_progress window(void) {
    return (struct session_progress){.phase = PHASE_WINDOW,
                                     .pattern = "RealLife",
                                     .target = "nfs",
                                     .round = 2,
                                     .rounds = 4,
                                     .run = 3,
                                     .runs = 8,
                                     .phase_elapsed_ns = 10 * NS_PER_SEC,
                                     .phase_ns = 30 * NS_PER_SEC,
                                     .iops = 3472,
                                     .bytes_per_second = 108.5 * 1048576,
                                     .lat_mean_ns = 17280000,
                                     .left_ns = 270 * NS_PER_SEC};
}

static void expect_line(struct session_progress p, unsigned width, const char *wanted) {
    char line[300];
    progress_line(&p, width, line, sizeof line);
    assert_string_equal(line, wanted);
}

static void test_line(void **state) {
    (void)state;
    struct session_progress p = window();
    expect_line(p, 200, "run 3 of 8  nfs  RealLife  round 2  window 20 s  left 4 min 30 s  3472 IOPS  108.5 MiB/s  17.3 ms");
    p.phase_elapsed_ns -= 1; /* begun seconds count: a clock of tenths would only flicker */
    expect_line(p, 200, "run 3 of 8  nfs  RealLife  round 2  window 21 s  left 4 min 30 s  3472 IOPS  108.5 MiB/s  17.3 ms");
    p.phase_elapsed_ns += 1;
    p.errors = 12;
    p.rounds = 1;
    expect_line(p, 200, "run 3 of 8  nfs  RealLife  window 20 s  left 4 min 30 s  3472 IOPS  108.5 MiB/s  17.3 ms  12 errors");
    p = (struct session_progress){.phase = PHASE_FILL,
                                  .target = "fc",
                                  .done_bytes = 1ull << 30,
                                  .total_bytes = 4ull << 30,
                                  .bytes_per_second = 100 * 1048576,
                                  .left_ns = 60 * NS_PER_SEC};
    expect_line(p, 200, "fc  fill 25 %  left 1 min  100.0 MiB/s");
    p = (struct session_progress){
        .phase = PHASE_SETTLE, .target = "fc\x1b", .pattern = "a\nb", .phase_ns = 5, .phase_elapsed_ns = 9};
    expect_line(p, 200, "fc\\x1B  a\\x0Ab  settle 0 s");
}

/* A line has whole fields only: what stands in it stands in the long one, between blanks. */
static void test_narrow_terminal(void **state) {
    (void)state;
    struct session_progress p = window();
    expect_line(p, 79, "run 3 of 8  nfs  RealLife  window 20 s  left 4 min 30 s  3472 IOPS  17.3 ms");
    expect_line(p, 40, "run 3 of 8  nfs  window 20 s  3472 IOPS");
    expect_line(p, 24, "run 3 of 8  window 20 s");
    expect_line(p, 12, "window 20 s");
    expect_line(p, 0, "");
    p.pattern = "gr\xc3\xb6\xc3\x9f"
                "er";
    char all[300], line[300];
    progress_line(&p, 200, all, sizeof all);
    for (unsigned width = 0; width < 120; width++) {
        progress_line(&p, width, line, sizeof line);
        assert_true(grid_width(line) <= width);
        char *rest = line, *field, wanted[310], from[310];
        snprintf(from, sizeof from, "  %s  ", all);
        while ((field = strsep(&rest, " "))) {
            snprintf(wanted, sizeof wanted, " %s ", field);
            assert_true(!field[0] || strstr(from, wanted));
        }
    }
}

struct capture {
    FILE *out;
    char *text;
    size_t len;
};

static void capture(struct capture *c) {
    c->out = open_memstream(&c->text, &c->len);
}

static void expect_text(struct capture *c, const char *wanted) {
    fclose(c->out);
    assert_string_equal(c->text, wanted);
    free(c->text);
}

static json_t *finished(enum run_status status) {
    struct record *r = madeup_run("RealLife", "nfs", 2, 1000, 1000000);
    r->status = status;
    if (status == RUN_LOST) r->window_ns = 0;
    json_t *j = json_of_record(r);
    record_free(r);
    return j;
}

static void feed(struct progress *p) {
    struct session_progress now = window();
    json_t *ok = finished(RUN_OK), *bad = finished(RUN_ERRORS), *lost = finished(RUN_LOST);
    p->width = 12;
    progress_show(p, &now);
    progress_run_done(p, ok);
    progress_say(p, "3 of 256 sampled blocks are holes");
    progress_show(p, &now);
    progress_run_done(p, bad);
    progress_run_done(p, lost);
    progress_end(p);
    json_decref(ok);
    json_decref(bad);
    json_decref(lost);
}

static void test_without_a_terminal(void **state) {
    (void)state;
    struct capture c;
    capture(&c);
    struct progress p;
    progress_init(&p, c.out, false, false, 8);
    feed(&p);
    expect_text(&c, "run 1 of 8  nfs  RealLife  round 2  2000 IOPS  15.62 MiB/s  1.000 ms\n"
                    "samedisk: 3 of 256 sampled blocks are holes\n"
                    "run 2 of 8  nfs  RealLife  round 2  2000 IOPS  15.62 MiB/s  1.000 ms  errors\n"
                    "run 3 of 8  nfs  RealLife  round 2  lost\n");
}

static void test_on_a_terminal(void **state) {
    (void)state;
    struct capture c;
    capture(&c);
    struct progress p;
    progress_init(&p, c.out, true, false, 8);
    feed(&p);
    /* Each finished run leaves a line, what is said takes the place of the one that is drawn, and nothing is left at the
     * end. */
    expect_text(&c, "\rwindow 20 s\033[K\r\033[Krun 1 of 8\nsamedisk: 3 of 256 sampled blocks are holes\n\rwindow 20 s\033[K"
                    "\r\033[Krun 2 of 8\nrun 3 of 8\n");
}

static void test_quiet(void **state) {
    (void)state;
    for (int terminal = 0; terminal < 2; terminal++) {
        struct capture c;
        capture(&c);
        struct progress p;
        progress_init(&p, c.out, terminal, true, 8);
        feed(&p);
        expect_text(&c, "");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_narrow_terminal),
        cmocka_unit_test(test_without_a_terminal),
        cmocka_unit_test(test_on_a_terminal),
        cmocka_unit_test(test_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
