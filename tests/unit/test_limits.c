/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"

static void blamed(const char *word, int error, const char *more, const char *wanted) {
    struct err err;
    err_set(&err, STATUS_TARGET, "t: %s: %s%s", word, strerrordesc_np(error), more);
    bool ours = limits_blame(&err);
    assert_int_equal(ours, wanted != NULL);
    assert_int_equal(err.status, wanted ? STATUS_USAGE : STATUS_TARGET);
    if (wanted && !strstr(err.msg, wanted)) fail_msg("%s", err.msg);
    if (!wanted) return;
    size_t n = strlen(err.msg);
    assert_true(limits_blame(&err)); /* once is enough */
    assert_int_equal(strlen(err.msg), n);
}

static void what_the_client_lacks(void **state) {
    (void)state;
    blamed("io_setup for 4096 requests", EAGAIN, "; raise /proc/sys/fs/aio-max-nr", "fs.aio-max-nr leaves");
    blamed("io_uring for 9 requests", ENOMEM, "; raise the limit on locked memory (ulimit -l)", "ulimit -l is");
    blamed("200 helper threads", EAGAIN, "", "ulimit -u");
    blamed("eventfd", EMFILE, "", "ulimit -n");
    blamed("socket", ENFILE, "", "open files");
}

static void what_the_target_lacks(void **state) {
    (void)state;
    blamed("READ", EAGAIN, "", NULL);
    blamed("WRITE", EIO, "", NULL);
    blamed("io_setup for 4096 requests", ENOSYS, "", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_the_client_lacks), cmocka_unit_test(what_the_target_lacks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
