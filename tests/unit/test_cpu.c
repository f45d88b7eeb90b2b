/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/cpu.h"

static void test_busy_is_all_but_idle_and_iowait(void **state) {
    (void)state;
    int64_t busy, total;
    assert_int_equal(cpu_parse_stat("cpu  10 20 30 400 50 6 7 8 0 0\n", 100, &busy, &total), 0);
    assert_int_equal(total, (10 + 20 + 30 + 400 + 50 + 6 + 7 + 8) * 10000000LL);
    assert_int_equal(busy, (10 + 20 + 30 + 6 + 7 + 8) * 10000000LL);
}

static void test_other_lines_are_refused(void **state) {
    (void)state;
    int64_t busy, total;
    assert_int_equal(cpu_parse_stat("intr 1 2 3\n", 100, &busy, &total), -1);
    assert_int_equal(cpu_parse_stat("cpu  10 20\n", 100, &busy, &total), -1);
    assert_int_equal(cpu_parse_stat("cpu  10 20 30 400 50 6 7 8\n", 0, &busy, &total), -1);
}

static void test_difference_of_samples(void **state) {
    (void)state;
    struct cpu_sample a = {.user_ns = 5, .system_ns = 7, .busy_ns = 100, .total_ns = 1000},
                      b = {.user_ns = 15, .system_ns = 27, .busy_ns = 400, .total_ns = 3000};
    struct record_cpu cpu;
    cpu_between(&a, &b, &cpu);
    assert_int_equal(cpu.user_ns, 10);
    assert_int_equal(cpu.system_ns, 20);
    assert_int_equal(cpu.host_busy_ns, 300);
    assert_int_equal(cpu.host_ns, 2000);
    a.total_ns = 0; /* /proc could not be read: nothing is claimed */
    cpu_between(&a, &b, &cpu);
    assert_int_equal(cpu.host_ns, 0);
    assert_int_equal(cpu.host_busy_ns, 0);
}

static void test_the_process_uses_time(void **state) {
    (void)state;
    struct cpu_sample a, b;
    volatile uint64_t x = 1;
    cpu_sample(&a);
    do {
        for (int i = 0; i < 1000000; i++) x = x * 3 + 1;
        cpu_sample(&b);
    } while (b.user_ns + b.system_ns == a.user_ns + a.system_ns);
    assert_true(b.user_ns >= a.user_ns);
    assert_true(b.total_ns > 0);
}

static void *pinned(void *arg) {
    int *cpu = arg;
    if (cpu_pin((unsigned)*cpu) == 0) *cpu = cpu_usable((unsigned)*cpu) ? sched_getcpu() : -1;
    return NULL;
}

static void test_a_pinned_thread_runs_there(void **state) {
    (void)state;
    char list[400], expected[20];
    for (unsigned cpu = 0; cpu < 64; cpu++) {
        if (!cpu_usable(cpu)) continue;
        pthread_t thread;
        int ran = (int)cpu;
        assert_int_equal(pthread_create(&thread, NULL, pinned, &ran), 0);
        pthread_join(thread, NULL);
        assert_int_equal(ran, cpu);
    }
    cpu_list_usable(list, sizeof list);
    snprintf(expected, sizeof expected, "%d", (int)strtol(list, NULL, 10));
    assert_true(cpu_usable((unsigned)strtol(list, NULL, 10)));
    assert_memory_equal(list, expected, strlen(expected));
    assert_false(cpu_usable(5000));
    assert_int_equal(cpu_pin(5000), -EINVAL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_busy_is_all_but_idle_and_iowait),
        cmocka_unit_test(test_other_lines_are_refused),
        cmocka_unit_test(test_difference_of_samples),
        cmocka_unit_test(test_the_process_uses_time),
        cmocka_unit_test(test_a_pinned_thread_runs_there),
    };
    return cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
}
