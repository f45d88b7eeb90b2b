/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A result document with made-up patterns, targets and environment, for the tests of documents and reports. */
#ifndef TESTS_MADEUP_DOCUMENT_H
#define TESTS_MADEUP_DOCUMENT_H

#include "option/option.h"
#include "result/document.h"
#include "tests/unit/madeup.h"

/* The keys of a load that reports look at, in place of the real table: results know nothing of patterns. */
struct madeup_pattern {
    uint64_t size, iodepth, numjobs, runtime, ramp_time, rounds;
    int sync;
    bool end_fsync;
    char *description;
};

#define MADEUP(field) .offset = offsetof(struct madeup_pattern, field)

static const char *const madeup_sync[] = {"none", "datastore", NULL};

static const struct option_entry madeup_keys[] = {
    {.name = "size", .type = OPTION_SIZE, MADEUP(size)},
    {.name = "iodepth", .type = OPTION_UINT, MADEUP(iodepth)},
    {.name = "numjobs", .type = OPTION_UINT, MADEUP(numjobs)},
    {.name = "runtime", .type = OPTION_TIME, MADEUP(runtime)},
    {.name = "ramp_time", .type = OPTION_TIME, MADEUP(ramp_time)},
    {.name = "rounds", .type = OPTION_UINT, MADEUP(rounds)},
    {.name = "sync", .type = OPTION_ENUM, .names = madeup_sync, MADEUP(sync)},
    {.name = "end_fsync", .type = OPTION_BOOL, MADEUP(end_fsync)},
    {.name = "description", .type = OPTION_TEXT, MADEUP(description)},
    {.name = NULL}};

static inline struct madeup_pattern madeup_load(void) {
    return (struct madeup_pattern){.size = 4ull << 30,
                                   .iodepth = 16,
                                   .numjobs = 4,
                                   .runtime = 300 * NS_PER_SEC,
                                   .ramp_time = 120 * NS_PER_SEC,
                                   .rounds = 1,
                                   .sync = 1};
}

static inline json_t *madeup_target(const char *label, const char *summary, const char *identity) {
    return json_pack("{s:s, s:s, s:s, s:n, s:[{s:s, s:s, s:s, s:[s], s:I, s:{s:i}}], s:[]}", "label", label, "backend",
                     "nfs", "engine", "libnfs", "lost", "members", "url", "nfs://10.0.0.1/vol1/vm.dat", "summary",
                     summary, "identity", identity, "identities", identity, "size", (json_int_t)4 << 30, "negotiated",
                     "rtmax", 65536, "warnings");
}

/* Two targets, "nfs" (the reference) and "iscsi"; patterns and runs are the test's. */
static inline struct document *madeup_document(void) {
    struct document *d = document_new("0.1.0");
    document_plan(d, 42, 1, "nfs", false);
    document_note(d, "array", "EMC Celerra NS-120");
    document_environment(d, json_pack("{s:s, s:s, s:s, s:n, s:i, s:I, s:{s:s, s:f}, s:{}, s:{}, s:[]}", "host",
                                      "tester", "kernel", "6.1", "machine", "x86_64", "cpu", "cpus", 2, "memory_bytes",
                                      (json_int_t)8 << 30, "clock", "source", "tsc", "cost_ns", 20.5, "sysctls",
                                      "libraries", "nics"));
    document_sameness(d, json_pack("[{s:[s,s], s:s, s:i, s:n}]", "targets", "nfs", "iscsi", "verdict", "no sign", "blocks",
                                   384, "how"));
    document_target(d, madeup_target("nfs", "NFSv3 TCP 10.0.0.1:/vol1 vm.dat, 4 GiB", "fsid:1/fileid:2"));
    document_target(d, madeup_target("iscsi", "iSCSI 10.0.0.1 iqn.x LUN 0, 4 GiB", "naa.6006"));
    return d;
}

static inline void madeup_add(struct document *d, struct record *r) {
    document_run(d, r);
    record_free(r);
}

#endif
